"""Fixture of a loop that runs with Qt."""

from tests.support.window.library_fixtures import run

__all__ = ["run"]
