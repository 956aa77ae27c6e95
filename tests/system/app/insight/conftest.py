"""Fixture of a window with an answer."""

from tests.support.window.insight_fixtures import answered

__all__ = ["answered"]
