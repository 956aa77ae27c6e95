"""Fixtures of a library on a Hub on loopback."""

from tests.support.window.library_fixtures import hub, library, run, settings

__all__ = ["hub", "library", "run", "settings"]
