"""Convert answers to and from rows of the database."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from medusa_core.chats.answer_text import text_spans
from medusa_core.chats.history.packing import (
    done_as_json,
    done_from_json,
    reasoning_as_json,
    reasoning_from_json,
    settings_as_json,
    settings_from_json,
    spans_as_json,
    spans_from_json,
)
from medusa_core.chats.history.part import clean
from medusa_core.chats.history.records import (
    AnswerState,
    StoredAnswer,
)
from medusa_core.chats.reasoning import AnswerSpans, answer_text
from medusa_core.chats.rounds import RoundCall
from medusa_core.messages import GenerateSettings, GenerationDone, ReasoningFormat, Role
from medusa_core.system.storage.database import SqlRow

log = logging.getLogger(__name__)

T = TypeVar("T")

ANSWER_COLUMNS = "model, model_key, state, settings, done, begins_inside, reasoning, spans"


def row_of(answer: StoredAnswer) -> SqlRow:
    """Return the values of `ANSWER_COLUMNS`."""
    return (
        clean(answer.model),
        clean(answer.model_key),
        answer.state.value,
        json.dumps(settings_as_json(answer.settings)),
        done_text(answer.done),
        answer.begins_inside,
        reasoning_format_text(answer.reasoning),
        spans_text(answer.spans),
    )


def done_text(done: GenerationDone | None) -> str | None:
    """Return the figures of an answer as JSON."""
    return None if done is None else json.dumps(done_as_json(done))


def reasoning_format_text(tags: ReasoningFormat | None) -> str | None:
    """Return a reasoning format as JSON."""
    return None if tags is None else json.dumps(reasoning_as_json(tags), ensure_ascii=False)


def spans_text(spans: AnswerSpans | None) -> str | None:
    """Return reasoning spans as JSON."""
    return None if spans is None else json.dumps(spans_as_json(spans))


def answer_of(
    row: SqlRow, text: str, packs: Iterable[bytes], calls: tuple[RoundCall, ...]
) -> StoredAnswer:
    """Return the answer of a row of `ANSWER_COLUMNS`, with its text, packed steps and calls."""
    model, model_key, state, settings, done, begins_inside, reasoning, spans = row
    return StoredAnswer(
        model,
        model_key,
        _state(state),
        _parsed(settings, settings_from_json) or GenerateSettings(),
        _parsed(done, lambda raw: done_from_json(raw, text)),
        tuple(packs),
        bool(begins_inside),
        reasoning_of(reasoning),
        spans_of(spans, text),
        calls,
    )


def _state(name: str) -> AnswerState:
    """Parse a state; unknown ones mean that the answer was cut."""
    try:
        return AnswerState(name)
    except ValueError:
        return AnswerState.CUT


def reasoning_of(text: str | None) -> ReasoningFormat | None:
    """Parse a reasoning format; None if it is damaged."""
    return _parsed(text, reasoning_from_json)


def spans_of(text: str | None, answer: str) -> AnswerSpans | None:
    """Parse reasoning spans; None if they are damaged or don't fit the answer."""
    return _parsed(text, lambda raw: spans_from_json(raw, len(answer)))


def _parsed(text: str | None, read: Callable[[Any], T]) -> T | None:
    """Parse stored JSON; None if it is missing, damaged or of another version."""
    if text is None:
        return None
    try:
        return read(json.loads(text))
    except Exception as error:  # noqa: BLE001 - a changed row must not hide its conversation
        log.debug("a value of an answer can't be read: %r", error)
        return None


def without_reasoning(text: str, role: str | None, spans: str | None) -> str:
    """Return a message's text without reasoning.

    Args:
        text: Text of the message.
        role: Role of the message, as stored; None for a title.
        spans: Reasoning spans, as stored.
    """
    if role != Role.ASSISTANT.value:
        return text
    known = spans_of(spans, text)
    return answer_text(text, text_spans(text) if known is None else known)
