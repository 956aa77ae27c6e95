"""Convert conversations to and from JSON of `resources/schemas/conversations-4.json`."""

from __future__ import annotations

import base64
import json
import logging
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import PurePath, PureWindowsPath
from typing import Any

import fastjsonschema

from medusa_core.chats.answer_text import find_spans
from medusa_core.chats.attachments.attachment import Attachment
from medusa_core.chats.history.call_rows import content_of, images_of
from medusa_core.chats.history.old_answers import began_inside
from medusa_core.chats.history.packing import (
    done_as_json,
    done_from_json,
    settings_as_json,
    settings_from_json,
    spans_as_json,
    spans_from_json,
)
from medusa_core.chats.history.records import (
    AnswerState,
    ConversationInfo,
    Stored,
    StoredAnswer,
)
from medusa_core.chats.reasoning import AnswerSpans
from medusa_core.chats.rounds import Approval, CallState, RoundCall, ToolResult
from medusa_core.messages import (
    THINK_TAGS,
    Content,
    GenerationDone,
    ImagePart,
    PassagePart,
    Role,
    ToolCall,
    content_passages,
    with_passages,
)
from medusa_core.system.resources import resources_dir

log = logging.getLogger(__name__)

FORMAT = "medusa-chat-conversations"
VERSION = 4
_SCHEMA = "conversations-4.json"
_LATEST_S = 1e11

Json = dict[str, Any]


def conversation_as_json(
    info: ConversationInfo,
    folder: str | None,
    settings: str,
    messages: Sequence[Stored],
    damaged: set[str],
) -> Json:
    """Convert a conversation with all its paths.

    Args:
        info: The conversation without its messages.
        folder: Name of its folder.
        settings: Settings of the conversation, as JSON of the window.
        messages: All messages.
        damaged: Receives the ids of answers with damaged steps, which are left out.
    """
    return {
        "id": info.id,
        "title": info.title,
        "has_own_title": info.has_own_title,
        "folder": folder,
        "is_pinned": info.is_pinned,
        "created_s": info.created_s,
        "changed_s": info.changed_s,
        "leaf_id": info.leaf_id,
        "settings": settings,
        "messages": [_message(message, damaged) for message in messages],
    }


def _message(message: Stored, damaged: set[str]) -> Json:
    """Convert a message to JSON."""
    raw: Json = {
        "id": message.id,
        "parent_id": message.parent_id,
        "role": message.role.value,
        "text": message.text,
        "created_s": message.created_s,
    }
    if message.attachments:
        raw["attachments"] = [
            {
                "name": a.name,
                "media_type": a.media_type,
                "text": a.text,
                "num_bytes": a.num_bytes,
            }
            for a in message.attachments
        ]
    if images := _images(message.content):
        raw["images"] = images
    if passages := content_passages(message.content):
        raw["passages"] = [_passage(passage) for passage in passages]
    if message.calls:
        raw["calls"] = [_call(call) for call in message.calls]
    if message.answer is not None:
        raw["answer"] = _answer(message.answer)
        if len(raw["answer"].get("steps", ())) < len(message.answer.packed_steps):
            damaged.add(message.id)
    return raw


def _images(content: Content) -> list[Json]:
    """Convert the images of a content to JSON."""
    return [
        {
            "position": position,
            "media_type": image.media_type,
            "data": base64.b64encode(image.data).decode(),
        }
        for position, image in images_of(content)
    ]


def _passage(passage: PassagePart) -> Json:
    """Convert a passage to JSON; the path of its file is left out."""
    raw: Json = {
        "number": passage.number,
        "document": passage.document,
        "place": passage.place,
        "text": passage.text,
        "score": passage.score,
        "key": passage.key,
    }
    ranks = {"bm25_rank": passage.bm25_rank, "vector_rank": passage.vector_rank}
    return raw | {name: rank for name, rank in ranks.items() if rank is not None}


def _call(call: RoundCall) -> Json:
    """Convert a tool call with its result to JSON."""
    raw: Json = {
        **call.call._asdict(),
        "state": call.state.value,
        "approval": call.approval.value,
    }
    if (result := call.result) is not None:
        raw["result"] = {
            "text": result.text,
            "is_error": result.is_error,
            "duration_s": result.duration_s,
        }
        if images := _images(result.content):
            raw["result"]["images"] = images
    return raw


def _answer(answer: StoredAnswer) -> Json:
    """Convert an answer to JSON; paths of local models are left out."""
    key = answer.model_key
    # The path of a folder may have the user's name, and the file may be shared.
    is_folder = PurePath(key).is_absolute() or PureWindowsPath(key).is_absolute()
    raw: Json = {
        "model": answer.model,
        "model_key": "" if is_folder else key,
        "state": answer.state.value,
        "settings": settings_as_json(answer.settings),
    }
    if answer.spans is not None:
        raw["begins_inside"] = answer.begins_inside
        raw["spans"] = spans_as_json(answer.spans)
    if answer.done is not None:
        raw["done"] = done_as_json(answer.done)
    packs = [pack for pack in map(_unpacked, answer.packed_steps) if pack is not None]
    if packs:
        raw["steps"] = packs
    return raw


def _unpacked(pack: bytes) -> Json | None:
    """Unpack steps; None if the pack is damaged."""
    try:
        raw: Json = json.loads(zlib.decompress(pack), parse_constant=_refuse)
        _validator("steps")(raw)
    except Exception as error:  # noqa: BLE001 - a damaged byte must not stop the export
        log.debug("a part of an answer's steps isn't exported: %r", error)
        return None
    return raw


def _refuse(name: str) -> None:
    """Refuse NaN and infinity, which JSON doesn't have."""
    raise ValueError(f"{name} is no number")


def message_from_json(raw: Json, conversation_id: str) -> Stored:
    """Convert a message that was validated against the schema."""
    role, answer = Role(raw["role"]), None
    if role is Role.ASSISTANT:
        answer = _answer_from_json(raw.get("answer"), raw["text"])
        answer = replace(answer, calls=tuple(map(_call_from_json, raw.get("calls", ()))))
    return Stored(
        raw["id"],
        conversation_id,
        raw["parent_id"],
        role,
        _content_from_json(raw),
        time_of(raw["created_s"]),
        tuple(Attachment(**attachment) for attachment in raw.get("attachments", ())),
        answer,
    )


def _content_from_json(raw: Json) -> Content:
    """Convert text, images and passages; images that can't be decoded are left out."""
    images = []
    for image in raw.get("images", ()):
        with suppress(ValueError):
            data = base64.b64decode(image["data"], validate=True)
            images.append((image["position"], ImagePart(image["media_type"], data)))
    passages = (PassagePart(**passage) for passage in raw.get("passages", ()))
    return with_passages(content_of(raw["text"], images), passages)


def _call_from_json(raw: Json) -> RoundCall:
    """Convert a tool call, which doesn't run here."""
    call = ToolCall(raw["call_id"], raw["name"], raw["arguments"])
    found = None
    if (result := raw.get("result")) is not None:
        content = _content_from_json(result)
        found = ToolResult(content, result["is_error"], time_of(result["duration_s"]))
    return RoundCall(call, CallState(raw["state"]), Approval(raw["approval"]), found).not_run


def _answer_from_json(raw: Json | None, text: str) -> StoredAnswer:
    """Convert an answer that was validated against the schema."""
    if raw is None:
        return StoredAnswer("", "", AnswerState.DONE)
    packs = (json.dumps(steps, ensure_ascii=True) for steps in raw.get("steps", ()))
    state = AnswerState(raw["state"])
    answer = StoredAnswer(
        raw["model"],
        raw["model_key"],
        # It is not generated further.
        AnswerState.CUT if state is AnswerState.STREAMING else state,
        settings_from_json(raw["settings"]),
        _done_from_json(raw.get("done"), text),
        tuple(zlib.compress(pack.encode()) for pack in packs),
        raw.get("begins_inside", False),
        spans=_spans_from_json(raw.get("spans"), text),
    )
    is_old = "spans" not in raw and THINK_TAGS.end in text
    if is_old and began_inside(text, json.dumps(raw["settings"]), answer.steps):
        spans = find_spans((), text, THINK_TAGS, begins_inside=True)
        answer = replace(answer, begins_inside=True, spans=spans)
    return answer


def _spans_from_json(raw: Any, text: str) -> AnswerSpans | None:
    """Parse reasoning spans; None if they are missing or invalid."""
    try:
        return None if raw is None else spans_from_json(raw, len(text))
    except (TypeError, ValueError):
        return None


def _done_from_json(raw: Json | None, text: str) -> GenerationDone | None:
    """Parse figures; None if they are of another version."""
    try:
        return None if raw is None else done_from_json(raw, text)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None


def time_of(value: float) -> float:
    """Return a time that can be formatted; 0 for other numbers."""
    return float(value) if 0 <= value < _LATEST_S else 0.0


def conversation_validator() -> Callable[[object], object]:
    """Return the validator of a conversation."""
    return _validator("conversation")


@cache
def _validator(name: str) -> Callable[[object], object]:
    """Return the validator of a definition of the schema."""
    schema = json.loads((resources_dir() / "schemas" / _SCHEMA).read_text(encoding="utf-8"))
    definition = {**schema["definitions"][name], "definitions": schema["definitions"]}
    return fastjsonschema.compile({"$schema": schema["$schema"], **definition})
