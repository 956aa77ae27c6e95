"""Dialogs that ask whether to load a model."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QWidget

from app.state.library import LibraryState
from app.widgets.dropping import IS_MODEL
from app.widgets.file_dialogs import choose_gguf
from app.widgets.questions import confirms


def ask_for_gguf(window: QWidget, models: LibraryState) -> None:
    """Ask for a GGUF file, and load it."""
    if file := choose_gguf(window):
        models.load_file(file)


def offer_to_load(window: QWidget, models: LibraryState, path: Path) -> None:
    """Ask whether a model that was dropped or attached is to be loaded."""
    if confirms(window, QCoreApplication.translate("Library", IS_MODEL), str(path)):
        models.load_file(path)
