"""Reads from the history, and shows errors instead of raising them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.chat.error_board import ErrorBoard
from medusa_core.errors import MedusaError

T = TypeVar("T")


def read_or_show(read: Callable[[], T], errors: ErrorBoard) -> T | None:
    """Return the result of a read; None after an error, which is shown."""
    try:
        return read()
    except MedusaError as error:
        errors.show_error(error.message, error.hint)
        return None
