"""Serialize steps, settings and figures of an answer."""

from __future__ import annotations

import json
import logging
import math
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from typing import Any, get_type_hints

from medusa_core.chats.reasoning import AnswerSpan, AnswerSpans
from medusa_core.messages import (
    GenerateSettings,
    GenerationDone,
    ReasoningFormat,
    StepDone,
    StepTimes,
    TokenSource,
)
from medusa_core.system.files.record_json import read_value

log = logging.getLogger(__name__)

_MOST = 1 << 53  # larger integers are damaged counts
# Names in the history that differ from those of the record.
_STORED_NAMES = {"num_plain_steps": "num_rested"}


def pack_steps(steps: Sequence[StepDone]) -> bytes:
    """Compress steps of one answer."""
    raw = json.dumps(steps_as_json(steps), ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(raw.encode(), 6)


def unpack_steps(packed: Iterable[bytes]) -> tuple[StepDone, ...]:
    """Unpack the steps of several packs in order, without damaged packs."""
    steps: list[StepDone] = []
    for pack in packed:
        try:
            steps += steps_from_json(json.loads(zlib.decompress(pack)))
        except Exception as error:  # noqa: BLE001 - only colours of the text are lost
            log.debug("a part of an answer's steps can't be read: %r", error)
    return tuple(steps)


def steps_as_json(steps: Sequence[StepDone]) -> dict[str, Any]:
    """Convert steps to JSON, with tables of the few senders and sources."""
    senders: dict[tuple[str, str], int] = {}
    sources: dict[TokenSource, int] = {}

    def numbers(found: Iterable[TokenSource]) -> list[int]:
        """Return the table indices of token sources, adding new ones."""
        return [sources.setdefault(source, len(sources)) for source in found]

    rows = [
        [
            senders.setdefault((step.session_id, step.request_id), len(senders)),
            step.step,
            step.token_ids,
            # Bytes as Latin-1 characters: pieces may be parts of UTF-8 characters.
            [piece.decode("latin-1") for piece in step.pieces],
            numbers(step.sources),
            step.num_visible_bytes,
            step.num_rows,
            numbers(step.node_sources),
            step.times,
            step.step_s,
            step.num_context_tokens,
        ]
        for step in steps
    ]
    return {"senders": list(senders), "sources": list(sources), "steps": rows}


def steps_from_json(raw: dict[str, Any]) -> list[StepDone]:
    """Convert JSON of `steps_as_json` back; other JSON raises any exception."""
    senders = raw["senders"]
    sources = [TokenSource(drafter, head) for drafter, head in raw["sources"]]
    steps = []
    for sender, step, ids, pieces, of, visible, rows, nodes, times, step_s, context in raw["steps"]:
        session_id, request_id = senders[sender]
        steps.append(
            StepDone(
                session_id,
                request_id,
                _count(step),
                tuple(map(_count, ids)),
                tuple(piece.encode("latin-1") for piece in pieces),
                tuple(sources[number] for number in of),
                _count(visible),
                _count(rows),
                tuple(sources[number] for number in nodes),
                StepTimes(*map(_number, times)),
                _number(step_s),
                _count(context),
            )
        )
    return steps


def _count(value: object) -> int:
    """Check that a value is a small non-negative integer."""
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError("a count of a step is invalid")
    return value


def _number(value: Any) -> float:
    """Check that a value is a finite number."""
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a number of a step is not finite")
    return number


def settings_as_json(settings: GenerateSettings) -> dict[str, Any]:
    """Convert settings to JSON."""
    return {name: getattr(settings, name) for name in _kinds(GenerateSettings)}


def settings_from_json(raw: dict[str, Any]) -> GenerateSettings:
    """Convert JSON to settings, without unknown and invalid ones."""
    values = {}
    for name, kind in _kinds(GenerateSettings).items():
        if name in raw:
            with suppress(ValueError):
                values[name] = _read(kind, raw[name])
    return GenerateSettings(**values)


def done_as_json(done: GenerationDone) -> dict[str, Any]:
    """Convert figures to JSON, without the text, which its message has."""
    names = (name for name in _kinds(GenerationDone) if name != "text")
    raw = {_STORED_NAMES.get(name, name): getattr(done, name) for name in names}
    return {**raw, "settings": settings_as_json(done.settings)}


def done_from_json(raw: dict[str, Any], text: str) -> GenerationDone:
    """Convert JSON to figures.

    Raises:
        KeyError: The settings are missing.
        TypeError: A figure is missing.
        ValueError: A figure has another type, or the stop reason is unknown to this version.
    """
    settings = settings_from_json(raw["settings"])
    values = {
        name: _read(kind, raw[stored])
        for name, kind in _kinds(GenerationDone).items()
        if (stored := _STORED_NAMES.get(name, name)) in raw and name not in ("text", "settings")
    }
    return GenerationDone(text=text, settings=settings, **values)


def reasoning_as_json(tags: ReasoningFormat) -> dict[str, Any]:
    """Convert a reasoning format to JSON."""
    return tags._asdict()


def reasoning_from_json(raw: dict[str, Any]) -> ReasoningFormat:
    """Convert JSON to a reasoning format.

    Raises:
        ValueError: A field has another type, or a token id is out of range.
    """
    kinds = _kinds(ReasoningFormat)
    return ReasoningFormat(**{name: _read(kinds[name], raw[name]) for name in raw})


def spans_as_json(spans: AnswerSpans) -> list[list[int]]:
    """Convert spans to lists of start, end, and 1 for reasoning."""
    return [[span.start, span.end, int(span.is_reasoning)] for span in spans]


def spans_from_json(raw: Any, num_chars: int) -> AnswerSpans:
    """Convert JSON to spans.

    Args:
        raw: JSON of `spans_as_json`.
        num_chars: Length of the text.

    Raises:
        ValueError: The spans are out of order, or exceed the text.
        TypeError: The JSON has another form.
    """
    spans = tuple(AnswerSpan(_count(start), _count(end), kind == 1) for start, end, kind in raw)
    ends = [0, *(end for span in spans for end in span[:2]), num_chars]
    if ends != sorted(ends):
        raise ValueError("spans exceed their text")
    return spans


@cache
def _kinds(record: type) -> dict[str, Any]:
    """Return the types of a record's fields by name."""
    return get_type_hints(record)


def _read(kind: Any, value: Any) -> Any:
    """Convert a JSON value to a field's type.

    Raises:
        ValueError: The value has another type, or has NaN or infinity, also nested.
    """
    json.dumps(value, allow_nan=False)
    return read_value(kind, value, "a value")
