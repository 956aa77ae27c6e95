"""Steps, settings and figures of an answer as bytes and JSON."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import Any

from medusa_core.messages import (
    GenerateSettings,
    GenerationDone,
    Overflow,
    StepDone,
    StepTimes,
    StopReason,
    TokenSource,
)


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
        except (zlib.error, ValueError, KeyError, TypeError, IndexError):
            continue  # colours of a damaged page are lost, its text isn't
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
    """Steps as they were before `steps_as_json`."""
    senders = raw["senders"]
    sources = [TokenSource(drafter, head) for drafter, head in raw["sources"]]
    steps = []
    for sender, step, ids, pieces, of, visible, rows, nodes, times, step_s, context in raw["steps"]:
        session_id, request_id = senders[sender]
        steps.append(
            StepDone(
                session_id,
                request_id,
                step,
                tuple(ids),
                tuple(piece.encode("latin-1") for piece in pieces),
                tuple(sources[number] for number in of),
                visible,
                rows,
                tuple(sources[number] for number in nodes),
                StepTimes(*times),
                step_s,
                context,
            )
        )
    return steps


def text_of(steps: Sequence[StepDone]) -> str:
    """What of an answer could be seen when its last step was done."""
    if not steps:
        return ""
    whole = b"".join(piece for step in steps for piece in step.pieces)
    return whole[: steps[-1].num_visible_bytes].decode("utf-8", "ignore")


def settings_as_json(settings: GenerateSettings) -> dict[str, Any]:
    """Settings by their names."""
    return asdict(settings)


def settings_from_json(raw: dict[str, Any]) -> GenerateSettings:
    """Settings that this version knows; those it doesn't know keep their defaults."""
    names = {field.name for field in fields(GenerateSettings)}
    values = {k: _as_tuple(v) for k, v in raw.items() if k in names}
    if (kept := values.pop("overflow", None)) in [policy.value for policy in Overflow]:
        values["overflow"] = Overflow(kept)
    return GenerateSettings(**values)


def done_as_json(done: GenerationDone) -> dict[str, Any]:
    """Figures by their names; the text is kept with its message."""
    raw = asdict(done)
    del raw["text"]
    raw["stop_reason"] = done.stop_reason.value
    return raw


def done_from_json(raw: dict[str, Any], text: str) -> GenerationDone:
    """Figures as they were.

    Raises:
        KeyError: One is missing.
    """
    names = {field.name for field in fields(GenerationDone)}
    values = {k: _as_tuple(v) for k, v in raw.items() if k in names}
    values |= {
        "text": text,
        "stop_reason": StopReason(raw["stop_reason"]),
        "settings": settings_from_json(raw["settings"]),
    }
    return GenerationDone(**values)


def _as_tuple(value: Any) -> Any:
    """JSON's lists are tuples in messages, within others too."""
    return tuple(map(_as_tuple, value)) if isinstance(value, list) else value
