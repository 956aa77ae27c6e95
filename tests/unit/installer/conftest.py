"""A fake machine for every test of the installer."""

from pathlib import Path

import pytest

from installer import checkout
from tests.support.installer.fakes import FakeMachine


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeMachine:
    """A checkout in an empty directory of a machine without a GPU, with a good connection."""
    monkeypatch.delenv("MEDUSA_MODELS", raising=False)
    monkeypatch.setattr(checkout, "fetch_uv", lambda *_: tmp_path / "uv")
    return FakeMachine(tmp_path)
