"""What all tests of training take."""

from tests.core.conftest import one_thread

__all__ = ["one_thread"]
