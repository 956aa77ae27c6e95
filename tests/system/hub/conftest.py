"""Fixtures of a Hub on loopback."""

from tests.support.hub.fixtures import (
    cache,
    heads_files,
    hub,
    model_files,
    scripted,
    scripted_settings,
    settings,
)

__all__ = [
    "cache",
    "heads_files",
    "hub",
    "model_files",
    "scripted",
    "scripted_settings",
    "settings",
]
