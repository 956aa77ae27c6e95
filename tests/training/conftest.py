"""What the tests of training draw answers from."""

import pytest

from medusa_core.training.pebble.network import PebbleNetwork
from tests.core.conftest import one_thread
from tests.training.toy_recipe import NARROW, random_network

__all__ = ["one_thread"]


@pytest.fixture
def network() -> PebbleNetwork:
    """A random one."""
    return random_network(NARROW, 0.3)
