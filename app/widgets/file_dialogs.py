"""File dialogs, which open in the last used folder."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget

_FOLDER = "filesFolder"  # a property of the application: all windows share it


def files_folder() -> Path:
    """Return the folder of the next dialog: the last used one, or else the user's documents."""
    app = QCoreApplication.instance()
    last = None if app is None else app.property(_FOLDER)
    if isinstance(last, str) and Path(last).is_dir():
        return Path(last)
    documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    return Path(documents) if documents and Path(documents).is_dir() else Path.home()


def use_files_folder(folder: Path) -> None:
    """Set the folder of the next dialog."""
    app = QCoreApplication.instance()
    if app is not None:
        app.setProperty(_FOLDER, str(folder))


def choose_file(parent: QWidget, title: str, kinds: str = "") -> Path | None:
    """Ask for a file to read; returns None if the user cancels.

    Args:
        parent: Parent widget.
        title: Title of the dialog.
        kinds: Qt's filters, such as `Text (*.txt);;PDF (*.pdf)`.
    """
    name, _ = QFileDialog.getOpenFileName(parent, title, str(files_folder()), kinds)
    return _chosen(name)


def choose_files(parent: QWidget, title: str, kinds: str = "") -> tuple[Path, ...]:
    """Ask for files to read; returns none if the user cancels. Arguments as in `choose_file`."""
    names, _ = QFileDialog.getOpenFileNames(parent, title, str(files_folder()), kinds)
    if names:
        _chosen(names[0])
    return tuple(map(Path, names))


def choose_gguf(parent: QWidget) -> Path | None:
    """Ask for a GGUF file; returns None if the user cancels."""
    title = QCoreApplication.translate("Library", "GGUF file")
    kinds = QCoreApplication.translate("Library", "GGUF files (*.gguf)")
    return choose_file(parent, title, kinds)


def choose_save_path(
    parent: QWidget,
    title: str,
    name: str,
    kinds: str = "",
    options: QFileDialog.Option | None = None,
) -> tuple[Path | None, str]:
    """Ask for a file to write and its kind; returns None if the user cancels.

    Args:
        parent: Parent widget.
        title: Title of the dialog.
        name: Proposed file name; a path sets the folder, too.
        kinds: Qt's filters.
        options: Qt's options, such as not to confirm overwriting.
    """
    start = str(files_folder() / name)
    default = QFileDialog.Option(0) if options is None else options
    text, kind = QFileDialog.getSaveFileName(parent, title, start, kinds, "", default)
    return _chosen(text), kind


def choose_folder(parent: QWidget, title: str) -> Path | None:
    """Ask for a folder; returns None if the user cancels."""
    name = QFileDialog.getExistingDirectory(parent, title, str(files_folder()))
    if not name:
        return None
    use_files_folder(Path(name))
    return Path(name)


def _chosen(name: str) -> Path | None:
    if not name:
        return None
    use_files_folder(Path(name).parent)
    return Path(name)
