"""A run that trains heads: cut anywhere it ends as uncut, and what is wrong is said in words."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from medusa_core.__main__ import main
from medusa_core.engine.likelihood import bits_per_byte
from medusa_core.errors import TrainingError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions, Role
from medusa_core.models.lora.adapter_shape import ADAPTER
from medusa_core.speculation.drafters.lineup import drafters_for
from medusa_core.system.files.record_json import as_json
from medusa_core.training import heads_command
from medusa_core.training.heads_command import load_for_training
from medusa_core.training.heads_config import (
    HeadsConfig,
    config_from,
    learning_rate_of,
    read_config,
)
from medusa_core.training.order import ShardOrder
from medusa_core.training.prompts import bundled_training_prompts, read_training_prompts
from medusa_core.training.run_folder import RunFolder
from tests.support.engine.clusters import cluster_of
from tests.support.engine.tight import with_layers_below
from tests.support.models.adapter_files import lora_for
from tests.support.models.tiny import TinySpec, write_tiny
from tests.support.training.runs import after, command, config_for, prompts_file, run, tensors_in

SPEC = TinySpec(hidden_size=64, intermediate_size=96, num_layers=4, seed=21)
KINDS = ("hydra", "medusa", "medusa-shared", "rooted", "eagle", "dspark", "streams")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny(tmp_path_factory.mktemp("run") / "model", SPEC)


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Heads of a kind that an uncut run trained."""

    @cache
    def train(kind: str) -> Path:
        out = tmp_path_factory.mktemp("whole") / "out"
        assert run(out, config_of_kind(model, out.parent, kind))
        return out

    return train


def config_of_kind(model: Path, folder: Path, kind: str, **more: Any) -> HeadsConfig:
    if kind == "joint":
        more |= {"joint": True, "rank": 4, "answers": 16, "max_new_tokens": 16}
        return config_for(model, folder, "medusa-shared", steps=16, batch=512, **more)
    return config_for(model, folder, kind, learning_rate=0.03, **more)


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in ("eagle", "joint") else pytest.param(kind, marks=pytest.mark.slow)
        for kind in (*KINDS, "joint")
    ],
)
def test_a_repeatedly_interrupted_run_equals_an_uninterrupted_one_bit_for_bit(
    kind: str, model: Path, tmp_path: Path, whole: Callable[[str], Path]
) -> None:
    # States that the disk has no room for are computed again.
    config = config_of_kind(model, tmp_path, kind, states_gib=0.0)
    slices = 0
    while not run(tmp_path / "cut", config, after(9)):
        slices += 1
        assert slices < 40
    assert slices >= 3
    folders = (whole(kind), tmp_path / "cut")
    tensors, cut = ({**tensors_in(out), **tensors_in(out / ADAPTER)} for out in folders)
    assert tensors.keys() == cut.keys()
    assert any("lora" in name for name in cut) == (kind in ("joint", "streams"))
    assert all(torch.equal(tensors[name], cut[name]) for name in tensors)
    curves = [RunFolder(out).curve() for out in folders]
    assert [point["top1"] for point in curves[0]] == [point["top1"] for point in curves[1]]
    if kind == "joint":
        assert [point["step"] for point in curves[0]] == [6, 16]  # where each part ends


@pytest.mark.parametrize("kind", KINDS)
def test_trained_heads_load_in_the_engine_and_are_as_accurate(
    kind: str, model: Path, whole: Callable[[str], Path]
) -> None:
    out = whole(kind)
    curve = RunFolder(out).curve()
    # A running mean of 30 steps; without learning, 0.99 of the first or more is left.
    assert curve[-1]["loss"] < 0.975 * curve[0]["loss"]
    target = load_target(model, out, LoadOptions("float32", "cpu"))
    names = [spec.name for spec in drafters_for(target)]
    assert (kind if kind in ("eagle", "hydra", "dspark", "streams") else "medusa") in names
    assert (out / "README.md").read_text(encoding="utf-8").startswith("# Heads for")
    assert (out / "medusa_trees.json").exists() == ("medusa" in names)


def test_a_run_estimates_the_remaining_time_of_computing_states(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports: list[dict[str, Any]] = []
    monkeypatch.setattr(RunFolder, "report", lambda _, **progress: reports.append(progress))
    clock = count(step=2)  # each look is two seconds after the one before
    slow = SimpleNamespace(
        monotonic=lambda: float(next(clock)), perf_counter=time.perf_counter, time=time.time
    )
    monkeypatch.setattr("medusa_core.training.heads_run.time", slow)
    assert run(tmp_path / "out", config_for(model, tmp_path, "medusa-shared", answers=8, steps=6))
    states = [one for one in reports if one["stage"] == "states"]
    assert states[0]["done"] == 0
    assert "seconds_left" not in states[0]
    assert states[-1]["done"] == states[-1]["of"]
    assert states[-1]["seconds_left"] == 0
    between = [one for one in states if 0 < one["done"] < one["of"]]
    assert len(between) >= 5
    assert all(one["seconds_left"] > 0 for one in between)


@pytest.mark.parametrize(("where", "kind"), [("disk", "eagle"), ("cluster", "medusa-shared")])
def test_the_place_of_layers_doesnt_change_the_heads(
    where: str, kind: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = config_for(model, tmp_path, kind, answers=8, steps=6)
    if where == "disk":
        options = LoadOptions(device="cpu", context_tokens=here.context, sessions=1)
        room = with_layers_below(model, None, options, 0).memory_gib
        there = replace(here, memory_gib=room, tier_disk=str(tmp_path / "layers"))
    else:
        cluster = cluster_of(model, 2)
        through = partial(load_target, join=lambda _: cluster)
        monkeypatch.setattr(heads_command, "load_target", through)
        there = replace(here, cluster="127.0.0.1:6379")
    assert run(tmp_path / "here", here)
    loaded: list[Target] = []

    def load(config: HeadsConfig) -> Target:
        loaded.append(load_for_training(config))
        return loaded[-1]

    assert run(tmp_path / "there", there, load=load)
    (target,) = loaded
    assert target.is_divided or target.plan.placement is not None
    pairs = [tensors_in(tmp_path / name) for name in ("here", "there")]
    assert all(torch.equal(pairs[0][name], pairs[1][name]) for name in pairs[0])


@pytest.mark.parametrize("more", [{"joint": True}, {"kind": "streams"}])
@pytest.mark.parametrize("where", [{"cluster": "127.0.0.1:6379"}, {"tier_disk": "layers"}])
def test_training_that_changes_layers_needs_them_locally(
    more: dict[str, Any], where: dict[str, str], model: Path, tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match="must lie on this device"):
        replace(config_for(model, tmp_path, "medusa"), **more, **where)


def test_a_reduced_vocabulary_has_the_answers_most_frequent_tokens(
    model: Path, tmp_path: Path
) -> None:
    for kind, name in (("rooted", "token_map"), ("eagle", "d2t")):
        out = tmp_path / kind
        assert run(out, config_for(model, tmp_path, kind, vocabulary=40, answers=8, steps=6))
        assert len(tensors_in(out)[name]) == 40
        load_target(model, out, LoadOptions("float32", "cpu"))


def test_a_dry_run_reports_the_runs_requirements(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reported = tmp_path / "plan.json"
    arguments = command(tmp_path / "out", model, prompts_file(tmp_path), "--max-new-tokens", "16")[
        3:
    ]
    assert main([*arguments, "--dry-run", "--json", str(reported)]) == 0
    plan = json.loads(reported.read_text(encoding="utf-8"))
    counted = {"peak_bytes", "disk_bytes", "tokens_per_s", "hours", "num_steps", "tau"}
    assert set(plan) == counted
    assert all(value > 0 for value in plan.values())
    assert not (tmp_path / "out").exists()
    assert "GB" in capsys.readouterr().out


def test_heads_are_evaluated_by_a_command(
    model: Path, tmp_path: Path, whole: Callable[[str], Path]
) -> None:
    prompts = tmp_path / "prompts.jsonl"
    rows = [{"id": str(n), "category": "ab"[n % 2], "turns": [f"say {n}"]} for n in range(4)]
    prompts.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    reported = tmp_path / "eval.json"
    names = ("--model", str(model), "--heads", str(whole("medusa-shared")), "--device", "cpu")
    more = ("--prompts", str(prompts), "--json", str(reported), "--max-new-tokens", "12")
    assert main(["eval", "heads", *names, *more, "--threads", "1"]) == 0
    found = json.loads(reported.read_text(encoding="utf-8"))
    assert [len(head["top"]) for head in found["heads"]] == [10, 10]
    assert set(found["tau"]) == {"4", "8", "16", "64"}
    assert set(found["tokens_per_s"]) == {"none", "heads"}
    assert set(found["by_category"]) == {"a", "b"}
    assert "bits_per_byte" not in found
    lora_for(model, tmp_path / "lora")
    adapted = (*names, *more, "--adapter", str(tmp_path / "lora"), "--limit", "1")
    assert main(["eval", "heads", *adapted, "--threads", "1"]) == 0
    changed = json.loads(reported.read_text(encoding="utf-8"))["bits_per_byte"]
    assert changed["adapter"] != pytest.approx(changed["none"], rel=1e-3)
    expected = bits_per_byte(load_target(model, None, LoadOptions(device="cpu")), ["say 0"])
    assert changed["none"] == pytest.approx(expected, rel=1e-6)


def test_every_position_is_read_once_per_epoch() -> None:
    order = ShardOrder([64, 32, 96], 32, seed=3)
    assert order.steps_per_epoch == 6
    for turn in range(2):
        seen: set[tuple[int, int]] = set()
        for step in range(turn * 6, turn * 6 + 6):
            shard, places = order.at(step)
            seen |= {(shard, place) for place in places.tolist()}
        assert len(seen) == 192
    rounds = [[order.at(turn * 6 + step)[1].tolist() for step in range(6)] for turn in range(2)]
    assert sorted(map(sorted, rounds[0])) != sorted(map(sorted, rounds[1]))


ROWS: dict[str, dict[str, Any]] = {
    "turns": {"turns": ["hello", "more"], "category": "talk"},
    "openai": {"messages": [{"role": "user", "content": "hello"}, {"role": "assistant"}]},
    "sharegpt": {"conversations": [{"from": "human", "value": "hello"}, {"from": "gpt"}]},
    "prompt": {"prompt": "hello"},
    "alpaca": {"instruction": "hello", "input": ""},
}


@pytest.mark.parametrize("form", ROWS)
@pytest.mark.parametrize("as_list", [False, True])
def test_prompts_are_read_in_every_common_format(form: str, as_list: bool, tmp_path: Path) -> None:
    path = tmp_path / ("a.json" if as_list else "a.jsonl")
    path.write_text(json.dumps([ROWS[form]] if as_list else ROWS[form]), encoding="utf-8")
    (prompts,) = read_training_prompts([tmp_path])
    assert [(m.role, m.text) for m in prompts.messages] == [(Role.USER, "hello")]


@pytest.mark.parametrize(
    "text", ["{", '{"a": 1}', "7", '{"messages": []}', '{"prompt": 7}', "[1]", "\xff"]
)
def test_a_row_without_a_prompt_is_named(text: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b'{"prompt": "fine"}\n' * (text[0] != "[") + text.encode("latin-1"))
    with pytest.raises(TrainingError) as caught:
        read_training_prompts([path])
    assert "bad.jsonl" in caught.value.message
    assert caught.value.hint


def test_the_bundled_prompts_are_many_and_different() -> None:
    prompts = bundled_training_prompts()
    texts = [one.messages[-1].text for one in prompts]
    assert len(texts) == len(set(texts)) >= 600
    assert len({one.category for one in prompts}) >= 6
    assert not any("{}" in text for text in texts)


@pytest.mark.parametrize(
    "raw",
    [
        {"kind": "best"},
        {"num_heads": 0},
        {"num_heads": 2.5},
        {"steps": -1},
        {"steps": 5, "minutes": 5},
        {"unknown": 1},
        {"data": "a.jsonl"},
        {"data": [1]},
        {"joint": "yes"},
        {"learning_rate": "fast"},
        {"states_gib": -1},
    ],
    ids=str,
)
def test_a_senseless_configuration_is_refused(raw: dict[str, Any]) -> None:
    with pytest.raises(TrainingError) as caught:
        config_from(raw, "run.json")
    assert caught.value.hint


def test_heads_of_narrow_models_have_a_higher_default_learning_rate() -> None:
    medusa, eagle = HeadsConfig(kind="medusa"), HeadsConfig(kind="eagle")
    assert learning_rate_of(medusa, 4096) == 1e-3
    assert learning_rate_of(medusa, 256) == pytest.approx(4e-3)
    assert learning_rate_of(eagle, 256) < learning_rate_of(medusa, 256)
    assert learning_rate_of(replace(medusa, learning_rate=2e-4), 256) == 2e-4


def test_a_configuration_file_is_read_and_flags_take_precedence(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text('{"kind": "rooted", "minutes": 30, "data": ["x"]}', encoding="utf-8")
    config = read_config(path)
    assert (config.kind, config.minutes, config.data) == ("rooted", 30.0, ("x",))
    assert config_from(as_json(config), "again") == config
    with pytest.raises(TrainingError, match=r"run\.json, minutes is 'x', not of type float"):
        config_from({"minutes": "x"}, path.name)


def test_a_non_empty_folder_isnt_written_to(model: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(TrainingError, match="isn't empty"):
        RunFolder(tmp_path).begin(config_for(model, tmp_path, "medusa"))
    with pytest.raises(TrainingError, match="No run"):
        RunFolder(tmp_path / "none").config()


def test_a_full_disk_is_reported_with_a_remedy(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_: object) -> SimpleNamespace:
        return SimpleNamespace(free=0)

    out = tmp_path / "out"
    monkeypatch.setattr("medusa_core.training.run_folder.shutil.disk_usage", nothing)
    with pytest.raises(TrainingError, match=r"only 0\.0 GB") as caught:
        run(out, config_for(model, tmp_path, "medusa"))
    assert "--resume" in caught.value.hint
    monkeypatch.undo()
    assert run(out, config_for(model, tmp_path, "medusa"))
