"""Add models of the user: in place, or copied."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from medusa_core.errors import CheckpointError, DiskFullError, ModelError, RequestError
from medusa_core.hub.cache_folder import missing_bytes
from medusa_core.hub.library.installed import size_of
from medusa_core.hub.library.library_files import files_in
from medusa_core.hub.library.library_folder import (
    Contents,
    check_folder,
)
from medusa_core.i18n import tr
from medusa_core.system.files.atomic_file import replace_text
from medusa_core.system.files.json_file import read_json
from medusa_core.system.user_folders import with_home, without_home

_FLOOR_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Imported:
    """A folder that was added to the library.

    Attributes:
        path: Path of the folder.
    """

    path: Path
    contents: Contents


class FolderList:
    """List of folders outside of the cache, saved in a file."""

    def __init__(self, path: Path) -> None:
        """Use a list.

        Args:
            path: Its file; made with the first folder.
        """
        self._path = path

    def read(self) -> tuple[Path, ...]:
        """Return the folders in the order in which they were added.

        Raises:
            ModelError: The list can't be read.
        """
        try:
            raw = read_json(self._path) if self._path.exists() else {"folders": []}
            return tuple(Path(str(folder)) for folder in with_home(raw["folders"]))
        except (CheckpointError, TypeError, KeyError) as error:
            raise ModelError(
                tr("The list of folders {0} can't be read: {1}.", self._path, error),
                "Remove the file and add the folders again.",
            ) from error

    def add(self, folder: Path) -> Imported:
        """Add a model in place.

        Raises:
            CheckpointError: The folder isn't complete.
            ModelError: It holds no model, or the list can't be written.
        """
        folder = folder.absolute()
        contents = check_folder(folder)
        folders = self.read()
        if folder not in folders:
            self._write((*folders, folder))
        return Imported(folder, contents)

    def drop(self, folder: Path) -> None:
        """Remove a folder from the list; its files stay.

        Raises:
            RequestError: It isn't in the list.
            ModelError: The list can't be read or written.
        """
        folders = self.read()
        if folder.absolute() not in folders:
            raise RequestError(tr("{0} isn't in the list of folders.", folder))
        self._write(tuple(other for other in folders if other != folder.absolute()))

    def _write(self, folders: tuple[Path, ...]) -> None:
        """Save the list, with paths relative to the home folder."""
        listed = without_home([str(folder) for folder in folders])
        text = json.dumps({"folders": listed}, indent=2) + "\n"
        try:
            replace_text(self._path, text)
        except OSError as error:
            raise ModelError(
                tr(
                    "The list of folders {0} can't be written: {1}.",
                    self._path,
                    error.strerror or error,
                )
            ) from error


def import_copy(folder: Path, models_dir: Path, floor_bytes: int = _FLOOR_BYTES) -> Imported:
    """Copy a model into the folder of models.

    Args:
        folder: Folder in Hugging Face layout.
        models_dir: Parent of the copy, which appears when it is complete.
        floor_bytes: Bytes that stay free on the disk.

    Raises:
        CheckpointError: The folder isn't complete.
        ModelError: It holds no model.
        RequestError: There is one of that name.
        DiskFullError: There is no room.
    """
    contents = check_folder(folder)
    final = models_dir / folder.resolve().name
    if final.exists():
        raise RequestError(tr("{0} exists already.", final), "Rename one of the two folders.")
    if missing := missing_bytes(models_dir.absolute(), size_of(folder), floor_bytes):
        raise DiskFullError(
            tr("{0} lacks {1:,} bytes for a copy.", models_dir, missing),
            "Make space, or use the model where it is.",
        )
    part = models_dir / f".{final.name}.{os.getpid()}.partial"
    try:
        for source in files_in(folder):
            target = part / source.relative_to(folder)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        part.replace(final)
    except OSError as error:
        raise DiskFullError(
            tr("{0} can't be copied to {1}: {2}.", folder, models_dir, error.strerror or error),
            "Make space, or use the model where it is.",
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return Imported(final, contents)
