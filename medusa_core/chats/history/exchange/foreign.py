"""Convert conversations of ChatGPT, LM Studio and OpenAI's API to this program's JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from medusa_core.chats.history.exchange.grown import (
    alternated,
    in_order,
    own_id,
    refused_conversation,
    title_of,
    without_hidden,
)
from medusa_core.chats.history.exchange.our_json import Json
from medusa_core.errors import UnknownKindError
from medusa_core.i18n import tr

_HINT = tr(
    "Choose a file of conversations: ours, ChatGPT's conversations.json, one of LM Studio, or "
    "messages in the form of OpenAI's API."
)
_DATA_URL = re.compile(r"data:(image/[\w.+-]+);base64,([A-Za-z0-9+/=]+)")
_ROLES = ("system", "user", "assistant")


def is_chatgpt(raw: Any) -> bool:
    """Return whether a value is a conversation of ChatGPT's export."""
    return isinstance(raw, dict) and "mapping" in raw


def is_lm_studio(raw: Any) -> bool:
    """Return whether a value is a conversation of LM Studio."""
    return (
        isinstance(raw, dict)
        and isinstance(raw.get("messages"), list)
        and all(
            isinstance(m, dict) and isinstance(m.get("versions"), list) for m in raw["messages"]
        )
    )


def is_openai(raw: Any) -> bool:
    """Return whether a value has messages in the form of OpenAI's API."""
    return (
        isinstance(raw, dict)
        and isinstance(raw.get("messages"), list)
        and all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in raw["messages"])
    )


def unknown() -> UnknownKindError:
    """Return the error for a file of another kind."""
    return UnknownKindError("The file holds no conversations that can be read.", _HINT)


def unknown_entry() -> UnknownKindError:
    """Return the error for an entry of another kind."""
    return UnknownKindError("An entry of the file is no conversation.", _HINT)


def from_chatgpt(raw: Json) -> Json:
    """Convert a conversation of ChatGPT's export: all branches, without hidden messages.

    Raises:
        ConversationFileError: The tree of messages is inconsistent.
    """
    if not isinstance(raw["mapping"], dict):
        raise refused_conversation(raw, tr("it has no messages"))
    title, created_s = raw.get("title"), _number(raw.get("create_time"))
    name = own_id("chatgpt", raw.get("conversation_id") or raw.get("id") or "", title, created_s)
    nodes: list[Json] = []
    hidden: set[str] = set()
    results: dict[str, str] = {}  # texts of tools, by their nodes
    for key, node in raw["mapping"].items():
        if not isinstance(node, dict):
            raise refused_conversation(raw, tr("one of its messages is empty"))
        message = node.get("message")
        record = _chatgpt_message(message, key) if isinstance(message, dict) else None
        if record is not None and record["role"] == "tool":
            results[key], record = record["text"], None
        if record is None:
            hidden.add(key)
            record = {"role": "user", "text": "", "created_s": 0.0}
        parent = node.get("parent")
        nodes.append(
            {**record, "id": key, "parent_id": parent if isinstance(parent, str) else None}
        )
    _add_chatgpt_results(nodes, results)
    ordered = without_hidden(in_order(nodes, str(title)), hidden)
    about = _Metadata(name, title, created_s, _number(raw.get("update_time")), _system_of(ordered))
    visible, part_of = alternated(_without_system(ordered))
    return about.conversation(visible, _visible_leaf(raw.get("current_node"), nodes, part_of))


def _add_chatgpt_results(nodes: list[Json], results: dict[str, str]) -> None:
    """Give calls their results: a tool's node is a descendant of the message that calls it."""
    by_id = {node["id"]: node for node in nodes}
    for key, text in results.items():
        seen, at = {key}, by_id[key]["parent_id"]
        while at in results and at not in seen:
            seen.add(at)
            at = by_id[at]["parent_id"]
        calls = by_id[at].get("calls") if at in by_id else None
        if calls:
            before = calls[0].get("result", {"text": ""})["text"]
            calls[0] |= _ended("\n\n".join(filter(None, (before, text))))


def _chatgpt_message(raw: Json, key: str) -> Json | None:
    """Convert a message; None for a hidden one.

    Args:
        key: Id of its node.
    """
    author, content = raw.get("author"), raw.get("content")
    if not isinstance(author, dict) or not isinstance(content, dict) or raw.get("weight") == 0:
        return None
    metadata = raw.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    role, text = author.get("role"), _chatgpt_text(content)
    is_hidden = metadata.get("is_visually_hidden_from_conversation") is True
    if role == "tool":
        return {"role": role, "text": _chatgpt_output(content) or text}
    if role not in _ROLES or not text.strip() or is_hidden:
        return None
    record = {"role": role, "text": text, "created_s": _number(raw.get("create_time"))}
    recipient = raw.get("recipient")
    if role == "assistant" and isinstance(recipient, str) and recipient != "all":
        code = content.get("text") if content.get("content_type") == "code" else text
        record |= {"text": "", "calls": [_call(key, recipient, _arguments(code))]}
    return {**record, **_answer(role, metadata.get("model_slug"))}


def _chatgpt_output(content: Json) -> str:
    """Return the output of a tool; empty if it is no text."""
    return next((str(content[key]) for key in ("text", "result") if content.get(key)), "")


def _chatgpt_text(content: Json) -> str:
    """Return the text of a message's content; empty for images and tool output."""
    kind, parts = content.get("content_type"), content.get("parts")
    if kind == "code" and isinstance(content.get("text"), str):
        return f"```\n{content['text']}\n```"
    if kind not in ("text", "multimodal_text") or not isinstance(parts, list):
        return ""
    return "\n\n".join(part for part in parts if isinstance(part, str) and part)


def _visible_leaf(leaf: Any, nodes: list[Json], part_of: dict[str, str]) -> str | None:
    """Return the id of the message that a node, or its first visible ancestor, became."""
    parents = {node["id"]: node["parent_id"] for node in nodes}
    at = leaf if isinstance(leaf, str) else None
    while at is not None and at not in part_of:
        at = parents.get(at)
    return None if at is None else part_of[at]


def from_lm_studio(raw: Json, file_name: str) -> Json:
    """Convert a conversation of LM Studio; versions of a message become branches.

    Raises:
        ConversationFileError: A version has another form.
    """
    created_s = _number(raw.get("createdAt")) / 1000
    name = own_id("lm-studio", file_name, created_s)
    model = raw.get("lastUsedModel")
    model = model.get("identifier") if isinstance(model, dict) else None
    messages: list[Json] = []
    parent: str | None = None
    for number, message in enumerate(raw["messages"]):
        versions = [_lm_studio_version(version, model) for version in message["versions"]]
        chosen = message.get("currentlySelected")
        ends: dict[int, str] = {}
        for place, rounds in enumerate(versions):
            before = parent
            for index, record in enumerate(rounds):
                key = f"{number} {place}" + (f" {index}" if index else "")
                messages.append({**record, "id": key, "parent_id": before, "created_s": created_s})
                ends[place] = before = key
        if type(chosen) is int and chosen in ends:
            parent = ends[chosen]
        elif ends:
            parent = messages[-1]["id"]
    system = _lm_studio_system(raw) or _system_of(messages)
    about = _Metadata(name, raw.get("name"), created_s, created_s, system)
    visible, part_of = alternated(_without_system(messages))
    return about.conversation(visible, _visible_leaf(parent, messages, part_of))


def _lm_studio_system(raw: Json) -> str:
    """Return the system prompt from the settings."""
    config = raw.get("perChatPredictionConfig")
    fields = config.get("fields") if isinstance(config, dict) else None
    for field in fields if isinstance(fields, list) else ():
        is_prompt = isinstance(field, dict) and field.get("key") == "llm.prediction.systemPrompt"
        if is_prompt and isinstance(field.get("value"), str):
            return str(field["value"])
    system = raw.get("systemPrompt")
    return system if isinstance(system, str) else ""


def _lm_studio_version(raw: Any, last_model: Any) -> list[Json]:
    """Convert a version of a message to its rounds; none for an empty one."""
    if not isinstance(raw, dict):
        raise refused_conversation(None, tr("a version of a message is empty"))
    role = raw.get("role")
    if role not in _ROLES:
        return []
    rounds: list[Json] = [{"text": ""}]
    if raw.get("type") == "multiStep":
        steps = raw.get("steps")
        for step in steps if isinstance(steps, list) else ():
            _add_step(rounds, step)
    else:
        texts = list(_block_texts(raw.get("content")))
        rounds[0]["text"] = "\n\n".join(text for text in texts if text)
    sender = raw.get("senderInfo")
    model = sender.get("senderName") if isinstance(sender, dict) else None
    answer = _answer(role, model or last_model)
    found = (one for one in rounds if one["text"].strip() or "calls" in one)
    return [{"role": role, **one, **answer} for one in found]


def _add_step(rounds: list[Json], step: Any) -> None:
    """Add a step of an answer to its rounds; text after a call begins another round."""
    if text := _step_text(step):
        if "calls" in rounds[-1]:
            rounds.append({"text": ""})
        rounds[-1]["text"] = "\n\n".join(filter(None, (rounds[-1]["text"], text)))
    content = step.get("content") if isinstance(step, dict) else None
    for block in content if isinstance(content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        call_id = str(block.get("callId", "")) if kind else ""
        if kind == "toolCallRequest":
            arguments = _arguments(block.get("parameters"))
            call = _call(call_id, str(block.get("name", "")), arguments)
            rounds[-1].setdefault("calls", []).append(call)
        elif kind == "toolCallResult":
            for call in rounds[-1].get("calls", ()):
                if call["call_id"] == call_id:
                    call |= _ended(_result_text(block.get("content")))


def _result_text(content: Any) -> str:
    """Return the text of a tool's result, which may be content blocks as JSON text."""
    if isinstance(content, str):
        text = content
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            return text
    texts = list(_block_texts(content))
    return "\n\n".join(texts) if texts else json.dumps(content, ensure_ascii=False)


def from_openai(raw: Json) -> Json:
    """Convert messages in the form of OpenAI's API, with tool calls and images."""
    created_s = _number(raw.get("created") or raw.get("created_at"))
    messages: list[Json] = []
    calls: dict[str, Json] = {}
    for number, message in enumerate(raw["messages"]):
        role = {"developer": "system"}.get(message["role"], message["role"])
        text, images = _openai_content(message.get("content"))
        if role == "tool":
            call = calls.get(str(message.get("tool_call_id")))
            if call is not None:
                call |= _ended(text, images)
            continue
        record = {"role": role, "text": text, "created_s": created_s}
        if images and role == "user":
            record["images"] = images
        if role == "assistant" and (called := list(_openai_calls(message.get("tool_calls")))):
            record["calls"] = called
            calls |= {call["call_id"]: call for call in called}
        if role in _ROLES and (text.strip() or len(record) > len(("role", "text", "created_s"))):
            before = messages[-1]["id"] if messages else None
            answer = _answer(role, raw.get("model"))
            messages.append({**record, **answer, "id": str(number), "parent_id": before})
    if not messages:
        raise refused_conversation(raw, tr("it has no messages"))
    name = own_id("openai", json.dumps(raw["messages"], sort_keys=True))
    about = _Metadata(name, raw.get("title"), created_s, created_s, _system_of(messages))
    visible, part_of = alternated(_without_system(messages))
    leaf = messages[-1]["id"] if messages else None
    return about.conversation(visible, _visible_leaf(leaf, messages, part_of))


def _openai_content(content: Any) -> tuple[str, list[Json]]:
    """Return the text of a message's content, and its images that are part of the file."""
    if isinstance(content, str):
        return content, []
    text, images = "", []
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        if isinstance(part.get("text"), str):
            text += part["text"]
        url = part.get("image_url")
        url = url.get("url") if isinstance(url, dict) else url
        if isinstance(url, str) and (found := _DATA_URL.fullmatch(url)):
            images.append({"position": len(text), "media_type": found[1], "data": found[2]})
    return text, images


def _openai_calls(raw: Any) -> Iterator[Json]:
    """Yield the tool calls of a message."""
    for call in raw if isinstance(raw, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            arguments = _arguments(function.get("arguments"))
            yield _call(str(call.get("id", "")), str(function.get("name", "")), arguments)


def _arguments(raw: Any) -> str:
    """Return arguments of a call as a JSON object; a text that is none becomes its `input`."""
    if isinstance(raw, str):
        try:
            is_object = isinstance(json.loads(raw or "{}"), dict)
        except (ValueError, RecursionError):
            is_object = False
        return (raw or "{}") if is_object else json.dumps({"input": raw}, ensure_ascii=False)
    return json.dumps(raw if isinstance(raw, dict) else {}, ensure_ascii=False)


def _call(call_id: str, name: str, arguments: str) -> Json:
    """Return a call without a result, which doesn't run here."""
    call = {"call_id": call_id, "name": name, "arguments": arguments}
    return {**call, "state": "interrupted", "approval": ""}


def _ended(text: str, images: Sequence[Json] = ()) -> Json:
    """Return the fields of a call that ended."""
    result: Json = {"text": text, "is_error": False, "duration_s": 0.0}
    return {"state": "done", "result": {**result, "images": images} if images else result}


def _step_text(step: Any) -> str:
    """Return the text of a step of an answer, with reasoning in `<think>` tags."""
    if not isinstance(step, dict) or step.get("type") != "contentBlock":
        return ""
    text = "".join(_block_texts(step.get("content")))
    style = step.get("style")
    is_thought = isinstance(style, dict) and style.get("type") == "thinking"
    return f"<think>\n{text}\n</think>" if is_thought and text else text


def _block_texts(content: Any) -> Iterator[str]:
    """Yield the texts of content blocks."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else ():
        if isinstance(block, dict) and isinstance(block.get("text"), str):
            yield block["text"]


def _answer(role: Any, model: Any) -> Json:
    """Return the data of an answer; empty for a prompt."""
    if role != "assistant":
        return {}
    name = model if isinstance(model, str) else ""
    record = {"model": name, "model_key": "", "state": "done", "settings": {}}
    return {"answer": record}


def _system_of(messages: list[Json]) -> str:
    """Return the system prompt."""
    return next((message["text"] for message in messages if message["role"] == "system"), "")


def _without_system(messages: list[Json]) -> list[Json]:
    """Remove system messages, which become a setting."""
    return without_hidden(messages, {m["id"] for m in messages if m["role"] == "system"})


class _Metadata(NamedTuple):
    """Data of a conversation without its messages."""

    name: str
    title: Any
    created_s: float
    changed_s: float
    system: str

    def conversation(self, messages: list[Json], leaf: str | None) -> Json:
        """Return the conversation, with new ids: those of other programs may be ambiguous."""
        settings = {"system_prompt": self.system}
        return {
            "id": self.name,
            "title": title_of(self.title, messages),
            "has_own_title": isinstance(self.title, str) and bool(self.title.strip()),
            "folder": None,
            "is_pinned": False,
            "created_s": self.created_s,
            "changed_s": self.changed_s or self.created_s,
            "leaf_id": None if leaf is None else own_id(self.name, leaf),
            "settings": json.dumps(settings) if self.system.strip() else "",
            "messages": [self._message(message) for message in messages],
        }

    def _message(self, raw: Json) -> Json:
        """Return a message with new ids."""
        parent = raw["parent_id"]
        return {
            **raw,
            "id": own_id(self.name, raw["id"]),
            "parent_id": None if parent is None else own_id(self.name, parent),
            "created_s": raw["created_s"] or self.created_s,
        }


def _number(value: Any) -> float:
    """Return a time or count; 0 if it is invalid."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        return float(value) if is_number and 0 <= value < 1e15 else 0.0
    except OverflowError:
        return 0.0
