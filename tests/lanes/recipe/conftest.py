"""What the tests of the recipe draw answers from."""

import pytest

from recipe.network import PebbleNetwork
from tests.lanes.recipe.toy_recipe import NARROW, random_network


@pytest.fixture
def network() -> PebbleNetwork:
    """A random one."""
    return random_network(NARROW, 0.3)
