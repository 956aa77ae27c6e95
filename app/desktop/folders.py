"""Shows folders in the desktop's file manager."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices


def existing(folder: Path) -> Path:
    """Return the folder, or its nearest existing parent."""
    return next((one for one in (folder, *folder.parents) if one.is_dir()), folder)


def show_in_files(folder: Path) -> bool:
    """Show a folder in the file manager; returns False if there is none."""
    return QDesktopServices.openUrl(QUrl.fromLocalFile(str(existing(folder))))
