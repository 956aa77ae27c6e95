"""Conversations of other programs, as ours are described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from medusa_core.errors import ConversationFileError
from medusa_core.history.exchange.grown import (
    in_order,
    joined_runs,
    own_id,
    title_of,
    without_hidden,
)
from medusa_core.history.exchange.our_json import Json

_HINT = "Choose a file of conversations: ours, ChatGPT's conversations.json, or one of LM Studio."
_ROLES = ("system", "user", "assistant")


def is_chatgpt(raw: Any) -> bool:
    """Whether a value is one conversation of ChatGPT's export."""
    return isinstance(raw, dict) and isinstance(raw.get("mapping"), dict)


def is_lm_studio(raw: Any) -> bool:
    """Whether a value is a conversation of LM Studio."""
    return (
        isinstance(raw, dict)
        and isinstance(raw.get("messages"), list)
        and all(
            isinstance(m, dict) and isinstance(m.get("versions"), list) for m in raw["messages"]
        )
    )


def unknown() -> ConversationFileError:
    """The error of a file of another kind."""
    return ConversationFileError("The file holds no conversations that can be read.", _HINT)


def from_chatgpt(raw: Json) -> Json:
    """A conversation of ChatGPT's export: all branches, without what is hidden.

    Raises:
        ConversationFileError: Its messages contradict each other.
    """
    title, created_s = raw.get("title"), _number(raw.get("create_time"))
    name = own_id("chatgpt", raw.get("conversation_id") or raw.get("id") or "", title, created_s)
    nodes, hidden = [], set()
    for key, node in raw["mapping"].items():
        if not isinstance(node, dict):
            raise unknown()
        message = node.get("message")
        told = _chatgpt_message(message) if isinstance(message, dict) else None
        if told is None:
            hidden.add(key)
            told = {"role": "system", "text": "", "created_s": 0.0}
        parent = node.get("parent")
        nodes.append({**told, "id": key, "parent_id": parent if isinstance(parent, str) else None})
    ordered = in_order(nodes, str(title))
    visible, part_of = joined_runs(without_hidden(ordered, hidden))
    leaf = _visible_leaf(raw.get("current_node"), raw["mapping"], part_of)
    return _conversation(name, title, created_s, _number(raw.get("update_time")), visible, leaf)


def _chatgpt_message(raw: Json) -> Json | None:
    """What a message says; None where nothing of it is to be seen."""
    author, content = raw.get("author"), raw.get("content")
    if not isinstance(author, dict) or not isinstance(content, dict) or raw.get("weight") == 0:
        return None
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    role, text = author.get("role"), _chatgpt_text(content)
    is_hidden = metadata.get("is_visually_hidden_from_conversation") is True
    if role not in _ROLES or not text.strip() or is_hidden:
        return None
    told = {"role": role, "text": text, "created_s": _number(raw.get("create_time"))}
    return {**told, **_answer(role, metadata.get("model_slug"))}


def _chatgpt_text(content: Json) -> str:
    kind, parts = content.get("content_type"), content.get("parts")
    if kind == "code" and isinstance(content.get("text"), str):
        return f"```\n{content['text']}\n```"
    if kind not in ("text", "multimodal_text") or not isinstance(parts, list):
        return ""
    return "\n\n".join(part for part in parts if isinstance(part, str) and part)


def _visible_leaf(node: Any, mapping: Json, part_of: dict[str, str]) -> str | None:
    """The message that a node or the first one above it became."""
    for _ in range(len(mapping)):
        if not isinstance(node, str) or node in part_of:
            break
        above = mapping.get(node)
        node = above.get("parent") if isinstance(above, dict) else None
    return part_of.get(node) if isinstance(node, str) else None


def from_lm_studio(raw: Json, file_name: str) -> Json:
    """A conversation of LM Studio: versions of a message are branches.

    Raises:
        ConversationFileError: A version isn't what it should be.
    """
    created_s = _number(raw.get("createdAt")) / 1000
    name = own_id("lm-studio", file_name, created_s)
    messages: list[Json] = []
    parent: str | None = None
    for number, message in enumerate(raw["messages"]):
        versions = [_lm_studio_version(version) for version in message["versions"]]
        chosen = message.get("currentlySelected")
        for place, told in enumerate(versions):
            if told is not None:
                key = own_id(name, number, place)
                messages.append({**told, "id": key, "parent_id": parent, "created_s": created_s})
        if isinstance(chosen, int) and 0 <= chosen < len(versions) and versions[chosen] is not None:
            parent = own_id(name, number, chosen)
        elif messages and any(versions):
            parent = messages[-1]["id"]
    return _conversation(name, raw.get("name"), created_s, created_s, messages, parent)


def _lm_studio_version(raw: Any) -> Json | None:
    """What a version says; None where that is nothing."""
    if not isinstance(raw, dict):
        raise unknown()
    role = raw.get("role")
    if raw.get("type") == "multiStep":
        steps = raw.get("steps")
        texts = [_step_text(step) for step in steps] if isinstance(steps, list) else []
    else:
        texts = list(_block_texts(raw.get("content")))
    text = "\n\n".join(text for text in texts if text)
    if role not in _ROLES or not text.strip():
        return None
    sender = raw.get("senderInfo")
    model = sender.get("senderName") if isinstance(sender, dict) else None
    return {"role": role, "text": text, **_answer(role, model)}


def _step_text(step: Any) -> str:
    if not isinstance(step, dict) or step.get("type") != "contentBlock":
        return ""
    text = "".join(_block_texts(step.get("content")))
    style = step.get("style")
    is_thought = isinstance(style, dict) and style.get("type") == "thinking"
    return f"<think>\n{text}\n</think>" if is_thought and text else text


def _block_texts(content: Any) -> Iterator[str]:
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            yield block["text"]


def _answer(role: Any, model: Any) -> Json:
    """What is known of an answer; nothing of a prompt."""
    if role != "assistant":
        return {}
    name = model if isinstance(model, str) else ""
    told = {"model": name, "model_key": "", "state": "done", "settings": {}, "plain_step_s": 0.0}
    return {"answer": told}


def _conversation(
    name: str, title: Any, created_s: float, changed_s: float, messages: list[Json], leaf: Any
) -> Json:
    # Ids of others are theirs: the same message may be in several of their conversations.
    return {
        "id": name,
        "title": title_of(title, messages),
        "has_own_title": isinstance(title, str) and bool(title.strip()),
        "folder": None,
        "is_pinned": False,
        "created_s": created_s,
        "changed_s": changed_s or created_s,
        "leaf_id": None if leaf is None else own_id(name, leaf),
        "settings": "",
        "messages": [
            {
                **message,
                "id": own_id(name, message["id"]),
                "parent_id": message["parent_id"] and own_id(name, message["parent_id"]),
                "created_s": message["created_s"] or created_s,
            }
            for message in messages
        ],
    }


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return float(value) if is_number and 0 <= value < 1e15 else 0.0
    except OverflowError:
        return 0.0
