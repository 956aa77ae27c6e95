"""Launches of kernels are chosen by their times on a card, kept, and change no token."""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
import torch

from medusa_core.doctor.machine import machine_checks
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from medusa_core.models.quant import card_linear
from medusa_core.models.quant.card_linear import (
    DOT_LAUNCHES,
    MMA_LAUNCHES,
    LaunchConfig,
)
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.system import cuda
from medusa_core.system.native.cuda import MAX_SPLITS, tuning
from medusa_core.system.native.cuda.tuning import Candidates, Launch, tune
from medusa_core.system.resources import calibrations_dir
from tests.gpu.first_card import compare_launches
from tests.support.card.card import fake_cuda
from tests.support.card.host_kernels import HostKernels
from tests.support.models.gguf_files import write_as_gguf
from tests.support.models.tiny import TinySpec, write_tiny

DEVICE = torch.device("cuda", 0)
LAUNCHES = ((4,), (2,), (8,))
WIDE = TinySpec(hidden_size=64, intermediate_size=96, seed=51)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Home folder of one test, so that its measurements aren't shared."""
    monkeypatch.setenv("MEDUSA_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


class Times:
    """Planted times: measured launches, and seconds by launch."""

    def __init__(self, seconds: dict[Launch, float]) -> None:
        self.seconds, self.measured = seconds, 0

    def candidates(self, shape: str = "some shape", **more: Callable[[Launch], bool]) -> Candidates:
        return Candidates(shape, LAUNCHES, lambda launch: lambda: self.run(launch), **more)

    def run(self, launch: Launch) -> None:
        self.last = launch

    def median_seconds(
        self,
        works: Sequence[Callable[[], None]],
        device: torch.device,
        repeats: int,
        ends: float,
    ) -> list[float]:
        self.measured += 1
        found = []
        for work in works:
            work()
            found.append(self.seconds[self.last])
        return found

    def tune(self, *candidates: Candidates) -> dict[str, Launch]:
        with fake_cuda(), patch.object(cuda, "median_seconds", self.median_seconds):
            return tune(candidates or [self.candidates()], DEVICE)


@pytest.mark.parametrize(
    ("seconds", "chosen"),
    [((1.0, 0.9, 0.8), (8,)), ((1.0, 0.9, 0.95), (2,)), ((1.0, 0.98, 1.1), None)],
    ids=["the fastest", "another", "less than 3 % faster"],
)
def test_a_faster_launch_is_chosen_and_kept(
    seconds: tuple[float, ...], chosen: Launch | None
) -> None:
    times = Times(dict(zip(LAUNCHES, seconds, strict=True)))
    expected = {} if chosen is None else {"some shape": chosen}
    assert times.tune() == expected
    others = Times(dict(zip(LAUNCHES, reversed(seconds), strict=True)))  # of a busy card
    assert others.tune() == expected
    assert (times.measured, others.measured) == (1, 0)


def test_shapes_are_added_to_those_that_are_known() -> None:
    times = Times({(4,): 1.0, (2,): 0.5, (8,): 1.0})
    times.tune(times.candidates("first"))
    assert times.tune(times.candidates("first"), times.candidates("second")) == {
        "first": (2,),
        "second": (2,),
    }
    assert times.measured == 2


def test_another_driver_or_other_kernels_are_measured_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = Times({(4,): 1.0, (2,): 0.5, (8,): 1.0})
    times.tune()
    with fake_cuda():
        monkeypatch.setattr("tests.support.card.card._Facts.driver_version", lambda _: "1.3")
    times.tune()
    assert times.measured == 2
    monkeypatch.setattr("medusa_core.system.native.cuda.tuning._kernels_hash", lambda: "other")
    times.tune()
    assert times.measured == 3
    assert len(list(calibrations_dir().iterdir())) == 3


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", '{"shapes": {"some shape": [["8"], 1, 1]}}', '{"shapes": {"some shape": 1}}',
     '{"shapes": {"some shape": [[8], 1, NaN]}}'],
)  # fmt: skip
def test_a_damaged_file_is_replaced(content: str) -> None:
    times = Times({(4,): 1.0, (2,): 0.5, (8,): 1.0})
    times.tune()
    (path,) = calibrations_dir().iterdir()
    path.write_text(content)
    assert times.tune() == {"some shape": (2,)}
    assert times.measured == 2
    assert json.loads(path.read_text())["shapes"]["some shape"][0] == [2]


def test_a_launch_that_is_unknown_is_not_used() -> None:
    times = Times({(4,): 1.0, (2,): 0.5, (8,): 1.0})
    times.tune()
    (path,) = calibrations_dir().iterdir()
    path.write_text(path.read_text().replace("[2]", "[64]"))
    assert times.tune() == {}


def test_what_cannot_be_kept_is_not_used(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Else the next start would compute other bits."""
    home.mkdir()
    (home / "cache").write_text("no folder")
    times = Times({(4,): 1.0, (2,): 0.5, (8,): 1.0})
    assert times.tune() == {}
    assert "launches that can't be kept aren't used: some shape" in caplog.text


def test_measuring_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    times = Times({(4,): 1.0, (2,): 0.5, (8,): 1.0})

    def slowly(launch: Launch) -> Callable[[], None]:
        now[0] += 0.2  # of 0.8 s for all
        return lambda: times.run(launch)

    shapes = [replace(times.candidates(f"shape {i}"), work=slowly) for i in range(10)]
    assert times.tune(*shapes) == {"shape 0": (2,), "shape 1": (2,)}
    assert now[0] < 1.3
    assert times.tune(*shapes) == {"shape 0": (2,), "shape 1": (2,)}  # and never changes
    assert times.measured == 2


def test_a_launch_whose_results_are_wrong_is_not_used() -> None:
    times = Times({(4,): 1.0, (2,): 0.5, (8,): 1.0})
    assert times.tune(times.candidates(is_correct=lambda launch: launch != (2,))) == {}


def test_a_card_that_records_no_graphs_keeps_the_defaults(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*of: object) -> list[float]:
        raise RuntimeError("not permitted when stream is capturing")

    times = Times({})
    with fake_cuda(), patch.object(cuda, "median_seconds", fail):
        assert tune([times.candidates()], DEVICE) == {}
    assert "launches of some shape can't be measured" in caplog.text


@pytest.mark.parametrize("capability", [(6, 1), (8, 6)], ids=["dp4a", "tensor cores"])
def test_a_model_is_launched_as_is_fastest_and_drafts_change_no_bit(
    capability: tuple[int, int],
    kernels: HostKernels,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All products by their last candidate; attention by 8 splits instead of 32."""
    monkeypatch.setattr(tuning, "_LIMIT_S", 100)  # the CPU takes long to run them
    caplog.set_level(logging.INFO)
    path = write_as_gguf(write_tiny(tmp_path / "tiny", WIDE), tmp_path / "x.gguf", "q4_0")
    chain = TokenTree(TreeShape.chain(11), tuple(range(40, 51)))

    def last_is_fastest(works: Sequence[Callable[[], None]], *_: object) -> list[float]:
        for work in works:
            work()  # it runs, too
        return [1 - 0.1 * i for i in range(len(works))]

    with fake_cuda(capability, kernels=kernels) as card, torch.inference_mode():
        with card.waiting(), patch.object(cuda, "median_seconds", last_is_fastest):
            target = load_target(path, None, LoadOptions(device="cuda"))
        runner = target.runner
        assert isinstance(runner, StaticRunner)
        fused = runner._fused
        assert fused is not None
        launches = DOT_LAUNCHES if capability < (7, 0) else MMA_LAUNCHES
        assert {layer.launch for layer, _ in fused.linears} == {launches[-1]}
        assert fused.splits == 8
        found = []
        for count in (1, 11):
            kv = runner.new_cache(64)
            runner.extend([7 + i for i in range(30)], kv)
            tree = TokenTree(TreeShape.chain(count), chain.token_ids[:count])
            found.append(runner.verify(PlacedTree(tree, kv)).cpu()[0])
        assert torch.equal(found[0], found[1])
        (check,) = (one.run() for one in machine_checks() if one.name == "Kernels for cards")
        compared = compare_launches(target, DEVICE, lambda: float(fused.splits))
        assert {layer.launch for layer, _ in fused.linears} == {launches[0]}
    assert (compared["tuned launches"], compared["default launches"]) == (8, MAX_SPLITS)
    assert "Tuned launches are faster for " in check.message
    assert "30%" in check.message or "20%" in check.message
    assert "q4_0 64 x 96: launch " in caplog.text


@pytest.mark.parametrize("launch", [*MMA_LAUNCHES, *DOT_LAUNCHES], ids=str)
def test_every_launch_is_correct_and_independent_of_other_rows(
    launch: LaunchConfig, kernels: HostKernels
) -> None:
    capability = (8, 6) if launch in MMA_LAUNCHES and launch not in DOT_LAUNCHES else (6, 1)
    with fake_cuda(capability, kernels=kernels, checks_kernels=True) as card, card.waiting():
        for of in ("q4_0", "q6_k"):
            assert card_linear._works(of, 1280, DEVICE, launch)
