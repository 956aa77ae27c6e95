"""Runs with a time bound: slices of answers and training, a bounded curve, prompts of one's own."""

import json
from pathlib import Path

import pytest
import torch

from medusa_core.cli.train import gain_text
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.system.jobs.heads_gain import HeadsGain
from medusa_core.system.resources import demo_model_dir
from medusa_core.training.answers import OwnAnswer, questions_at, recorded_answers
from medusa_core.training.curve import Curve
from medusa_core.training.expectation import expected_tau
from medusa_core.training.heads_command import load_for_training, prompts_of, trainee_of
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.heads_run import HeadsRun, RunParts, drafted_tokens, frequent_tokens
from medusa_core.training.own_prompts import is_good, opening_of_user_turn, own_prompts
from medusa_core.training.positions import computed
from medusa_core.training.prompts import bundled_training_prompts, read_training_prompts
from medusa_core.training.run_folder import RunFolder
from medusa_core.training.stage import answering_share, slices_of, training_share
from medusa_core.training.training_data import TrainingData, WrittenAnswer
from tests.support.models.tiny import TinySpec, write_tiny

SPEC = TinySpec(hidden_size=64, intermediate_size=96, num_layers=4, seed=21)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("timed") / "model", SPEC)


@pytest.fixture(scope="module")
def demo() -> Target:
    torch.set_num_threads(1)
    return load_target(demo_model_dir(), None, LoadOptions(sessions=4))


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_answers_to_held_out_questions_are_not_trained_on(model: Path, tmp_path: Path) -> None:
    config = HeadsConfig(model=str(model), kind="hydra", num_heads=2, device="cpu", context=128)
    folder = RunFolder(tmp_path / "out")
    folder.begin(config)
    target = load_target(model, None, LoadOptions("float32", "cpu"))
    trainee = trainee_of(config, target, [])
    feed = TrainingData(folder, config, trainee, target)
    twice = [OwnAnswer((1, 2, question), (3, 4, 5), True) for question in range(40)] * 2
    reports: list[tuple[int, int]] = []
    feed.add(
        [WrittenAnswer(answer, None) for answer in twice],
        lambda done, of: reports.append((done, of)),
        lambda: None,
    )
    held = {int(document.ids[2]) for document in feed.held_out.all_documents}
    learned = {int(document.ids[2]) for document in feed.states.all_documents}
    assert held == {0, 20}
    assert learned == set(range(40)) - held
    num_tokens = 6 * len(twice)
    assert reports[0] == (0, num_tokens)
    assert reports[-1] == (num_tokens, num_tokens)
    assert reports == sorted(reports)
    assert len({done for done, _ in reports}) == 1 + len(twice), "after each document"
    again = TrainingData(folder, config, trainee, target)
    reports.clear()
    again.add(
        [WrittenAnswer(answer, None) for answer in twice],
        lambda done, of: reports.append((done, of)),
        lambda: None,
    )
    assert len(reports) == 3, "shards that are on the disk count as wholes"
    assert reports[-1] == (num_tokens, num_tokens)


@pytest.mark.parametrize("kind", [pytest.param("hydra", marks=pytest.mark.slow), "eagle"])
def test_a_timed_run_trains_on_slices_of_answers(kind: str, model: Path, tmp_path: Path) -> None:
    config = HeadsConfig(
        model=str(model),
        kind=kind,
        num_heads=2,
        minutes=0.06,
        batch=64,
        max_new_tokens=16,
        context=128,
        device="cpu",
        prompts="bundled",
    )
    folder = RunFolder(tmp_path / "out")
    folder.begin(config)
    parts = RunParts(
        load=lambda: load_for_training(config),
        trainee=lambda target, answers: trainee_of(config, target, answers),
        prompts=lambda target, is_over: bundled_training_prompts()[:200],
        evaluate=lambda _: None,
        stop=lambda: False,
    )
    assert HeadsRun(folder, parts).run()
    resolved = folder.resolved()
    slices = resolved["slices"]
    assert len(slices) == len(slices_of(config)) == 4
    assert slices == sorted(slices)
    assert slices[0] >= 2
    assert resolved["num_steps_done"] >= 4
    assert list(folder.out.glob("*.safetensors"))


def test_recorded_states_equal_the_computed_ones(model: Path) -> None:
    target = load_target(model, None, LoadOptions("float32", "cpu", sessions=4))
    target.runner.tap((1, 3))
    prompts = [one.messages for one in bundled_training_prompts()[:6]]
    for answer, states in recorded_answers(target, questions_at(prompts), 12, RowPolicy(target)):
        whole = next(computed(target, [answer.document], 512))
        assert len(answer.document.ids) - 2 <= len(states) <= len(whole)
        torch.testing.assert_close(states, whole[: len(states)], rtol=0, atol=1e-2)


def test_the_time_shares_of_a_run_add_up() -> None:
    config = HeadsConfig(minutes=60)
    assert 0.35 < answering_share(config) < 0.5
    assert answering_share(config) + training_share(config) == pytest.approx(0.92)
    assert training_share(config, now=0.9) == pytest.approx(0.02)
    joint = HeadsConfig(minutes=60, joint=True, kind="medusa-shared")
    assert len(slices_of(joint)) == 1


def test_evaluations_wait_until_they_take_little_of_the_time(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.work.mkdir()
    curve = Curve(folder, num_steps=100, is_timed=True)
    assert [step for step in range(1, 101) if curve.is_due(step)] == [25, 50, 75, 100]

    def slow() -> list[float]:
        torch.randn(400, 400) @ torch.randn(400, 400)
        return [0.5]

    curve.add(25, 1.0, slow)
    assert not curve.is_due(50)
    assert curve.is_due(100)
    assert Curve(folder, num_steps=4000, is_timed=False).is_due(100)


def test_heads_draft_from_the_most_frequent_tokens() -> None:
    answers = [OwnAnswer((9, 9, 9), (5, 3, 5), True), OwnAnswer((9,), (3, 5, 7, 1, 1), False)]
    assert frequent_tokens(answers, 3).tolist() == [1, 3, 5]
    assert frequent_tokens(answers, 100).tolist() == [1, 3, 5, 7]


def test_drafted_tokens_are_the_frequent_ones_and_then_those_of_low_ids() -> None:
    answers = [OwnAnswer((1,), (50, 50, 7, 90), finished=True)]
    assert drafted_tokens(answers, 1).tolist() == [50]
    assert drafted_tokens(answers, 6).tolist() == [0, 1, 2, 7, 50, 90]


def test_more_training_tokens_raise_the_expected_gain() -> None:
    taus = [expected_tau(10.0**power) for power in range(2, 9)]
    assert taus == sorted(taus)
    assert taus[0] == 1.0
    assert taus[-1] > 1.5


def test_heads_without_a_gain_end_with_a_warning() -> None:
    assert "Warning" in gain_text(HeadsGain(1.1, 0.8))
    assert "Warning" not in gain_text(HeadsGain(2.1, 1.5))


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("What is the capital of France?", True),
        ("Explain how tides work.", True),
        ("Erzähle mir, wie Ebbe und Flut entstehen.", True),
        ("hi", False),
        ("one two", False),
        ("User: what is this about?", False),
        ("a {} [] <> || ## @@ $$ %% ^^ && ** b", False),
        ("word " * 200, False),
        ("", False),
    ],
)
def test_only_complete_plain_prompts_are_used(text: str, good: bool) -> None:
    assert is_good(text) is good


def test_a_model_writes_prompts_from_the_opening_of_a_users_turn(demo: Target) -> None:
    opening = opening_of_user_turn(demo)
    assert opening
    assert demo.template.render(bundled_training_prompts()[0].messages).startswith(opening)
    first = own_prompts(demo, 3, 1, lambda: False)
    assert first == own_prompts(demo, 3, 1, lambda: False)
    assert first != own_prompts(demo, 3, 2, lambda: False)
    texts = [prompts.messages[0].text for prompts in first]
    assert len(set(texts)) == len(texts)
    assert all(is_good(text) for text in texts)


def test_prompts_written_by_the_model_are_kept_for_the_next_stage(
    demo: Target, tmp_path: Path
) -> None:
    folder = RunFolder(tmp_path / "out")
    folder.begin(HeadsConfig(answers=6, prompts="own"))
    prompts = prompts_of(folder, demo, lambda: False)
    assert prompts_of(folder, demo, lambda: True) == prompts
    assert {one.category for one in prompts} <= {"own"}
    assert len(read_training_prompts([folder.prompts])) == len(prompts)
    both = RunFolder(tmp_path / "both")
    both.begin(HeadsConfig(answers=6))
    assert len(prompts_of(both, demo, lambda: True)) >= len(bundled_training_prompts())
    rows = folder.prompts.read_text(encoding="utf-8").splitlines()
    assert all(json.loads(row)["category"] == "own" for row in rows)
