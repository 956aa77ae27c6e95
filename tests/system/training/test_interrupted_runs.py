"""Training as a process: killed or interrupted, it loses little and goes on."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from medusa_core.training.run_folder import RunFolder
from tests.support.models.tiny import TinySpec, write_tiny
from tests.support.training.runs import command, prompts_file

SPEC = TinySpec(hidden_size=64, intermediate_size=96, num_layers=4, seed=21)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_tiny(tmp_path / "model", SPEC)


@pytest.mark.slow
def test_a_killed_run_resumes_and_loses_little(model: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "out", prompts_file(tmp_path, 200)
    numbers = ("--answers", "200", "--max-new-tokens", "40", "--steps", "300")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    for kill, after_s in enumerate((4.0, 7.0, 9.0, 12.0)):
        more = ("--resume",) if kill else numbers
        process = subprocess.Popen(command(out, model, data, *more), env=environment)
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        process.wait()
    folder = RunFolder(out)
    written = len(folder.answers())
    assert written > 0
    finished = subprocess.run(command(out, model, data, "--resume"), env=environment, check=False)
    assert finished.returncode == 0
    assert len(folder.answers()) >= written
    assert load_target(model, out, LoadOptions("float32", "cpu")).heads is not None


def test_an_interrupted_run_pauses_and_saves_everything(model: Path, tmp_path: Path) -> None:
    out, data = tmp_path / "out", prompts_file(tmp_path, 200)
    process = subprocess.Popen(
        command(out, model, data, "--answers", "5000", "--steps", "5"),
        stdout=subprocess.PIPE,
        text=True,
    )
    until = time.monotonic() + 240
    while not (out / "work" / "answers.jsonl").exists() and time.monotonic() < until:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == 3
    assert "--resume" in output
    progress = json.loads((out / "work" / "progress.json").read_text(encoding="utf-8"))
    assert progress["stage"] == "paused"
