"""A run learns from the answers of another one."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from medusa_core.__main__ import main
from medusa_core.errors import TrainingError
from medusa_core.training.heads_config import HeadsConfig
from medusa_core.training.run_folder import RunFolder
from medusa_core.training.stage import answering_share, training_share
from tests.support.models.tiny import TinySpec, write_tiny
from tests.support.training.runs import config_for, run, tensors_in

SPEC = TinySpec(hidden_size=64, intermediate_size=96, num_layers=4, seed=21)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("answers") / "model", SPEC)


@pytest.fixture(scope="module")
def written(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has written its answers and learned a little."""
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("written")
    assert run(folder / "run", config_for(model, folder, "hydra", answers=12, steps=6))
    return folder / "run"


def of(written: Path, kind: str, **more: float) -> HeadsConfig:
    config = replace(RunFolder(written).config(), kind=kind, data=(), answers=0, steps=0)
    return replace(config, answers_of=str(written), **more)


def test_heads_equal_those_of_a_run_that_wrote_the_answers_itself(
    written: Path, tmp_path: Path
) -> None:
    assert run(tmp_path / "again", of(written, "hydra", steps=6))
    pairs = [tensors_in(out) for out in (written, tmp_path / "again")]
    assert all(torch.equal(pairs[0][name], pairs[1][name]) for name in pairs[0])
    assert "12 answers" in (tmp_path / "again" / "README.md").read_text(encoding="utf-8")


def test_with_given_answers_all_time_is_for_training(written: Path, tmp_path: Path) -> None:
    config = of(written, "dspark", minutes=0.03, answers=8)
    assert answering_share(config) == 0
    assert training_share(config) > 0.9
    assert run(tmp_path / "out", config)
    settled = RunFolder(tmp_path / "out").resolved()
    assert settled["slices"] == [8]
    assert settled["num_steps_done"] >= 1


def test_a_plan_needs_no_answers(written: Path, model: Path, tmp_path: Path) -> None:
    names = ("--model", str(model), "--answers-of", str(written), "--kind", "dspark")
    reported = tmp_path / "plan.json"
    more = ("--device", "cpu", "--out", str(tmp_path / "out"), "--json", str(reported))
    assert main(["train", "heads", *names, *more, "--dry-run"]) == 0
    plan = json.loads(reported.read_text(encoding="utf-8"))
    assert plan["tokens_per_s"] == 0
    assert plan["num_steps"] > 0


def test_unsuitable_answers_are_refused(written: Path, tmp_path: Path) -> None:
    base = of(written, "hydra", steps=6)
    secret, empty = RunFolder(tmp_path / "secret"), RunFolder(tmp_path / "empty")
    secret.begin(replace(base, answers_of="", own_chats="history"))
    empty.begin(replace(base, answers_of=""))
    refused = {
        "are those of": replace(base, model="other"),
        "belong to chats": replace(base, answers_of=str(secret.out)),
        "too few": replace(base, answers_of=str(empty.out)),
        "No run": replace(base, answers_of=str(tmp_path / "none")),
    }
    for match, config in refused.items():
        with pytest.raises(TrainingError, match=match) as caught:
            RunFolder(tmp_path / "out").begin(config)
        assert caught.value.hint
    assert not (tmp_path / "out").exists()
    with pytest.raises(TrainingError, match="its own prompts"):
        replace(base, data=("some.jsonl",))
