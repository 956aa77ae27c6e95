"""Build and check trees of messages."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence

from medusa_core.chats.history.exchange.our_json import Json
from medusa_core.errors import ConversationFileError
from medusa_core.i18n import tr

_HINT = tr("The file is damaged, or was changed: export the conversation again.")
_MOST_TITLE_CHARS = 60


def in_order(messages: Sequence[Json], title: str) -> list[Json]:
    """Sort messages so that parents precede their children, else in the given order.

    Args:
        messages: Messages with `id` and `parent_id`.
        title: Title of the conversation, for errors.

    Raises:
        ConversationFileError: An id is duplicate, a parent is missing, or there is a cycle.
    """
    children: dict[str | None, list[Json]] = defaultdict(list)
    ids = {message["id"] for message in messages}
    if len(ids) < len(messages):
        raise refused_conversation({"title": title}, tr("two messages have the same id"))
    for message in messages:
        if message["parent_id"] is not None and message["parent_id"] not in ids:
            raise refused_conversation({"title": title}, tr("the parent of a message is missing"))
        children[message["parent_id"]].append(message)
    ordered: list[Json] = list(children[None])
    for message in ordered:  # breadth-first: the list grows
        ordered += children.get(message["id"], ())
    if len(ordered) < len(messages):
        raise refused_conversation({"title": title}, tr("its messages form a circle"))
    # The order of versions is that of the file, so a file with parents before children stays as it
    # is.
    index = {id(message): number for number, message in enumerate(messages)}
    if all(index[id(m)] > index[id(p)] for p in messages for m in children.get(p["id"], ())):
        return list(messages)
    return ordered


def without_hidden(messages: Sequence[Json], hidden: set[str]) -> list[Json]:
    """Remove messages; their children become children of their parents.

    Args:
        messages: Messages, parents before their children.
        hidden: Ids of messages to remove.
    """
    ancestors: dict[str | None, str | None] = {None: None}
    kept = []
    for message in messages:
        parent = ancestors[message["parent_id"]]
        if message["id"] in hidden:
            ancestors[message["id"]] = parent
        else:
            ancestors[message["id"]] = message["id"]
            kept.append({**message, "parent_id": parent})
    return kept


def alternated(messages: Sequence[Json]) -> tuple[list[Json], dict[str, str]]:
    """Make prompts and answers alternate on each path, without losing text.

    Consecutive messages of one role are joined; where paths branch between them, each joined
    message becomes a version. An answer after one that calls tools becomes its next round. An
    answer without a prompt gets the prompt `…`.

    Args:
        messages: Prompts and answers, parents before their children.

    Returns:
        The messages; and for each old id, the id of the message that has its text now.
    """
    num_children: dict[str | None, int] = defaultdict(int)
    for message in messages:
        num_children[message["parent_id"]] += 1
    into: dict[str, Json] = {}
    kept: list[Json] = []
    for message in messages:
        parent = into.get(message["parent_id"] or "")
        added = {**message, "parent_id": parent["id"] if parent is not None else None}
        if parent is not None and parent["role"] == message["role"] and "calls" not in parent:
            joined = _joined(parent, message)
            if num_children[message["parent_id"]] == 1:
                parent |= joined
                into[message["id"]] = parent
                continue
            added |= {**joined, "parent_id": parent["parent_id"]}
        elif parent is None and message["role"] == "assistant":
            prompt = {"id": f"before {message['id']}", "parent_id": None, "role": "user"}
            kept.append({**prompt, "text": "…", "created_s": message["created_s"]})
            added["parent_id"] = prompt["id"]
        into[message["id"]] = added
        kept.append(added)
    return kept, {name: message["id"] for name, message in into.items()}


def _joined(first: Json, second: Json) -> Json:
    """Return text, images and tool calls of two messages, of which the first has no calls."""
    text = "\n\n".join(filter(None, (first["text"], second["text"])))
    num_before = len(text) - len(second["text"])
    later = [
        {**image, "position": image["position"] + num_before} for image in second.get("images", ())
    ]
    images = [*first.get("images", ()), *later]
    fields = {"text": text, "images": images, "calls": second.get("calls")}
    return {key: value for key, value in fields.items() if value}


def own_id(*parts: object) -> str:
    """Return a deterministic id, so that a file that is imported twice adds nothing."""
    raw = "\0".join(map(str, parts)).encode("utf-8", "replace")
    return hashlib.sha256(raw).hexdigest()[:32]


def title_of(title: object, messages: Sequence[Json]) -> str:
    """Return the title, or the first words of the conversation."""
    if isinstance(title, str) and title.strip():
        return title.strip()
    first = next((message["text"] for message in messages if message["text"].strip()), "")
    words = " ".join(first.split())
    return words[:_MOST_TITLE_CHARS] or "Imported conversation"


def refused_conversation(raw: object, reason: str) -> ConversationFileError:
    """Return the error for a conversation that can't be imported.

    Args:
        raw: The conversation, whose title goes into the error.
    """
    title = raw.get("title") if isinstance(raw, dict) else None
    name = title[:80] if isinstance(title, str) and title.strip() else "…"
    return ConversationFileError(
        tr("The conversation “{0}” can't be read: {1}.", name, reason), _HINT
    )
