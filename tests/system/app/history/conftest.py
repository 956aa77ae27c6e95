"""Fixture of windows that save their conversations."""

from tests.support.window.history_fixtures import open_saved

__all__ = ["open_saved"]
