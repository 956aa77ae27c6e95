"""Measurements of models, kept for the next start; the files may be deleted."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from medusa_core.errors import CheckpointError
from medusa_core.system.files.atomic_file import replace_file
from medusa_core.system.files.json_file import read_json
from medusa_core.system.files.own_folder import make_own_folder

log = logging.getLogger(__name__)

T = TypeVar("T")


class MeasurementFiles:
    """A folder with a few small files for each model, format and device."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, key: str, what: str, read: Callable[[Any], T]) -> T | None:
        """Load a measurement; None if it is missing or can't be read.

        Args:
            key: Identifies model, format and device.
            what: Name of the measurement, part of the file's name.
            read: Converts the JSON object; may raise KeyError, TypeError, ValueError or
                OverflowError.

        Returns:
            The measurement; None if the file is missing or damaged.
        """
        path = self._path(key, what)
        try:
            return read(read_json(path)) if path.exists() else None
        except (CheckpointError, KeyError, TypeError, ValueError, OverflowError) as error:
            log.warning("%s can't be used and will be measured again: %r", path, error)
            return None

    def save(self, key: str, what: str, value: dict[str, Any]) -> None:
        """Save a measurement; errors of the disk are only logged.

        Raises:
            TypeError, ValueError: The value isn't JSON.
        """
        content = json.dumps(value).encode()
        try:
            make_own_folder(self._folder)
            replace_file(self._path(key, what), [content], durable=False)
        except OSError as error:
            log.warning("the %s of a model can't be kept: %s", what, error)

    def delete(self, key: str, what: str) -> None:
        """Delete a measurement, if there is one."""
        try:
            self._path(key, what).unlink(missing_ok=True)
        except OSError as error:
            log.warning("the %s of a model can't be deleted: %s", what, error)

    def _path(self, key: str, what: str) -> Path:
        """Return the path of a measurement."""
        return self._folder / f"{key}.{what}.json"
