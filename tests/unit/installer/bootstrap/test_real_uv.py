"""uv itself and a folder of tiny wheels, with a launcher that is killed wherever it hurts."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from installer.bootstrap.folders import ProgramData, program_data
from installer.bootstrap.program import Program
from installer.layout import this_repository
from tests.support.installer.fakes import PINS, make_program, make_wheel

PINNED = "torch==2.13.0\n"
UV = this_repository().program("uv")
pytestmark = [
    pytest.mark.skipif(not UV.exists(), reason="the installer fetches uv for some builds only"),
    pytest.mark.skipif(os.name == "nt", reason="processes are killed by signals here"),
]
SCRIPTS = "[console_scripts]\nmedusa = medusa_core:main\nmedusa-chat = medusa_core:main\n"
MAIN = "import sys\ndef main():\n    print('answer', *sys.argv[1:])\n"
TIMEOUT_S = 100


def program_files(version: str) -> dict[str, str]:
    return {
        "medusa_core/__init__.py": f"__version__ = '{version}'\n{MAIN}",
        "medusa_core/api.py": "",
        "app/__init__.py": "",
    }


def package_of(folder: Path, version: str) -> Program:
    """A package whose program needs torch."""
    program = make_program(folder, version)
    program.wheel().unlink()
    make_wheel(
        folder, "medusa-chat", version, {**program_files(version), PINS: PINNED}, ["torch"], SCRIPTS
    )
    uv = folder / "uv"
    uv.unlink()
    uv.symlink_to(UV)
    return program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return package_of(tmp_path / "program", "1.0")


@pytest.fixture
def mirror(tmp_path: Path) -> Path:
    make_wheel(tmp_path / "mirror", "torch", "2.13.0+cpu", {"torch/__init__.py": "x = 1\n"})
    return tmp_path / "mirror"


@pytest.fixture
def data() -> ProgramData:
    return program_data()


def command(program: Program, *words: str) -> list[str]:
    return [sys.executable, "-I", str(program.launcher), *words]


def medusa(program: Program, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        command(program, "medusa", *words),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )


def set_up(program: Program, mirror: Path) -> "subprocess.CompletedProcess[str]":
    return medusa(program, "update", "--yes", "--no-model", "--mirror", str(mirror))


def test_install_answer_update_repair_and_uninstall_work_from_nothing(
    data: ProgramData, program: Program, mirror: Path, tmp_path: Path
) -> None:
    done = set_up(program, mirror)
    assert done.returncode == 0, done.stderr
    assert medusa(program, "generate", "two words").stdout == "answer generate two words\n"

    newer = package_of(tmp_path / "newer", "1.1")
    done = medusa(newer, "update", "--yes")
    assert done.returncode == 0, done.stderr
    assert data.complete_versions() == ["1.1", "1.0"]

    libraries = next(data.environment("1.1").root.glob("lib/python*/site-packages"))
    shutil.rmtree(libraries / "app")
    # Both names of the file, the environment's and the cache's, now have other bytes.
    (libraries / "torch" / "__init__.py").write_text("broken", encoding="utf-8")
    done = medusa(newer, "repair", "--yes")
    assert done.returncode == 0, done.stderr
    assert "Fetching anew: torch" in done.stdout
    assert medusa(newer, "x").stdout == "answer x\n"

    assert medusa(newer, "uninstall", "--yes").returncode == 0
    assert not data.root.exists()


@pytest.mark.slow
def test_a_mirror_without_a_package_is_reported_and_changes_nothing(
    data: ProgramData, program: Program, mirror: Path, tmp_path: Path
) -> None:
    assert set_up(program, mirror).returncode == 0
    newer = package_of(tmp_path / "newer", "1.1")
    next(mirror.glob("torch*")).unlink()
    make_wheel(mirror, "torchx", "1.0", {})
    shutil.rmtree(data.cache)
    done = medusa(newer, "update", "--yes")
    assert done.returncode == 1
    assert "The update to 1.1 failed; version 1.0 still runs." in done.stderr
    assert medusa(newer, "x").stdout == "answer x\n"


@pytest.mark.parametrize(
    ("step", "whole_group"),
    [
        ("Fetching", False),  # uv goes on, and holds the lock
        pytest.param("Fetching", True, marks=pytest.mark.slow),
        *(
            pytest.param(step, whole_group, marks=pytest.mark.slow)
            for step in ("Making a place", "Looking for torch", "Checking", "Waiting")
            for whole_group in (False, True)
        ),
    ],
)
def test_a_killed_installation_resumes(
    data: ProgramData, program: Program, mirror: Path, step: str, whole_group: bool
) -> None:
    words = ("medusa", "update", "--yes", "--no-model", "--mirror", str(mirror))
    with subprocess.Popen(
        command(program, *words),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    ) as launcher:
        assert launcher.stdout is not None
        for line in launcher.stdout:
            if line.startswith(step):
                break
        time.sleep(0.03)
        if whole_group:
            os.killpg(launcher.pid, signal.SIGKILL)
        else:
            launcher.kill()
    done = set_up(program, mirror)
    assert done.returncode == 0, done.stderr
    assert medusa(program, "x").stdout == "answer x\n"
    assert data.half_made() == []


def test_two_concurrent_first_starts_both_succeed(
    data: ProgramData, program: Program, mirror: Path
) -> None:
    words = ("medusa", "update", "--yes", "--no-model", "--mirror", str(mirror))
    both = [
        subprocess.Popen(command(program, *words), stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    said = [one.communicate(timeout=TIMEOUT_S)[0] for one in both]
    assert [one.returncode for one in both] == [0, 0]
    assert sum(text.count("Fetching torch") for text in said) == 1
    assert data.complete_versions() == ["1.0"]
