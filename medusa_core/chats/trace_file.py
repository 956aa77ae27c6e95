"""Read and write recorded answers as JSON in the format of `resources/schemas/trace-1.json`."""

from __future__ import annotations

import json
import math
import struct
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import fastjsonschema

from medusa_core.errors import TraceError
from medusa_core.i18n import tr
from medusa_core.messages import (
    NO_ODDS,
    DroppedToken,
    GenerateSettings,
    GenerationDone,
    Odds,
    StepTimes,
    StepTrace,
    StopReason,
    TokenSource,
    Verdict,
    offers_with,
)
from medusa_core.system.files import record_json
from medusa_core.system.files.atomic_file import replace_file
from medusa_core.system.files.disk_errors import disk_errors
from medusa_core.system.resources import resources_dir

_FORMAT = "medusa-chat-trace"
_VERSION = 1
_MOST_BYTES = 128 << 20  # some 85,000 steps; in memory they take ten times as much
_MOST_NODES, _MOST_DEPTH = 1024, 64
_SCHEMA = "trace-1.json"
_REMOTE_FIELDS = ("num_remote_tokens", "num_drafted", "num_draft_accepted")

_Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Recording:
    """One recorded answer.

    Attributes:
        model: Name of the target.
        steps: Steps of the answer, prefill first.
        done: Final event.
    """

    model: str
    steps: tuple[StepTrace, ...]
    done: GenerationDone


def write_trace(path: Path, recording: Recording) -> None:
    """Write a recording atomically.

    Raises:
        TraceError: The file can't be written.
    """
    text = _as_text(recording)
    with disk_errors(TraceError, path, tr("Choose another folder, or make space.")):
        replace_file(path, [text.encode()])


def read_trace(path: Path) -> Recording:
    """Read a recording.

    Raises:
        TraceError: The file is missing, truncated, no trace, of another version, or inconsistent.
    """
    return _checked(_read_json(path), path)


def is_trace(path: Path) -> bool:
    """Return whether a file has a trace's format name at its beginning."""
    try:
        with path.open("rb") as file:
            return _FORMAT.encode() in file.read(200)
    except OSError:
        return False


def pack_trace(recording: Recording) -> bytes:
    """Compress a recording, to about a twentieth of a file's size."""
    return zlib.compress(_as_text(recording).encode(), 1)


def unpack_trace(packed: bytes) -> Recording:
    """Decompress a recording.

    Raises:
        TraceError: The data is damaged.
    """
    unpacker = zlib.decompressobj()
    try:
        raw = json.loads(unpacker.decompress(packed, _MOST_BYTES))
    except (zlib.error, ValueError, RecursionError) as error:
        raise TraceError(
            tr("A kept trace is damaged: {0}.", error), "Record the answer again."
        ) from error
    return _checked(raw, Path("A kept trace"))


def _as_text(recording: Recording) -> str:
    """Return a recording as JSON text."""
    return json.dumps(_to_json(recording), ensure_ascii=False, allow_nan=False)


def _checked(raw: object, path: Path) -> Recording:
    """Validate a recording against the schema and parse it."""
    _check_kind(raw, path)
    try:
        _validator()(raw)
    except fastjsonschema.JsonSchemaValueException as error:
        raise TraceError(
            tr("{0} is no valid trace: {1}.", path.name, error.message.replace("data.", "", 1)),
            "It was changed after it was written: record the answer again.",
        ) from error
    return _from_json(raw, path)


@cache
def _validator() -> Callable[[object], object]:
    """Compile the JSON schema."""
    schema = json.loads((resources_dir() / "schemas" / _SCHEMA).read_text(encoding="utf-8"))
    return fastjsonschema.compile(schema)


def _read_json(path: Path) -> object:
    """Read a file of limited size."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise TraceError(
                tr("{0} is larger than {1} MiB.", path.name, _MOST_BYTES >> 20),
                "Choose a recorded trace.",
            )
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise TraceError(
            tr("{0} can't be read: {1}.", path, error.strerror or error), "Choose another file."
        ) from error
    except MemoryError as error:
        raise TraceError(
            tr("There isn't enough memory to read {0}.", path.name), "Close other programs first."
        ) from error
    except (ValueError, RecursionError) as error:  # of its bytes, its JSON, or a number's length
        raise TraceError(
            tr("{0} is no complete JSON file: {1}.", path.name, error),
            "It may have been cut off while it was copied: copy or record it again.",
        ) from error


def _check_kind(raw: object, path: Path) -> None:
    """Refuse other files and other versions."""
    if not isinstance(raw, dict) or raw.get("format") != _FORMAT:
        raise TraceError(
            tr("{0} is no trace of Medusa Chat.", path.name), "Choose a recorded trace."
        )
    if raw.get("version") != _VERSION:
        raise TraceError(
            tr(
                "{0} is a trace of version {1}; this program reads version {2}.",
                path.name,
                repr(raw.get("version")),
                _VERSION,
            ),
            "Update Medusa Chat, or record the answer again.",
        )


# To JSON ------------------------------------------------------------------------------------------


def _to_json(recording: Recording) -> _Json:
    """Convert a recording to JSON."""
    return {
        "format": _FORMAT,
        "version": _VERSION,
        "model": recording.model,
        "tokens": {str(i): _token(text) for i, text in sorted(_texts(recording.steps).items())},
        "steps": [_step(step) for step in recording.steps],
        "end": _end(recording.done),
    }


def _texts(steps: Iterable[StepTrace]) -> dict[int, bytes]:
    """Return the bytes of all tokens that occur in the steps."""
    texts: dict[int, bytes] = {}
    for step in steps:
        texts.update((node.token_id, node.text) for node in step.nodes)
        for dropped in (*step.forbidden, *step.pruned):
            texts[dropped.token_id] = step.pieces.get(dropped.token_id, b"")
        for verdict in step.verdicts:
            candidates = (verdict.choice, *verdict.alternatives)
            texts.update((choice.token_id, choice.text) for choice in candidates)
    return texts


def _token(text: bytes) -> dict[str, str]:
    """Return a token's bytes as text, or as hex if they aren't valid UTF-8."""
    try:
        return {"text": text.decode()}
    except UnicodeDecodeError:
        return {"hex": text.hex()}


def _step(step: StepTrace) -> _Json:
    """Convert a step to JSON."""
    return {
        "step": step.step,
        "root_place": step.root_place,
        "nodes": {
            "token_ids": step.token_ids,
            "parents": step.parents,
            "ranks": step.ranks,
            "drafters": [source.drafter for source in step.sources],
            "heads": [source.head for source in step.sources],
            "probabilities": [node.probability for node in step.nodes],
        },
        "verdicts": [_verdict(verdict) for verdict in step.verdicts],
        "num_kept": step.num_appended,
        "num_riders": step.num_riders,
        "forbidden": [list(dropped) for dropped in step.forbidden],
        "pruned": [list(dropped) for dropped in step.pruned],
        "times_s": dict(zip(_PARTS, step.times, strict=True)) | {"step": step.step_s},
    }


_PARTS = ("draft", "verify", "accept", "commit", "transfer", "remote")


def _times(raw: _Json) -> StepTimes:
    """Parse the times of a step; the last two are optional."""
    waited = (float(raw.get(part, 0)) for part in _PARTS[4:])
    return StepTimes(*(float(raw[part]) for part in _PARTS[:4]), *waited)


def _verdict(verdict: Verdict) -> _Json:
    """Convert a verified node to JSON: the target's choice and its alternatives."""
    return {
        "node": verdict.node,
        "choice": [verdict.choice.token_id, verdict.choice.probability],
        "alternatives": [[a.token_id, a.probability] for a in verdict.alternatives],
        # JSON has no infinity.
        "numbers": {name: x if math.isfinite(x) else None for name, x in verdict.numbers},
    }


def _end(done: GenerationDone) -> _Json:
    """Convert the figures of an answer to JSON."""
    # The format's name of a field.
    raw = {
        "num_rested" if name == "num_plain_steps" else name: value
        for name, value in asdict(done).items()
    }
    del raw["session_id"], raw["request_id"]
    for name in _REMOTE_FIELDS:  # remote answers have no traces
        del raw[name]
    raw["stop_reason"] = done.stop_reason.value
    return raw


# From JSON ----------------------------------------------------------------------------------------


def _from_json(raw: Any, path: Path) -> Recording:
    """Convert validated JSON to a recording; steps and end must agree."""
    reader = _Reader(_read_texts(raw["tokens"], path.name), path.name)
    steps = tuple(map(reader.step, raw["steps"]))
    done = _read_end(raw["end"], path.name)
    if problem := _problem_of(steps, done):
        raise TraceError(
            tr("{0} contradicts itself: {1}.", path.name, problem),
            "Parts are missing: record it again.",
        )
    return Recording(raw["model"], steps, done)


def _read_texts(raw: _Json, file_name: str) -> dict[int, bytes]:
    """Parse the table of tokens."""
    try:
        return {
            int(token_id): token["text"].encode()
            if "text" in token
            else bytes.fromhex(token["hex"])
            for token_id, token in raw.items()
        }
    except ValueError as error:  # half of a surrogate pair, or a number of thousands of digits
        raise TraceError(
            tr("{0} has a token that no text can have: {1}.", file_name, error), "Record it again."
        ) from error


def _problem_of(steps: Sequence[StepTrace], done: GenerationDone) -> str:
    """Return the inconsistency between steps and end; empty for none."""
    kept = [i for step in steps for i in step.choice_ids[: step.num_appended]]
    if [step.step for step in steps] != list(range(done.num_steps + 1)):
        return tr("its steps are not those from 0 to {0}", done.num_steps)
    if any(not 0 < step.num_appended <= len(step.path) for step in steps):
        return tr("a step keeps more tokens than it gave, or none")
    if tuple(kept) != done.token_ids[done.num_given_tokens :]:
        return tr("its steps give other tokens than the answer has")
    if tuple(step.num_appended for step in steps[1:]) != done.accept_lengths:
        return tr("its steps give other numbers of tokens than the answer says")
    return ""


def _read_odds(probabilities: Sequence[float | None]) -> Odds:
    """Parse the drafters' probabilities of the nodes; None where unknown."""
    known = array("f", [p for p in probabilities if p is not None])
    ranks = count()
    places = tuple(-1 if p is None else next(ranks) for p in probabilities)
    return Odds(known.tobytes(), places) if known else NO_ODDS


class _Reader:
    """Rebuilds steps, and refuses inconsistent ones."""

    def __init__(self, texts: Mapping[int, bytes], file_name: str) -> None:
        self._texts = texts
        self._file_name = file_name

    def step(self, raw: _Json) -> StepTrace:
        """Parse a step."""
        number, nodes, verdicts = raw["step"], raw["nodes"], raw["verdicts"]
        self._check_nodes(nodes, number)
        self._check_path(nodes, verdicts, number)
        choices = [verdict["choice"] for verdict in verdicts]
        others = [other for verdict in verdicts for other in verdict["alternatives"]]
        for token_id in (*nodes["token_ids"], *(i for i, _ in choices), *(i for i, _ in others)):
            self._check_known(token_id)
        judged = array("f", [p for _, p in (*choices, *others)])
        numbers = tuple(_read_numbers(verdict["numbers"]) for verdict in verdicts)
        return StepTrace(
            "",
            "",
            step=number,
            root_place=raw["root_place"],
            token_ids=tuple(nodes["token_ids"]),
            parents=tuple(nodes["parents"]),
            ranks=tuple(nodes["ranks"]),
            sources=tuple(map(TokenSource, nodes["drafters"], nodes["heads"])),
            path=tuple(verdict["node"] for verdict in verdicts),
            choice_ids=tuple(i for i, _ in choices),
            pieces=self._texts,
            odds=_read_odds(nodes["probabilities"][1:]),
            judged=judged.tobytes() + self._packed_ids(others),
            numbers=numbers if any(numbers) else (),
            num_appended=raw["num_kept"],
            times=_times(raw["times_s"]),
            step_s=float(raw["times_s"]["step"]),
            num_riders=raw.get("num_riders", 0),
            forbidden=self._dropped(raw.get("forbidden", ()), len(nodes["parents"]), number),
            offers=self._offers(raw.get("pruned", ()), nodes, number),
        )

    def _offers(self, raw: Sequence[Sequence[Any]], nodes: _Json, number: int) -> bytes:
        """Parse the draft tokens that were pruned from the tree."""
        pruned = self._dropped(raw, len(nodes["parents"]), number)
        if not pruned:
            return b""
        with self._bounded_ids():
            return offers_with(
                nodes["parents"], nodes["token_ids"], nodes["probabilities"][1:], pruned
            )

    def _dropped(
        self, raw: Sequence[Sequence[Any]], num_nodes: int, number: int
    ) -> tuple[DroppedToken, ...]:
        """Parse draft tokens that never became nodes."""
        for node, token, _ in raw:
            self._check_known(token)
            if node >= num_nodes:
                raise self._contradiction(
                    number, tr("a draft token that was left out has no parent node")
                )
        return tuple(DroppedToken(node, token_id, float(chance)) for node, token_id, chance in raw)

    def _check_known(self, token_id: int) -> None:
        """Check that a token is in the table."""
        if token_id not in self._texts:
            raise TraceError(
                tr("{0} doesn't say what token {1} is.", self._file_name, token_id),
                "Record it again.",
            )

    def _packed_ids(self, alternatives: Sequence[Sequence[Any]]) -> bytes:
        """Return the token ids of alternatives as int32."""
        with self._bounded_ids():
            return array("i", [i for i, _ in alternatives]).tobytes()

    @contextmanager
    def _bounded_ids(self) -> Iterator[None]:
        """Convert overflows of int32 to errors about the file."""
        try:
            yield
        except (OverflowError, struct.error) as error:
            raise TraceError(
                tr("{0} has a token id beyond every vocabulary.", self._file_name),
                "Record it again.",
            ) from error

    def _check_nodes(self, raw: _Json, number: int) -> None:
        """Check that a step's nodes are a tree in topological order."""
        if len({len(column) for column in raw.values()}) > 1:
            raise self._contradiction(number, tr("its lists of nodes differ in length"))
        if any(
            parent >= node or (parent < 0) != (node == 0)
            for node, parent in enumerate(raw["parents"])
        ):
            raise self._contradiction(number, tr("a node comes before its parent"))
        depths: list[int] = []
        for parent in raw["parents"]:
            depths.append(0 if parent < 0 else depths[parent] + 1)
        if len(depths) > _MOST_NODES or max(depths, default=0) > _MOST_DEPTH:
            raise self._contradiction(
                number, tr("no tree has over {0} nodes or {1} levels", _MOST_NODES, _MOST_DEPTH)
            )
        if raw["heads"] != depths:
            raise self._contradiction(number, tr("a node's head doesn't draft at its depth"))

    def _check_path(self, nodes: _Json, verdicts: Sequence[_Json], number: int) -> None:
        """Check that the accepted nodes are a path from the root."""
        at = -1
        for verdict in verdicts:
            node = verdict["node"]
            if node >= len(nodes["parents"]) or nodes["parents"][node] != at:
                raise self._contradiction(number, tr("its accepted nodes are no path"))
            at = node
        for before, after in pairwise(verdicts):
            if before["choice"][0] != nodes["token_ids"][after["node"]]:
                raise self._contradiction(number, tr("its accepted nodes aren't what was chosen"))

    def _contradiction(self, number: int, problem: str) -> TraceError:
        """Make the error for an inconsistent step."""
        return TraceError(
            tr("{0} contradicts itself: in step {1}, {2}.", self._file_name, number, problem),
            "Record it again.",
        )


def _read_numbers(raw: Mapping[str, float | None]) -> tuple[tuple[str, float], ...]:
    """Parse named numbers; null means infinity."""
    return tuple((name, math.inf if x is None else float(x)) for name, x in raw.items())


def _read_end(raw: _Json, file_name: str) -> GenerationDone:
    """Parse the figures of an answer."""
    values = dict(raw)
    values["num_plain_steps"] = values.pop("num_rested")
    return GenerationDone(
        session_id="",
        request_id="",
        **{
            **values,
            "token_ids": tuple(raw["token_ids"]),
            "accept_lengths": tuple(raw["accept_lengths"]),
            "stop_reason": StopReason(raw["stop_reason"]),
            "settings": _read_settings(raw["settings"], file_name),
        },
    )


def _read_settings(raw: _Json, file_name: str) -> GenerateSettings:
    """Parse generation settings; unknown names and other types raise."""
    try:
        return record_json.from_json(GenerateSettings, raw, "it")
    except ValueError as error:
        raise TraceError(
            tr("{0} has settings that can't be read: {1}", file_name, error), "Record it again."
        ) from error
