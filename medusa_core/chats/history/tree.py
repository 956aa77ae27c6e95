"""Paths through the tree of messages, of which each knows its parent only."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.chats.history.records import Stored


def path_to(messages: Sequence[Stored], leaf_id: str | None) -> tuple[Stored, ...]:
    """The messages from the first one down to a leaf.

    Args:
        messages: All of a conversation.
        leaf_id: The end of the path; None for the message that came last.
    """
    by_id = {message.id: message for message in messages}
    at = by_id.get(leaf_id) if leaf_id is not None else None
    if at is None and messages:
        at = messages[-1]
    path: list[Stored] = []
    while at is not None:
        path.append(at)
        at = by_id.get(at.parent_id) if at.parent_id is not None else None
    return tuple(reversed(path))
