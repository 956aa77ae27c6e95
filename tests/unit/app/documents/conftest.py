"""Fixtures of a loop that runs with Qt, and of the window's looks."""

from tests.support.window.fixtures import appearance
from tests.support.window.library_fixtures import run

__all__ = ["appearance", "run"]
