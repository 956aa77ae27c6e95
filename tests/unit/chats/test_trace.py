"""Files of traces, and files that are none."""

import json
import re
import zlib
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medusa_core.chats import trace_file
from medusa_core.chats.trace_file import (
    Recording,
    pack_trace,
    read_trace,
    unpack_trace,
    write_trace,
)
from medusa_core.errors import TraceError
from medusa_core.messages import NO_ODDS, DroppedToken, GenerateSettings, Odds, offers_with
from tests.support.chats.made_traces import done_after, trace


@pytest.fixture
def recording() -> Recording:
    """An answer of three steps."""
    first = trace(0)._replace(odds=NO_ODDS)
    made = (first, trace(1), trace(2, (0, 2)))
    steps = tuple(one._replace(numbers=((("margin", 0.5),),) * len(one.path)) for one in made)
    return Recording("Fake", steps, done_after(steps))


def test_a_trace_is_read_from_its_file_unchanged(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_trace(path, recording)
    again = read_trace(path)
    anonymous = tuple(s._replace(session_id="", request_id="") for s in recording.steps)
    assert again.steps == anonymous
    assert [s.nodes for s in again.steps] == [s.nodes for s in recording.steps]
    assert [s.verdicts for s in again.steps] == [s.verdicts for s in recording.steps]
    assert again.done == replace(recording.done, session_id="", request_id="")
    assert again.model == recording.model
    assert [p.name for p in tmp_path.iterdir()] == ["trace.json"]


def test_a_packed_trace_is_restored_and_a_damaged_one_is_refused(recording: Recording) -> None:
    packed = pack_trace(recording)
    again = unpack_trace(packed)
    assert pack_trace(again) == packed
    for damaged in (packed[: len(packed) // 2], b"", b"x" * 40, zlib.compress(b"[]")):
        with pytest.raises(TraceError):
            unpack_trace(damaged)


def test_missing_probabilities_of_a_node_stay_missing_in_a_file(
    recording: Recording, tmp_path: Path
) -> None:
    step = next(s for s in recording.steps if len(s.nodes) >= 4)
    places = (-1, 0, -1, *[1] * (len(step.nodes) - 4))
    reported = step._replace(odds=Odds(array("f", [0.25, 0.5]).tobytes(), places))
    path = tmp_path / "trace.json"
    steps = tuple(reported if s is step else s for s in recording.steps)
    write_trace(path, replace(recording, steps=steps))
    again = read_trace(path).steps[step.step]
    known = [None, None, 0.25, None, *[0.5] * (len(step.nodes) - 4)]
    assert [node.probability for node in again.nodes] == known
    assert again == reported._replace(session_id="", request_id="")


@pytest.mark.parametrize("part", ["forbidden", "pruned"])
def test_candidates_left_out_of_a_tree_are_restored_under_their_nodes(
    recording: Recording, tmp_path: Path, part: str
) -> None:
    path = tmp_path / "trace.json"
    step = recording.steps[-1]
    dropped = (DroppedToken(0, 7, 0.25), DroppedToken(len(step.nodes) - 1, 9, 0.5))
    chances = [node.probability for node in step.nodes[1:]]
    offers = offers_with(step.parents, step.token_ids, chances, dropped)
    step = step._replace(forbidden=dropped) if part == "forbidden" else step._replace(offers=offers)
    steps = (*recording.steps[:-1], step)
    write_trace(path, replace(recording, steps=steps))
    assert getattr(read_trace(path).steps[-1], part) == dropped
    raw = json.loads(path.read_text())
    assert "pruned" in raw["steps"][0]
    raw["steps"][-1][part][1][0] = len(step.nodes)
    path.write_text(json.dumps(raw))
    with pytest.raises(TraceError, match="no parent node"):
        read_trace(path)


def test_a_pruned_draft_token_outside_any_vocabulary_is_refused(
    recording: Recording, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    write_trace(path, recording)
    raw = json.loads(path.read_text())
    raw["tokens"][str(2**40)] = {"text": "a"}
    raw["steps"][-1]["pruned"] = [[0, 2**40, 0.5]]
    path.write_text(json.dumps(raw))
    with pytest.raises(TraceError, match="beyond every vocabulary"):
        read_trace(path)


def test_settings_of_every_kind_are_restored(recording: Recording, tmp_path: Path) -> None:
    settings = GenerateSettings(
        stop=("@@", "é"),
        logit_bias=((3, 0.5),),
        banned=(7, 8),
        forbidden=((1, 9),),
        temperature=1.0,
    )
    recorded = replace(recording, done=replace(recording.done, settings=settings))
    write_trace(tmp_path / "t.json", recorded)
    assert read_trace(tmp_path / "t.json").done.settings == settings


def test_a_trace_that_cant_be_written_keeps_the_previous_file(
    recording: Recording, tmp_path: Path
) -> None:
    with pytest.raises(TraceError, match="can't be written"):
        write_trace(tmp_path / "missing" / "trace.json", recording)
    (tmp_path / "folder").mkdir()
    with pytest.raises(TraceError, match="can't be written"):
        write_trace(tmp_path / "folder", recording)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


def test_a_truncated_trace_is_refused(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_trace(path, recording)
    whole = path.read_bytes()
    for share in (0.0, 0.3, 0.7, 0.999):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(TraceError, match="no complete JSON"):
            read_trace(path)


Damage = Callable[[dict[str, Any]], object]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "another program's": (lambda raw: raw.update(format="x"), "no trace of Medusa Chat"),
    "of another version": (lambda raw: raw.update(version=2), "version 2"),
    "without steps": (lambda raw: raw.pop("steps"), "steps"),
    "with more": (lambda raw: raw.update(more=1), "more"),
    "with a text for a number": (lambda raw: raw["steps"][1].update(num_kept="1"), "num_kept"),
    "with an impossible chance": (
        lambda raw: raw["steps"][1]["verdicts"][0]["choice"].__setitem__(1, 1.5),
        "smaller than or equal to 1",
    ),
    "with a node before its parent": (
        lambda raw: raw["steps"][1]["nodes"]["parents"].__setitem__(1, 5),
        "before its parent",
    ),
    "with two roots": (
        lambda raw: raw["steps"][1]["nodes"]["parents"].__setitem__(1, -1),
        "before its parent",
    ),
    "with a column too short": (
        lambda raw: raw["steps"][1]["nodes"]["ranks"].pop(),
        "differ in length",
    ),
    "with a path that is none": (
        lambda raw: raw["steps"][1]["verdicts"][0].update(node=3),
        "no path",
    ),
    "with a token unknown": (lambda raw: raw["tokens"].clear(), "doesn't say what token"),
    "with an unknown setting": (
        lambda raw: raw["end"]["settings"].update(magic=1),
        "isn.t known: magic",
    ),
    "without its last steps": (lambda raw: raw["steps"].pop(), "not those from 0 to"),
    "without any step": (lambda raw: raw["steps"].clear(), "not those from 0 to"),
    "with its steps reversed": (lambda raw: raw["steps"].reverse(), "not those from 0 to"),
    "with a step that keeps nothing": (
        lambda raw: raw["steps"][1].update(num_kept=0),
        "keeps more tokens than it gave, or none|num_kept",
    ),
    "with a step that keeps too much": (
        lambda raw: raw["steps"][1].update(num_kept=99),
        "keeps more tokens than it gave",
    ),
    "with other tokens at its end": (
        lambda raw: raw["end"]["token_ids"].append(4),
        "other tokens than the answer",
    ),
    "with other lengths at its end": (
        lambda raw: raw["end"]["accept_lengths"].append(1),
        "other numbers of tokens",
    ),
    "with a head out of its depth": (
        lambda raw: raw["steps"][1]["nodes"]["heads"].__setitem__(1, 7),
        "doesn't draft at its depth",
    ),
    "with half a character": (
        lambda raw: raw["tokens"].__setitem__(next(iter(raw["tokens"])), {"text": "\ud800"}),
        "no text can have",
    ),
    "with a wrong setting": (
        lambda raw: raw["end"]["settings"].update(temperature="hot"),
        "temperature is 'hot'",
    ),
}


def test_a_foreign_or_damaged_trace_is_refused(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_trace(path, recording)
    whole, failures = path.read_text(), []
    for name, (damage, reported) in DAMAGES.items():
        raw = json.loads(whole)
        damage(raw)
        path.write_text(json.dumps(raw))
        try:
            read_trace(path)
        except TraceError as error:
            if not error.hint or not re.search(reported, str(error)):
                failures.append(f"{name}: {error}")
        else:
            failures.append(f"{name}: it was read")
    assert failures == []


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    for text in ("[]", "3", '"x"', "{}", "[" * 100_000, "9" * 6000):
        path.write_text(text)
        with pytest.raises(TraceError):
            read_trace(path)
    with pytest.raises(TraceError, match="can't be read"):
        read_trace(tmp_path / "none.json")


def test_a_file_too_large_for_a_trace_is_not_read(
    recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trace.json"
    write_trace(path, recording)
    monkeypatch.setattr(trace_file, "_MOST_BYTES", 100)
    with pytest.raises(TraceError, match="larger than"):
        read_trace(path)
