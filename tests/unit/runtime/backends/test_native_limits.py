"""Why a model isn't compiled: what the plan and headers say is what the runner does."""

import json
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.speculation.tuning import calibration
from tests.support.models.tiny import TinySpec, write_tiny

WIDE = TinySpec(hidden_size=64, intermediate_size=96, num_layers=1, seed=3)
NARROW = TinySpec(num_layers=1, seed=3)


@pytest.mark.parametrize(
    ("spec", "options", "why"),
    [
        (WIDE, LoadOptions("float32", "cpu"), ""),
        (WIDE, LoadOptions("float64", "cpu"), "no kernels for fp64 in float64"),
        (WIDE, LoadOptions("float32", "cpu", WeightFormats(cache="q4")), "kept as q4"),
        (WIDE, LoadOptions("float32", "cpu", WeightFormats(attended=8)), "attention is sparse"),
        (NARROW, LoadOptions("float32", "cpu"), "rows of 8 numbers"),
    ],
)
def test_a_runner_is_compiled_unless_there_is_a_reason_against(
    spec: TinySpec, options: LoadOptions, why: str, tmp_path: Path
) -> None:
    target = load_target(write_tiny(tmp_path, spec), None, options)
    assert isinstance(target.runner, NativeRunner) is (not why)
    assert bool(target.not_compiled) is bool(why)
    assert why in target.not_compiled


def test_plan_and_bench_say_why_a_model_is_not_compiled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(calibration.BUDGET_S, "cpu", 0.1)
    folder = str(write_tiny(tmp_path, NARROW))
    assert main(["plan", folder, "--device", "cpu"]) == 0
    assert "Not compiled: it has rows of 8 numbers" in capsys.readouterr().out
    assert main(["plan", folder, "--device", "cpu", "--json"]) == 0
    assert "rows of 8" in json.loads(capsys.readouterr().out)["not_compiled"]
    options = ("--step-cost", "--model", folder, "--device", "cpu", "--modes", "none")
    assert main(["bench", *options, "--max-new-tokens", "2"]) == 0
    assert "Not compiled: it has rows of 8 numbers" in capsys.readouterr().out
