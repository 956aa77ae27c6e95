"""Answers as rows of the file."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from medusa_core.chats.history.packing import (
    done_as_json,
    done_from_json,
    settings_as_json,
    settings_from_json,
)
from medusa_core.chats.history.part import clean
from medusa_core.chats.history.records import (
    AnswerState,
    StoredAnswer,
)
from medusa_core.messages import GenerateSettings, GenerationDone
from medusa_core.system.storage.database import SqlRow

log = logging.getLogger(__name__)

ANSWER_COLUMNS = "model, model_key, state, settings, done"


def row_of(answer: StoredAnswer) -> SqlRow:
    """The values of `ANSWER_COLUMNS`."""
    return (
        clean(answer.model),
        clean(answer.model_key),
        answer.state.value,
        json.dumps(settings_as_json(answer.settings)),
        done_text(answer.done),
    )


def done_text(done: GenerationDone | None) -> str | None:
    """Figures as they are written."""
    return None if done is None else json.dumps(done_as_json(done))


def answer_of(row: SqlRow, text: str, packs: Iterable[bytes]) -> StoredAnswer:
    """An answer of the values of `ANSWER_COLUMNS`, its text and its steps."""
    model, model_key, state, settings, done = row
    return StoredAnswer(
        model,
        model_key,
        _state(state),
        _settings(settings),
        _done(done, text),
        tuple(packs),
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
