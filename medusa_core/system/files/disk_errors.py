"""Convert errors of the disk to errors for users."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medusa_core.errors import MedusaError
from medusa_core.i18n import tr


@contextmanager
def disk_errors(kind: type[MedusaError], path: Path | str, hint: str) -> Iterator[None]:
    """Raise an error that names the path if writing fails within the context.

    Args:
        kind: Class of the error.
        path: File or folder as the message shows it.
        hint: What the user can do.

    Raises:
        MedusaError: The disk is full or gone, or the path may not be written; of class `kind`.
    """
    try:
        yield
    except OSError as error:
        message = tr("{0} can't be written: {1}.", path, error.strerror or error)
        raise kind(message, hint) from error
