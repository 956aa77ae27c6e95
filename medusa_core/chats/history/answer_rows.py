"""Answers as rows of the file."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

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
from medusa_core.chats.reasoning import AnswerSpans, answer_text, text_spans
from medusa_core.messages import GenerateSettings, GenerationDone, ReasoningFormat, Role
from medusa_core.system.storage.database import SqlRow

log = logging.getLogger(__name__)

ANSWER_COLUMNS = "model, model_key, state, settings, done, begins_inside, reasoning, spans"


def row_of(answer: StoredAnswer) -> SqlRow:
    """The values of `ANSWER_COLUMNS`."""
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
    """Figures as they are written."""
    return None if done is None else json.dumps(done_as_json(done))


def reasoning_format_text(tags: ReasoningFormat | None) -> str | None:
    """A format as it is written."""
    return None if tags is None else json.dumps(reasoning_as_json(tags), ensure_ascii=False)


def spans_text(spans: AnswerSpans | None) -> str | None:
    """Spans as they are written."""
    return None if spans is None else json.dumps(spans_as_json(spans))


def answer_of(row: SqlRow, text: str, packs: Iterable[bytes]) -> StoredAnswer:
    """An answer of the values of `ANSWER_COLUMNS`, its text and its steps."""
    model, model_key, state, settings, done, begins_inside, reasoning, spans = row
    return StoredAnswer(
        model,
        model_key,
        _state(state),
        _settings(settings),
        _done(done, text),
        tuple(packs),
        bool(begins_inside),
        reasoning_of(reasoning),
        spans_of(spans, text),
    )


def _state(name: str) -> AnswerState:
    try:
        return AnswerState(name)
    except ValueError:
        return AnswerState.CUT


def _settings(text: str) -> GenerateSettings:
    try:
        return settings_from_json(json.loads(text))
    except Exception as error:  # noqa: BLE001 - a changed row must not hide its conversation
        log.debug("the settings of an answer can't be read: %r", error)
        return GenerateSettings()


def _done(text: str | None, answer: str) -> GenerationDone | None:
    """Figures, unless they are damaged or those of another version."""
    if text is None:
        return None
    try:
        return done_from_json(json.loads(text), answer)
    except Exception as error:  # noqa: BLE001 - as above
        log.debug("the figures of an answer can't be read: %r", error)
        return None


def reasoning_of(text: str | None) -> ReasoningFormat | None:
    """A format that was written; None where it can't be read."""
    if text is None:
        return None
    try:
        return reasoning_from_json(json.loads(text))
    except Exception as error:  # noqa: BLE001 - as above
        log.debug("how an answer sets reasoning apart can't be read: %r", error)
        return None


def spans_of(text: str | None, answer: str) -> AnswerSpans | None:
    """Spans that were written; None where they can't be read or aren't those of the answer."""
    if text is None:
        return None
    try:
        return spans_from_json(json.loads(text), len(answer))
    except Exception as error:  # noqa: BLE001 - as above
        log.debug("which of an answer is reasoning can't be read: %r", error)
        return None


def said(text: str, role: str | None, spans: str | None) -> str:
    """A message's text without reasoning.

    Args:
        text: All of it.
        role: Who speaks, as it is written; None for a title.
        spans: As they are written.
    """
    if role != Role.ASSISTANT.value:
        return text
    known = spans_of(spans, text)
    return answer_text(text, text_spans(text) if known is None else known)
