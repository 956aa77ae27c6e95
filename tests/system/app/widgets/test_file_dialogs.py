"""Dialogs that ask for files begin where the last file was, also after the next start."""

from pathlib import Path

import pytest
from PySide6.QtCore import QStandardPaths
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QApplication, QFileDialog, QMainWindow, QStyle
from pytestqt.qtbot import QtBot

from app.theme.appearance import Appearance
from app.widgets.file_dialogs import choose_file, choose_save_path, files_folder
from app.window.geometry import WindowState


@pytest.fixture(autouse=True)
def nothing_was_chosen(qapp: QApplication) -> None:
    qapp.setProperty("filesFolder", None)


def test_the_first_dialog_begins_in_the_users_documents() -> None:
    documents = QStandardPaths.writableLocation(QStandardPaths.StandardLocation.DocumentsLocation)
    assert files_folder() in (Path(documents), Path.home())


def test_the_next_dialog_begins_where_a_file_was_chosen_last(
    qtbot: QtBot, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window = QMainWindow()
    qtbot.addWidget(window)
    file, starts = tmp_path / "a.txt", []
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(file), ""))
    assert choose_file(window, "Open") == file

    def save(_parent: object, _title: str, start: str, *_: object) -> tuple[str, str]:
        starts.append(start)
        return "", ""

    monkeypatch.setattr(QFileDialog, "getSaveFileName", save)
    assert choose_save_path(window, "Save", "b.txt") == (None, "")
    assert starts == [str(tmp_path / "b.txt")]
    WindowState(window, tmp_path, {}).save()
    qapp = QApplication.instance()
    assert qapp is not None
    qapp.setProperty("filesFolder", None)
    WindowState(window, tmp_path, {}).restore()
    assert files_folder() == tmp_path


def test_file_dialogs_use_the_applications_icons(appearance: Appearance) -> None:
    assert QIcon.themeName() == "files"
    for name in ("folder", "text-x-generic", "go-up", "folder-new", "view-list-details"):
        assert QIcon.hasThemeIcon(name)
    icon = QApplication.style().standardIcon(QStyle.StandardPixmap.SP_DirIcon)
    colours = icon.pixmap(32, 32).toImage()
    ink = {
        colours.pixelColor(x, y).name()
        for x in range(32)
        for y in range(32)
        if colours.pixelColor(x, y).alpha() == 255
    }
    assert ink == {"#7d8087"}
