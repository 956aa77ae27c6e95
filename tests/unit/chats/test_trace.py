"""Traces: what they say of a step, that recording changes nothing, and files that are none."""

import json
import math
import zlib
from array import array
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from medusa_core.__main__ import main
from medusa_core.chats import trace_file
from medusa_core.chats.trace_file import (
    Recording,
    pack_trace,
    read_trace,
    unpack_trace,
    write_trace,
)
from medusa_core.engine.direct import generate
from medusa_core.errors import TraceError
from medusa_core.loading.target import Target
from medusa_core.messages import (
    DroppedToken,
    GenerateSettings,
    Odds,
    StepDone,
    StepTrace,
    offers_with,
)
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.speculation.rules.sampling import Sampler
from tests.support.engine.by_turns import by_turns
from tests.support.engine.laws import plain_scores, plain_states, user_says

SETTINGS = GenerateSettings(
    drafter="medusa", temperature=0.9, seed=4, max_new_tokens=30, tree_rows=9
)


def record(
    target: Target, settings: GenerateSettings, text: str = "record this"
) -> tuple[Recording, list[StepDone]]:
    """A recorded answer and its steps."""
    traces: list[StepTrace] = []
    steps: list[StepDone] = []
    done = generate(target, user_says(text), settings, steps.append, on_trace=traces.append)
    return Recording(target.name, tuple(traces), done), steps


@pytest.fixture
def recording(tiny: Target) -> Recording:
    """A greedy answer by Medusa."""
    return record(tiny, SETTINGS)[0]


@pytest.mark.parametrize(
    ("drafter", "rule"), by_turns(drafter_registry().names, rule_registry().names)
)
def test_recording_changes_nothing_and_tells_of_every_step(
    drafter: str, rule: str, target_of: Callable[[str], Target]
) -> None:
    tiny = target_of(drafter)
    settings = replace(SETTINGS, drafter=drafter, rule=rule)
    recorded, steps = record(tiny, settings)
    assert recorded.done.token_ids == generate(tiny, user_says("record this"), settings).token_ids
    assert [trace.step for trace in recorded.steps] == [step.step for step in steps]
    for trace, step in zip(recorded.steps, steps, strict=True):
        choices = [verdict.choice.token_id for verdict in trace.verdicts]
        assert tuple(choices[: trace.num_kept]) == step.token_ids
        assert trace.num_kept == len(step.token_ids)
        assert trace.step == 0 or len(trace.nodes) + trace.num_riders == step.num_rows
        assert len(trace.nodes) == len(step.node_sources)
        path = [trace.nodes[verdict.node].source for verdict in trace.verdicts[1:]]
        assert tuple(path[: trace.num_kept]) == step.sources[: len(path)]
        assert trace.root_place == step.num_context_tokens - trace.num_kept - 1
        assert trace.times == step.times


def test_probabilities_are_the_targets_and_the_heads_own(
    tiny: Target, recording: Recording
) -> None:
    assert tiny.heads is not None
    done = recording.done
    prompt_ids = tiny.tokenizer.encode(tiny.template.render(user_says("record this")))
    decided = [*prompt_ids, *done.token_ids]
    depths = set()
    for trace in recording.steps:
        place = trace.root_place
        for offset, verdict in enumerate(trace.verdicts):
            prefix = [*decided[: place + 1], *(v.choice.token_id for v in trace.verdicts[:offset])]
            expected = torch.softmax(plain_scores(tiny, prefix), dim=-1)
            best = expected.topk(6).indices.tolist()
            assert verdict.choice.token_id == best[0]
            assert [a.token_id for a in verdict.alternatives] == best[1:]
            for reported in (verdict.choice, *verdict.alternatives):
                assert reported.probability == pytest.approx(
                    float(expected[reported.token_id]), rel=1e-4
                )
                assert reported.text == tiny.tokenizer.bytes_of(reported.token_id)
        if trace.step:
            hidden = plain_states(tiny, decided[:place])[0][-1]
            heads = torch.softmax(tiny.heads.logits(hidden, decided[place], 3), dim=-1)
            for node in trace.nodes[1:]:
                expected_p = float(heads[node.source.head - 1, node.token_id])
                assert node.probability == pytest.approx(expected_p, rel=1e-4)
                depths.add(node.source.head)
    assert depths >= {1, 2}


def test_the_numbers_of_sample_say_why_it_drew(tiny: Target) -> None:
    settings = replace(SETTINGS, rule="sample", top_k=20, repetition_penalty=1.2)
    recorded, _ = record(tiny, settings)
    prompt = tiny.tokenizer.encode(tiny.template.render(user_says("record this")))
    verdict = recorded.steps[0].verdicts[0]
    numbers = dict(verdict.numbers)
    scores = plain_scores(tiny, prompt).clone()
    seen = sorted(set(prompt))
    scores[seen] = torch.where(scores[seen] > 0, scores[seen] / 1.2, scores[seen] * 1.2)
    expected = torch.softmax(Sampler(settings).filtered(scores), dim=-1)
    assert numbers["probability"] == pytest.approx(float(expected[verdict.choice.token_id]))
    assert math.isfinite(numbers["noise"])


def test_the_numbers_of_typical_say_why_it_accepted(tiny: Target) -> None:
    settings = replace(SETTINGS, rule="typical", temperature=1.5, max_new_tokens=60)
    assert settings.delta == 0.0  # which stands for the root of epsilon
    recorded, _ = record(tiny, settings)
    num_accepted = 0
    for trace in recorded.steps:
        for verdict in trace.verdicts[:-1]:
            numbers = dict(verdict.numbers)
            delta = math.sqrt(settings.epsilon)
            bound = min(settings.epsilon, delta * math.exp(-numbers["entropy"]))
            assert numbers["threshold"] == pytest.approx(bound)
            assert numbers["probability"] > numbers["threshold"]
            num_accepted += 1
    assert num_accepted


def test_a_greedy_margin_is_told_where_probabilities_dont_show_it(tiny: Target) -> None:
    plain, _ = record(tiny, SETTINGS)
    assert all(not verdict.numbers for trace in plain.steps for verdict in trace.verdicts)
    shaped, _ = record(tiny, replace(SETTINGS, presence_penalty=1.0))
    margins = [dict(v.numbers)["margin"] for trace in shaped.steps for v in trace.verdicts]
    assert min(margins) >= 0


# Files --------------------------------------------------------------------------------------------


def test_a_trace_comes_back_from_its_file_as_it_was(recording: Recording, tmp_path: Path) -> None:
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


def test_a_packed_trace_comes_back_and_a_damaged_one_is_refused(recording: Recording) -> None:
    packed = pack_trace(recording)
    again = unpack_trace(packed)
    assert pack_trace(again) == packed
    for damaged in (packed[: len(packed) // 2], b"", b"x" * 40, zlib.compress(b"[]")):
        with pytest.raises(TraceError):
            unpack_trace(damaged)


def test_what_nobody_gave_a_node_stays_unknown_in_a_file(
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
def test_what_was_kept_out_of_a_tree_comes_back_and_hangs_under_a_node(
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
    with pytest.raises(TraceError, match="under no node"):
        read_trace(path)


def test_a_pruned_guess_beyond_every_vocabulary_is_refused(
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


def test_settings_of_every_kind_come_back(tiny: Target, tmp_path: Path) -> None:
    settings = replace(
        SETTINGS,
        stop=("@@", "é"),
        logit_bias=((3, 0.5),),
        banned=(7, 8),
        forbidden=((1, 9),),
        temperature=1.0,
    )
    recorded, _ = record(tiny, settings)
    write_trace(tmp_path / "t.json", recorded)
    assert read_trace(tmp_path / "t.json").done.settings == recorded.done.settings


def test_the_command_writes_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "story.json"
    arguments = ["generate", "--prompt", "Hello!", "--max-new-tokens", "12", "--json"]
    assert main([*arguments, "--trace", str(path)]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert list(read_trace(path).done.token_ids) == reported["token_ids"]


def test_a_trace_that_cant_be_written_leaves_what_was_there(
    recording: Recording, tmp_path: Path
) -> None:
    with pytest.raises(TraceError, match="can't be written"):
        write_trace(tmp_path / "missing" / "trace.json", recording)
    (tmp_path / "folder").mkdir()
    with pytest.raises(TraceError, match="can't be written"):
        write_trace(tmp_path / "folder", recording)
    assert [p.name for p in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.999])
def test_a_truncated_trace_is_refused(recording: Recording, tmp_path: Path, share: float) -> None:
    path = tmp_path / "trace.json"
    write_trace(path, recording)
    whole = path.read_bytes()
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
        "unknown setting",
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
        "'temperature'",
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_foreign_or_damaged_trace_is_refused(
    name: str, recording: Recording, tmp_path: Path
) -> None:
    damage, reported = DAMAGES[name]
    path = tmp_path / "trace.json"
    write_trace(path, recording)
    raw = json.loads(path.read_text())
    damage(raw)
    path.write_text(json.dumps(raw))
    with pytest.raises(TraceError, match=reported) as caught:
        read_trace(path)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["[]", "3", '"x"', "{}", "[" * 100_000, "9" * 6000])
def test_what_is_no_trace_at_all_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
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
