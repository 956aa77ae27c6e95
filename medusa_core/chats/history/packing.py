"""Steps, settings and figures of an answer as bytes and JSON."""

from __future__ import annotations

import json
import logging
import math
import zlib
from collections.abc import Iterable, Sequence
from contextlib import suppress
from enum import Enum
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

from medusa_core.chats.reasoning import AnswerSpan, AnswerSpans
from medusa_core.messages import (
    GenerateSettings,
    GenerationDone,
    ReasoningFormat,
    StepDone,
    StepTimes,
    TokenSource,
)

log = logging.getLogger(__name__)

_MOST = 1 << 53  # whole numbers beyond this are no counts of ours
_MOST_INT = 1 << 64  # a seed may have any bits


def pack_steps(steps: Sequence[StepDone]) -> bytes:
    """Some steps of one answer, small enough to be kept forever."""
    raw = json.dumps(steps_as_json(steps), ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(raw.encode(), 6)


def unpack_steps(packed: Iterable[bytes]) -> tuple[StepDone, ...]:
    """All steps of several packs, in order; what can't be read any more is left out."""
    steps: list[StepDone] = []
    for pack in packed:
        try:
            steps += steps_from_json(json.loads(zlib.decompress(pack)))
        except Exception as error:  # noqa: BLE001 - colours of a damaged page are lost, its text isn't
            log.debug("a part of an answer's steps can't be read: %r", error)
    return tuple(steps)


def steps_as_json(steps: Sequence[StepDone]) -> dict[str, Any]:
    """Steps with their names by table: nearly all of them come from a few sources."""
    senders: dict[tuple[str, str], int] = {}
    sources: dict[TokenSource, int] = {}

    def numbers(found: Iterable[TokenSource]) -> list[int]:
        return [sources.setdefault(source, len(sources)) for source in found]

    rows = [
        [
            senders.setdefault((step.session_id, step.request_id), len(senders)),
            step.step,
            step.token_ids,
            # Bytes as characters of the same numbers: pieces may be parts of characters.
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
    """Steps as they were before `steps_as_json`; what is something else raises any exception."""
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
    if type(value) is not int or not 0 <= value < _MOST:
        raise ValueError("a step holds something else than a count")
    return value


def _number(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("a step holds a number beyond all bounds")
    return number


def settings_as_json(settings: GenerateSettings) -> dict[str, Any]:
    """Settings by their names."""
    return {name: getattr(settings, name) for name in _kinds(GenerateSettings)}


def settings_from_json(raw: dict[str, Any]) -> GenerateSettings:
    """Settings by their names; what this version doesn't know, or what can't be, is left out."""
    values = {}
    for name, kind in _kinds(GenerateSettings).items():
        if name in raw:
            with suppress(TypeError, ValueError):
                values[name] = _read_as(kind, raw[name])
    return GenerateSettings(**values)


def done_as_json(done: GenerationDone) -> dict[str, Any]:
    """Figures by their names; the text is kept with its message."""
    raw = {name: getattr(done, name) for name in _kinds(GenerationDone) if name != "text"}
    return {**raw, "settings": settings_as_json(done.settings)}


def done_from_json(raw: dict[str, Any], text: str) -> GenerationDone:
    """Figures as they were.

    Raises:
        KeyError: There are no settings.
        TypeError: A figure is missing, or of another type.
        ValueError: It ended for a reason that this version doesn't know.
    """
    settings = settings_from_json(raw["settings"])
    values = {
        name: _read_as(kind, raw[name])
        for name, kind in _kinds(GenerationDone).items()
        if name in raw and name not in ("text", "settings")
    }
    return GenerationDone(text=text, settings=settings, **values)


def reasoning_as_json(tags: ReasoningFormat) -> dict[str, Any]:
    """Tags by their names."""
    return tags._asdict()


def reasoning_from_json(raw: dict[str, Any]) -> ReasoningFormat:
    """Tags as they were.

    Raises:
        TypeError: One is of another type.
        ValueError: A token has no number of ours.
    """
    kinds = _kinds(ReasoningFormat)
    return ReasoningFormat(**{name: _read_as(kinds[name], raw[name]) for name in raw})


def spans_as_json(spans: AnswerSpans) -> list[list[int]]:
    """Spans as lists of start, end, and 1 for reasoning."""
    return [[one.start, one.end, int(one.is_reasoning)] for one in spans]


def spans_from_json(raw: Any, num_chars: int) -> AnswerSpans:
    """Spans as they were.

    Args:
        raw: What `spans_as_json` wrote.
        num_chars: Length of their text.

    Raises:
        ValueError: They don't lie in the text one after the other.
        TypeError: They are something else.
    """
    spans = tuple(AnswerSpan(_count(start), _count(end), kind == 1) for start, end, kind in raw)
    ends = [0, *(place for one in spans for place in one[:2]), num_chars]
    if ends != sorted(ends):
        raise ValueError("spans don't lie in their text")
    return spans


@cache
def _kinds(record: type) -> dict[str, Any]:
    """The types of a record's fields, by name."""
    return get_type_hints(record)


def _read_as(kind: Any, value: Any) -> Any:
    """A value of JSON as a field's type wants it.

    Raises:
        TypeError: It is of another type.
        ValueError: It is no member of an enumeration, or a number beyond all bounds.
    """
    if get_origin(kind) is tuple:
        kinds = get_args(kind)
        if not isinstance(value, list):
            raise TypeError("a list is missing")
        if kinds[1:] == (...,):
            return tuple(_read_as(kinds[0], each) for each in value)
        if len(kinds) != len(value):
            raise TypeError("a list has another length")
        return tuple(map(_read_as, kinds, value))
    if issubclass(kind, Enum):
        return kind(value)
    if kind is float and type(value) is int:
        value = float(value) if abs(value) < _MOST else math.inf
    if type(value) is not kind:
        raise TypeError(f"a value is no {kind.__name__}")
    if (kind is float and not math.isfinite(value)) or (kind is int and abs(value) > _MOST_INT):
        raise ValueError("a number is beyond all bounds")
    return value
