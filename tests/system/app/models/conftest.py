"""Fixtures of the model manager, on a Hub on loopback."""

from tests.support.window.library_fixtures import dialog, hub, library, published, run, settings

__all__ = ["dialog", "hub", "library", "published", "run", "settings"]
