"""What the tests of the recipe draw answers from."""

import pytest

from recipe.network import PebbleNetwork
from tests.core.conftest import one_thread
from tests.recipe.toy_recipe import NARROW, random_network

__all__ = ["one_thread"]


@pytest.fixture
def network() -> PebbleNetwork:
    """A random one."""
    return random_network(NARROW, 0.3)
