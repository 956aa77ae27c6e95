"""Fixtures that open the window."""

from tests.support.window.fixtures import (
    appearance,
    calibrations,
    open_fake,
    open_ready,
    open_window,
    patience,
    seen,
)

__all__ = [
    "appearance",
    "calibrations",
    "open_fake",
    "open_ready",
    "open_window",
    "patience",
    "seen",
]
