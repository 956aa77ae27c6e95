"""Fixtures of a Hub on loopback."""

from tests.support.hub.fixtures import (
    cache,
    converts_here,
    heads_files,
    hub,
    model_files,
    scripted,
    scripted_settings,
    settings,
)

__all__ = [
    "cache",
    "converts_here",
    "heads_files",
    "hub",
    "model_files",
    "scripted",
    "scripted_settings",
    "settings",
]
