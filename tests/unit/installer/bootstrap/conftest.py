"""A package, a user's folder and a machine for the tests of the bootstrap."""

import os
from pathlib import Path

import pytest

from installer.bootstrap.folders import ProgramData
from installer.bootstrap.program import Program
from tests.support.installer.fakes import FakeMachine, Listener, make_program


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return make_program(tmp_path / "program")


@pytest.fixture
def data(tmp_path: Path) -> ProgramData:
    return ProgramData(tmp_path / "data")


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path / "checkout")


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture(autouse=True)
def usual_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No setting of this machine's pip or uv, and no folder of this user."""
    for name in [one for one in os.environ if one.startswith(("PIP_", "UV_", "XDG_", "MEDUSA_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("DISPLAY", raising=False)
    (tmp_path / "home").mkdir()


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wait for the disk of this machine."""
    monkeypatch.setattr("installer.bootstrap.environment.os.sync", lambda: None)
