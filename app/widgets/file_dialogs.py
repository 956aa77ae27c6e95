"""Dialogs that ask for files: each begins in the folder of the last one, not in the program's."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication, QStandardPaths
from PySide6.QtWidgets import QFileDialog, QWidget

_FOLDER = "filesFolder"  # a property of the application: all windows share it


def files_folder() -> Path:
    """Where the next dialog begins: where a file was chosen last, else the user's documents."""
    app = QCoreApplication.instance()
    last = None if app is None else app.property(_FOLDER)
    if isinstance(last, str) and Path(last).is_dir():
        return Path(last)
    documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    return Path(documents) if documents and Path(documents).is_dir() else Path.home()


def use_files_folder(folder: Path) -> None:
    """Begin the next dialog here."""
    app = QCoreApplication.instance()
    if app is not None:
        app.setProperty(_FOLDER, str(folder))


def choose_file(parent: QWidget, title: str, kinds: str = "") -> Path | None:
    """A file to read; None where the user chose none.

    Args:
        parent: The window above.
        title: Title of the dialog.
        kinds: Qt's filters, such as `Text (*.txt);;PDF (*.pdf)`.
    """
    name, _ = QFileDialog.getOpenFileName(parent, title, str(files_folder()), kinds)
    return _chosen(name)


def choose_files(parent: QWidget, title: str, kinds: str = "") -> tuple[Path, ...]:
    """Files to read; none where the user chose none. As `choose_file`."""
    names, _ = QFileDialog.getOpenFileNames(parent, title, str(files_folder()), kinds)
    if names:
        _chosen(names[0])
    return tuple(map(Path, names))


def choose_gguf(parent: QWidget) -> Path | None:
    """A GGUF file; None where the user chose none."""
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
    """A file to write, and which of the kinds it is to be; None where the user chose none.

    Args:
        parent: The window above.
        title: Title of the dialog.
        name: What to call it, unless the user does; a whole path begins in that folder.
        kinds: Qt's filters.
        options: Qt's, such as not to ask before a file is overwritten.
    """
    start = str(files_folder() / name)
    default = QFileDialog.Option(0) if options is None else options
    text, kind = QFileDialog.getSaveFileName(parent, title, start, kinds, "", default)
    return _chosen(text), kind


def choose_folder(parent: QWidget, title: str) -> Path | None:
    """A folder; None where the user chose none."""
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
