"""Reads and checks JSON values from untrusted files. Nothing here needs torch."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any, TypeGuard

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr

_MAX_BYTES = 16 << 20  # ten times the index of the largest published model


def read_json(path: Path, most_bytes: int = _MAX_BYTES) -> dict[str, Any]:
    """Read a JSON object.

    Args:
        most_bytes: Larger files are refused.

    Raises:
        CheckpointError: The file is missing, too large, unreadable, not JSON, or not an object.
    """
    try:
        about = path.stat()
        if about.st_size > most_bytes:
            raise CheckpointError(
                tr(
                    "{0} has {1:,} bytes; such files have at most {2:,}.",
                    path,
                    about.st_size,
                    most_bytes,
                ),
                "Download the file again.",
            )
        if stat.S_ISCHR(about.st_mode) or stat.S_ISFIFO(about.st_mode):
            raise OSError("it is no file")  # a pipe or device may never end
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CheckpointError(
            tr("{0} is missing in {1}.", path.name, path.parent),
            "Choose a folder in Hugging Face layout, or download the model again.",
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise CheckpointError(
            tr("{0} can't be read as JSON: {1}.", path, error), "Download the file again."
        ) from error
    if not isinstance(value, dict):
        raise CheckpointError(tr("{0} holds no JSON object.", path), "Download the file again.")
    return value


def is_whole(value: object, least: int, most: int) -> TypeGuard[int]:
    """Whether a JSON value is an integer within limits; true and false aren't."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
