"""A fake machine for every test of the installer."""

from pathlib import Path

import pytest

from tests.support.installer.fakes import FakeMachine


@pytest.fixture
def machine(tmp_path: Path) -> FakeMachine:
    """A checkout in an empty directory of a machine without a GPU, with a good connection."""
    return FakeMachine(tmp_path)
