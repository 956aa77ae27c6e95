"""Real models: found where the installer or `tests.tools.real_models` puts them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import MISSING
from tests.tools import real_models


@pytest.fixture
def real_model() -> Callable[[str], Path]:
    """Find a model's file; skip the test, with a note in the summary, if it is missing."""

    def find(name: str) -> Path:
        path = real_models.find(name)
        if path is None:
            pytest.skip(MISSING + name)
        return path

    return find
