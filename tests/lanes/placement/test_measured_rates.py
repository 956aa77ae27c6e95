"""Policies for this machine: what is measured of it, and models that are written for it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from medusa_core.__main__ import main
from medusa_core.loading.measure import machine as measuring
from medusa_core.loading.measure import timing, transfers
from medusa_core.loading.measure.compute import Paces, paces_of
from medusa_core.loading.measure.machine import (
    DISK,
    MEASURED,
    MeasuredRates,
    measure_machine,
)
from medusa_core.loading.memory.budget import Budget
from medusa_core.loading.memory.placement import OffloadRoom
from medusa_core.loading.policy.machine_rates import MachineRates
from medusa_core.loading.policy.request import PolicyRequest, workload_of
from medusa_core.loading.policy.search import (
    search,
)
from medusa_core.messages import WeightFormats
from medusa_core.models.precision import hardware_of, precision_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.quant.format import Hardware
from medusa_core.runtime.kv.size import row_bytes
from medusa_core.system.files.measurement_files import MeasurementFiles
from tests.support.models.peer_files import write_peer
from tests.support.models.shapes import resized
from tests.support.models.transformers_files import EVERY, write_model

SMALL = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "intermediate_size": 96,
    "vocab_size": 256,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
}


@pytest.mark.parametrize("name", ["qwen 3.5", "gemma 4 E2B", "lfm 2"])
def test_recurrent_layers_and_layers_with_their_own_sizes_are_measured(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    write_peer(name, model, tmp_path / "heads")
    wanted = ["plan", str(model), "--throughput", "--prompts", "4", "--length", "64", "--measure"]
    assert main([*wanted, "--json"]) == 0
    printed = capsys.readouterr().out
    assert "tokens/s expected" in printed


def test_a_model_that_transformers_runs_has_no_policy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = write_model(tmp_path / "model", next(iter(EVERY)))
    assert main(["plan", str(model), "--throughput", "--length", "64"]) == 1
    assert "never offloaded" in capsys.readouterr().err


def test_rates_of_this_machine_are_measured_once_and_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfers, "_READ_BYTES", transfers.PIECE_BYTES)
    monkeypatch.setattr(transfers, "_MOVED_BYTES", 1 << 20)
    monkeypatch.setattr(timing, "MEASURED_S", 0.01)
    monkeypatch.setattr(timing, "_RATE_S", 0.01)
    config = resized("smollm2-1.7b", **SMALL)
    device = torch.device("cpu")
    formats = resolve_formats(WeightFormats(cache="q4"), "float32", hardware_of(device))
    precision = precision_of(formats.compute, device, formats.cache_format)
    requested = PolicyRequest(config, formats, precision, 8, 16, 16, 2)
    budget = Budget("a small device", Hardware("cpu"), 64 << 20, 0, 0, is_live=True)
    reported: list[str] = []
    kept = MeasurementFiles(tmp_path / "kept")
    measured: list[Paces] = []

    def slower(*wanted: Any) -> Paces:
        measured.append(paces_of(*wanted))
        return Paces(measured[-1].computing / 2, measured[-1].reading / 3)

    monkeypatch.setattr(measuring, "paces_of", slower)

    def found(*anew: str) -> MachineRates:
        rates = MeasuredRates(kept, reported.append, anew)
        return measure_machine(requested, budget, OffloadRoom(0, tmp_path / "tiers"), rates)

    first = found()
    assert len(reported) == 3
    assert replace(found(), disk_bytes=first.disk_bytes) == first  # others write meanwhile
    assert len(reported) == 3
    found(DISK)
    assert len(reported) == 4
    found(*MEASURED)
    assert len(reported) == 7
    assert (first.device_bytes, first.memory_bytes) == (64 << 20, 0)
    assert 0 < first.from_disk < 1e12
    assert 0 < first.cache_on_device < 1e13
    assert 0 < first.computing_beside == measured[0].computing / 2 <= 1 / 2
    assert 0 < first.reading_beside == measured[0].reading / 3 <= 1 / 3
    work = workload_of(requested)
    assert work.row_bytes * config.num_layers == row_bytes(config, 4, "q4")
    policy = search(work, first)
    assert policy is not None
    assert policy.forecast.tokens_per_s > 0
    assert list((tmp_path / "tiers").iterdir()) == []  # nothing is left of what was written
