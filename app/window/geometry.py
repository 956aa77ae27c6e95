"""Saved geometry and panels of the window."""

from __future__ import annotations

import base64
import binascii
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from PySide6.QtCore import QByteArray, QRect
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMainWindow, QSplitter

from app.widgets.file_dialogs import files_folder, use_files_folder
from medusa_core.api import read_json, replace_text
from medusa_core.errors import CheckpointError

log = logging.getLogger(__name__)

FILE_NAME = "window.json"
_LEAST_SEEN = 80  # of a window's title, so that it can be dragged

# Panels that are made when they are opened: whether each is open, and what opens it.
Panels = Mapping[str, tuple[Callable[[], bool], Callable[[], object]]]


class WindowState:
    """Saves and restores the state of a window.

    State of a newer version that can't be read isn't overwritten.
    """

    def __init__(self, window: QMainWindow, folder: Path, panels: Panels) -> None:
        self._window = window
        self._path = folder / FILE_NAME
        self._panels = panels

    def save(self) -> None:
        """Save the state; ignored if the disk isn't writable."""
        saved = {
            "geometry": _encode(self._window.saveGeometry()),
            "docks": _encode(self._window.saveState()),
            "open": [name for name, (is_open, _) in self._panels.items() if is_open()],
            "splitters": {
                one.objectName(): _encode(one.saveState())
                for one in self._window.findChildren(QSplitter)
                if one.objectName()
            },
            "files": str(files_folder()),
        }
        try:
            replace_text(self._path, json.dumps(saved, indent=1) + "\n", durable=False)
        except OSError as error:
            log.warning("%s can't be written: %s", self._path, error)

    def restore(self) -> None:
        """Restore the state; invalid values are ignored."""
        try:
            saved = read_json(self._path) if self._path.exists() else {}
        except (CheckpointError, OSError) as error:
            log.warning("the window is as at the first start: %s", error)
            return
        if isinstance(files := saved.get("files"), str):
            use_files_folder(Path(files))
        opened = saved.get("open")
        for name in opened if isinstance(opened, list) else ():
            if name in self._panels:
                self._panels[name][1]()
        self._window.restoreGeometry(_decode(saved.get("geometry")))
        self._window.restoreState(_decode(saved.get("docks")))
        splitters = saved.get("splitters")
        for one in self._window.findChildren(QSplitter):
            if isinstance(splitters, dict) and one.objectName() in splitters:
                one.restoreState(_decode(splitters[one.objectName()]))
        self._move_on_screen()

    def _move_on_screen(self) -> None:
        """Move the window onto a screen if its title bar is off-screen."""
        frame = self._window.frameGeometry()
        screens = [screen.availableGeometry() for screen in QGuiApplication.screens()]
        title = QRect(frame.x(), frame.y(), frame.width(), _LEAST_SEEN)
        if any(_is_seen(title.intersected(screen)) for screen in screens) or not screens:
            return
        home = screens[0]
        size = frame.size().boundedTo(home.size())
        self._window.resize(size)
        self._window.move(home.center() - QRect(home.topLeft(), size).center() + home.topLeft())


def _is_seen(part: QRect) -> bool:
    return part.width() >= _LEAST_SEEN and part.height() >= _LEAST_SEEN // 2


def _encode(state: QByteArray) -> str:
    return base64.b64encode(state.data()).decode("ascii")


def _decode(saved: Any) -> QByteArray:
    try:
        return QByteArray(base64.b64decode(str(saved or ""), validate=True))
    except (binascii.Error, ValueError):
        return QByteArray()
