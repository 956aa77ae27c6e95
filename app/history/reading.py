"""Reading from the history, where a failure is shown rather than raised."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.chat.error_board import ErrorBoard
from medusa_core.errors import MedusaError

T = TypeVar("T")


def read_or_show(read: Callable[[], T], errors: ErrorBoard) -> T | None:
    """What the history has; None for what can't be read, which is shown among the errors."""
    try:
        return read()
    except MedusaError as error:
        errors.show_error(error.message, error.hint)
        return None
