"""Menu of the files in which other programs list their tool servers."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import NamedTuple

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QMenu, QWidget

from app.widgets.file_dialogs import choose_file


class ImportMenu(QMenu):
    """Menu of the known files that exist, and of any other.

    Signals:
        chosen: The user chose a file (its path).
    """

    chosen = Signal(object)

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._owner = parent
        self.aboutToShow.connect(self._fill)

    def _fill(self) -> None:
        self.clear()
        for program, path in known_files():
            words = self.tr("From {0} ({1})").format(program, path)
            self.addAction(words.replace("&", "&&"), partial(self.chosen.emit, path))
        self.addAction(self.tr("From a file…"), self._choose_file)

    def _choose_file(self) -> None:
        title, kinds = self.tr("Import servers"), self.tr("JSON files (*.json)")
        path = choose_file(self._owner, title, kinds)
        if path is not None:
            self.chosen.emit(path)


class KnownFile(NamedTuple):
    """A file of another program.

    Attributes:
        program: Name of the program.
        path: The file.
    """

    program: str
    path: Path


def known_files(home: Path | None = None, platform: str = sys.platform) -> tuple[KnownFile, ...]:
    """Return the files that exist.

    Args:
        home: The user's home folder.
        platform: As `sys.platform`.
    """
    home = home or Path.home()
    if platform == "darwin":
        config = home / "Library" / "Application Support"
    elif platform == "win32":
        config = Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        config = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    places = (
        KnownFile("Claude Desktop", config / "Claude" / "claude_desktop_config.json"),
        KnownFile("LM Studio", home / ".lmstudio" / "mcp.json"),
        KnownFile("LM Studio", home / ".cache" / "lm-studio" / "mcp.json"),
        KnownFile("Cursor", home / ".cursor" / "mcp.json"),
    )
    return tuple(place for place in places if place.path.is_file())
