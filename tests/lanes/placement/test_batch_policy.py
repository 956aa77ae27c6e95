"""`medusa batch` carries a policy out: a file's, or the best one that has room."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from medusa_core.__main__ import main
from medusa_core.cli.plan import shape_config
from medusa_core.errors import PlanError, RequestError, TierError
from medusa_core.loading.load import load_target
from medusa_core.loading.memory.budget import GIB, Budget
from medusa_core.loading.memory.placement import Planner, tiers_of
from medusa_core.loading.policy.forecast_vs_actual import part_rates
from medusa_core.loading.policy.result import BatchForecast
from medusa_core.messages import (
    BlockBytes,
    Fit,
    HeadsShape,
    LoadOptions,
    Policy,
    Shares,
    Tier,
    WeightFormats,
)
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.quant.format import Hardware
from medusa_core.runtime.kv.offloaded.row_file import RowFile
from medusa_core.runtime.kv.size import ring_bytes, tail_bytes, whole_rows
from medusa_core.runtime.runner.traffic import Traffic
from medusa_core.system.jobs.batch.progress import read_progress
from tests.support.engine.batch_files import LINES, rows_of, write
from tests.support.engine.batch_policies import ON_DISK, batch, policy_file, texts
from tests.support.models.targets import Folders

HARDWARE = Hardware("cpu", packs=("float32", "bfloat16"), compiles=True)
HALF_ON_DISK = Shares(0.5, 0.0, 0.5)


@pytest.mark.usefixtures("known_rates")
@pytest.mark.parametrize(
    ("dtype", "given"),
    [
        ("float64", None),
        ("float64", Policy(ON_DISK, batch=4, prompt_rows=32)),
        ("float64", Policy(ON_DISK, ON_DISK, batch=3, num_batches=2, prompt_rows=48)),
        # The compiled step.
        ("float32", Policy(ON_DISK, ON_DISK, batch=2, num_batches=4, prompt_rows=64)),
        ("float32", Policy(Shares(), HALF_ON_DISK, ON_DISK, batch=4, num_batches=2)),
    ],
)
def test_texts_under_a_policy_equal_those_of_the_resident_model(
    dtype: str,
    given: Policy | None,
    folders: Folders,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prompts = write(tmp_path / "in.jsonl", LINES)
    assert main(batch(folders, prompts, tmp_path / "whole.jsonl", "--dtype", dtype)) == 0
    progress = tmp_path / "progress.json"
    how = ["--tier-disk", str(tmp_path / "tiers"), "--progress", str(progress), "--dtype", dtype]
    if given is not None:
        how += ["--policy", policy_file(tmp_path / "policy.json", given)]
    else:
        how += ["--memory-gib", "0.0032"]
    capsys.readouterr()
    assert main(batch(folders, prompts, tmp_path / "out.jsonl", *how)) == 0
    assert texts(tmp_path / "out.jsonl") == texts(tmp_path / "whole.jsonl")
    printed = capsys.readouterr().out
    assert "forecast" in printed
    told = read_progress(progress)
    assert told is not None
    assert told.policy is not None
    assert given in (None, told.policy)
    assert told.policy.weights.disk or told.policy.cache.disk
    assert told.forecast_tokens_per_s
    names = {part.name for part in told.parts if part.reached is not None}
    below = {"weights read"} if told.policy.weights.disk else set()
    below |= {"cached rows read", "cached rows written"} if told.policy.cache.disk else set()
    assert names == {"computed", "waited"} | below


@pytest.mark.usefixtures("known_rates")
@pytest.mark.parametrize(("failing", "at"), [("read", 300), ("write", 60)])
def test_a_disk_error_within_a_block_marks_no_line_and_the_same_command_resumes(
    failing: str, at: int, folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompts = write(tmp_path / "in.jsonl", LINES)
    assert main(batch(folders, prompts, tmp_path / "whole.jsonl")) == 0
    policy = Policy(ON_DISK, ON_DISK, batch=2, num_batches=2, prompt_rows=32)
    how = ["--tier-disk", str(tmp_path / "tiers")]
    how += ["--policy", policy_file(tmp_path / "policy.json", policy)]
    out, works, count = tmp_path / "out.jsonl", getattr(RowFile, failing), 0

    def fails_later(*args: Any) -> Any:
        nonlocal count
        count += 1
        if count == at:
            raise TierError("The disk is full.", "Make room.")
        return works(*args)

    with monkeypatch.context() as failed:
        failed.setattr(RowFile, failing, fails_later)
        assert main(batch(folders, prompts, out, *how)) == 1
    assert all(row["error"] is None for row in rows_of(out).values())
    assert len(rows_of(out)) < len(LINES)
    assert main(batch(folders, prompts, out, *how)) == 0
    assert texts(out) == texts(tmp_path / "whole.jsonl")


@pytest.mark.usefixtures("known_rates")
def test_a_model_that_fits_needs_no_policy(
    folders: Folders, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = write(tmp_path / "in.jsonl", LINES[:2])
    how = ["--tier-disk", str(tmp_path / "tiers"), "--memory-gib", "1"]
    assert main(batch(folders, prompts, tmp_path / "out.jsonl", *how)) == 0
    assert "forecast" not in capsys.readouterr().out
    assert not (tmp_path / "tiers").exists()


@pytest.mark.usefixtures("known_rates")
@pytest.mark.parametrize(
    ("more", "told"),
    [
        (["--memory-gib", "0.00001", "--tier-disk", "TIERS"], "no room"),
        (["--policy", "POLICY"], "--tier-disk"),
        (["--policy", "POLICY", "--tier-disk", "TIERS", "--memory-gib", "0.0001"], "more than"),
        (["--policy", "MEMORY", "--tier-disk", "TIERS"], "memory is the device here"),
        (["--policy", "missing.json"], "holds no policy"),
        (["--policy", os.devnull], "holds no policy"),
        (["--memory-gib", "nan", "--tier-disk", "TIERS"], "nan GiB"),
        (["--policy", "POLICY", "--together", "4"], "--together"),
    ],
)
def test_a_policy_without_room_is_reported(
    more: Sequence[str],
    told: str,
    folders: Folders,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    prompts = write(tmp_path / "in.jsonl", LINES[:2])
    file = policy_file(tmp_path / "policy.json", Policy(ON_DISK, batch=2))
    in_memory = policy_file(tmp_path / "memory.json", Policy(Shares(0.0, 1.0, 0.0)))
    named = {"POLICY": file, "MEMORY": in_memory, "TIERS": str(tmp_path / "tiers")}
    how = [named.get(word, word) for word in more]
    assert main(batch(folders, prompts, tmp_path / "out.jsonl", *how)) == 1
    assert told in capsys.readouterr().err


def planned(policy: Policy, gib: float, config: ModelConfig | None = None) -> Any:
    config = config or shape_config("vicuna-7b")
    formats = resolve_formats(WeightFormats("q4_0", lm_head="q4_0"), "", HARDWARE)
    budget = Budget("a small device", HARDWARE, round(gib * GIB), 0, 0, is_live=True)
    return Planner(config, HeadsShape(), formats, budget, sessions=32).place(policy, 576)


def test_a_plan_places_whole_layers_and_counts_their_prefetch_buffers() -> None:
    policy = Policy(Shares(1 / 16, 0, 15 / 16), ON_DISK, batch=4, num_batches=8, prompt_rows=512)
    plan = planned(policy, 2.5)
    placement = plan.placement
    assert placement.states is Tier.DEVICE
    assert planned(replace(policy, activations=ON_DISK), 2.5).placement.states is Tier.DISK
    assert plan.fit is not Fit.NO
    assert len(placement.layers(Tier.DEVICE)) == 2
    assert placement.cached_layers(Tier.DISK) == tuple(range(32))
    assert (placement.batch, placement.pass_rows, placement.tree_rows) == (4, 512, 1)
    config = shape_config("vicuna-7b")
    ring = ring_bytes(config, 2, "", range(32), 4, whole_rows(576))
    assert plan.kv_bytes == ring + tail_bytes(config, 2, "", range(32), 32, 1)
    assert placement.buffer_bytes > ring
    # What lies below takes nothing of the device: a cache here takes what it takes.
    here = planned(replace(policy, cache=Shares()), 64).kv_bytes
    half = planned(replace(policy, cache=Shares(0.5, 0, 0.5)), 64)
    assert len(half.placement.cached_layers(Tier.DISK)) == 16
    assert half.kv_bytes == here // 2 + ring + tail_bytes(config, 2, "", range(16), 32, 1)


def test_with_little_memory_fewer_rows_are_computed_at_once() -> None:
    policy = Policy(ON_DISK, ON_DISK, batch=1, num_batches=32)
    roomy, tight = planned(policy, 4), planned(policy, 0.75)
    assert roomy.fit is not Fit.NO
    assert tight.fit is not Fit.NO
    assert tight.placement.prompt_rows < roomy.placement.prompt_rows
    assert planned(policy, 0.5).fit is Fit.NO


def test_offloaded_layers_are_spread_evenly_among_the_others() -> None:
    tiers = tiers_of(Shares(0.25, 0.25, 0.5), 16)
    assert [tiers.count(tier) for tier in Tier] == [4, 4, 8]
    for start in range(0, 16, 8):
        part = tiers[start : start + 8]
        assert [part.count(tier) for tier in Tier] == [2, 2, 4]


def test_a_policy_with_offloaded_layers_is_refused_with_an_adapter(
    folders: Folders, tmp_path: Path
) -> None:
    options = LoadOptions(tier_disk=tmp_path, cluster="localhost:1", policy=Policy(ON_DISK))
    with pytest.raises(RequestError, match="adapter or a cluster"):
        load_target(*folders["streamed"], options)


def test_a_policy_without_room_says_how_much_it_lacks(folders: Folders, tmp_path: Path) -> None:
    options = LoadOptions("float64", tier_disk=tmp_path, memory_gib=1e-4, policy=Policy(ON_DISK))
    with pytest.raises(PlanError, match="more than") as refused:
        load_target(*folders["streamed"], options)
    assert refused.value.data["missing_bytes"] > 0


FORECAST = BatchForecast(
    prefill_s=1.0,
    step_s=1.0,
    tokens_per_s=10.0,
    rates={"weights read": 1e9, "cached rows read": 5e8, "computed": 0.01, "waited": 0.5},
    binds=("reading from disk",),
    sizes=BlockBytes(),
)


def test_each_component_has_its_forecast_and_its_measured_rate() -> None:
    traffic = Traffic(
        weights_bytes=10_000_000_000,
        weights_s=9.0,
        rows_read_bytes=4_000_000_000,
        rows_read_s=16.0,
        computed_s=20.0,
        waited_s=30.0,
        num_passes=10,
        num_layers=1000,
    )
    parts = {part.name: part for part in part_rates(FORECAST, traffic)}
    assert parts["weights read"].reached == pytest.approx(10 / 9)
    assert parts["cached rows read"].forecast == pytest.approx(0.5)
    assert parts["computed"].reached == pytest.approx(20)
    assert parts["waited"].reached == pytest.approx(3)
    assert [name for name, part in parts.items() if part.binds] == [
        "weights read",
        "cached rows read",
    ]
