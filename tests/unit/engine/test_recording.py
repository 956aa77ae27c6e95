"""Recorded steps: what they tell, and that recording changes nothing."""

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from medusa_core.__main__ import main
from medusa_core.chats.trace_file import Recording, read_trace, write_trace
from medusa_core.engine.direct import generate
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, StepDone, StepTrace
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
    ("drafter", "rule"),
    by_turns(
        drafter_registry().names,
        rule_registry().names,
        daily=("composite", "eagle", "lookahead", "medusa"),
    ),
)
def test_recording_changes_no_token_and_reports_every_step(
    drafter: str, rule: str, target_of: Callable[[str], Target]
) -> None:
    tiny = target_of(drafter)
    settings = replace(SETTINGS, drafter=drafter, rule=rule)
    recorded, steps = record(tiny, settings)
    assert recorded.done.token_ids == generate(tiny, user_says("record this"), settings).token_ids
    assert [trace.step for trace in recorded.steps] == [step.step for step in steps]
    for trace, step in zip(recorded.steps, steps, strict=True):
        choices = [verdict.choice.token_id for verdict in trace.verdicts]
        assert tuple(choices[: trace.num_appended]) == step.token_ids
        assert trace.num_appended == len(step.token_ids)
        assert trace.step == 0 or len(trace.nodes) + trace.num_riders == step.num_rows
        assert len(trace.nodes) == len(step.node_sources)
        path = [trace.nodes[verdict.node].source for verdict in trace.verdicts[1:]]
        assert tuple(path[: trace.num_appended]) == step.sources[: len(path)]
        assert trace.root_place == step.num_context_tokens - trace.num_appended - 1
        assert trace.times == step.times


def test_recorded_probabilities_are_the_targets_and_the_heads(
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


def test_recorded_values_of_sample_explain_its_draws(tiny: Target) -> None:
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


def test_recorded_values_of_typical_explain_its_acceptances(tiny: Target) -> None:
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


def test_a_greedy_margin_is_recorded_if_probabilities_round_to_equal(tiny: Target) -> None:
    plain, _ = record(tiny, SETTINGS)
    assert all(not verdict.numbers for trace in plain.steps for verdict in trace.verdicts)
    shaped, _ = record(tiny, replace(SETTINGS, presence_penalty=1.0))
    margins = [dict(v.numbers)["margin"] for trace in shaped.steps for v in trace.verdicts]
    assert min(margins) >= 0


def test_a_recording_is_restored_from_its_file(recording: Recording, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    write_trace(path, recording)
    again = read_trace(path)
    assert again.steps == tuple(s._replace(session_id="", request_id="") for s in recording.steps)
    assert again.done == replace(recording.done, session_id="", request_id="")
    assert again.model == recording.model


def test_the_command_writes_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "story.json"
    arguments = ["generate", "--prompt", "Hello!", "--max-new-tokens", "12", "--json"]
    assert main([*arguments, "--trace", str(path)]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert list(read_trace(path).done.token_ids) == reported["token_ids"]
