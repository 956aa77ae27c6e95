"""A tree out of messages that came in any order, checked."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from medusa_core.chats.history.exchange.our_json import Json
from medusa_core.errors import ConversationFileError

_HINT = "The file is damaged, or was changed: export the conversation again."
_MOST_TITLE_CHARS = 60


def in_order(messages: Sequence[Json], title: str) -> list[Json]:
    """Messages with parents before their children, else in the order they came.

    Args:
        messages: With `id` and `parent_id`.
        title: The conversation's, for errors.

    Raises:
        ConversationFileError: An id comes twice, a parent is missing, or parents form a circle.
    """
    children: dict[str | None, list[Json]] = defaultdict(list)
    ids = {message["id"] for message in messages}
    if len(ids) < len(messages):
        raise refused_conversation({"title": title}, "two messages have the same id")
    for message in messages:
        if message["parent_id"] is not None and message["parent_id"] not in ids:
            raise refused_conversation({"title": title}, "the parent of a message is missing")
        children[message["parent_id"]].append(message)
    ordered: list[Json] = list(children[None])
    for message in ordered:  # which grows
        ordered += children.get(message["id"], ())
    if len(ordered) < len(messages):
        raise refused_conversation({"title": title}, "its messages form a circle")
    # Who came first is shown first among versions; the sort keeps parents before children only if
    # the file did.
    place = {id(message): number for number, message in enumerate(messages)}
    if all(place[id(m)] > place[id(p)] for p in messages for m in children.get(p["id"], ())):
        return list(messages)
    return ordered


def without_hidden(messages: Sequence[Json], hidden: set[str]) -> list[Json]:
    """Messages without some of them, whose children hang under what was above.

    Args:
        messages: Parents before their children.
        hidden: Ids to leave out.
    """
    above: dict[str | None, str | None] = {None: None}
    kept = []
    for message in messages:
        parent = above[message["parent_id"]]
        if message["id"] in hidden:
            above[message["id"]] = parent
        else:
            above[message["id"]] = message["id"]
            kept.append({**message, "parent_id": parent})
    return kept


def in_turns(messages: Sequence[Json]) -> tuple[list[Json], dict[str, str]]:
    """Prompts and answers in turns, as our conversations are: each path says what it said before.

    What somebody says after themselves is joined to what they said. Where paths part there, it is
    another version of it. An answer to nothing gets a prompt.

    Args:
        messages: Parents before their children; prompts and answers only.

    Returns:
        The messages; and for each id, the id of the message it is part of now.
    """
    num_children: dict[str | None, int] = defaultdict(int)
    for message in messages:
        num_children[message["parent_id"]] += 1
    into: dict[str, Json] = {}
    kept: list[Json] = []
    for message in messages:
        parent = into.get(message["parent_id"] or "")
        added = {**message, "parent_id": parent["id"] if parent is not None else None}
        if parent is not None and parent["role"] == message["role"]:
            text = f"{parent['text']}\n\n{message['text']}"
            if num_children[message["parent_id"]] == 1:
                parent["text"] = text
                into[message["id"]] = parent
                continue
            added |= {"text": text, "parent_id": parent["parent_id"]}
        elif parent is None and message["role"] == "assistant":
            prompt = {"id": f"before {message['id']}", "parent_id": None, "role": "user"}
            kept.append({**prompt, "text": "…", "created_s": message["created_s"]})
            added["parent_id"] = prompt["id"]
        into[message["id"]] = added
        kept.append(added)
    return kept, {name: message["id"] for name, message in into.items()}


def own_id(*parts: object) -> str:
    """An id that the same file gives again: what was imported once isn't imported twice."""
    raw = "\0".join(map(str, parts)).encode("utf-8", "replace")
    return hashlib.sha256(raw).hexdigest()[:32]


def title_of(title: object, messages: Sequence[Json]) -> str:
    """A title, or the first words that were said."""
    if isinstance(title, str) and title.strip():
        return title.strip()
    first = next((message["text"] for message in messages if message["text"].strip()), "")
    words = " ".join(first.split())
    return words[:_MOST_TITLE_CHARS] or "Imported conversation"


def refused_conversation(raw: object, why: str) -> ConversationFileError:
    """The error of one conversation of a file.

    Args:
        raw: The conversation, whose title is told if it has one.
        why: What is wrong with it.
    """
    title = raw.get("title") if isinstance(raw, dict) else None
    name = title[:80] if isinstance(title, str) and title.strip() else "…"
    return ConversationFileError(f"The conversation “{name}” can't be read: {why}.", _HINT)
