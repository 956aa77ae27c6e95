"""The About dialog."""

from collections.abc import Callable

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QDesktopServices
from pytestqt.qtbot import QtBot

import medusa_core
from app.help.about import (
    PAGES,
    AboutDialog,
)
from app.theme.appearance import Appearance, ThemeChoice
from app.window.main_window import MainWindow
from medusa_core.api import licences_file, resources_dir
from tests.support.window.fakes import FakeEngine


def test_the_header_opens_a_dialog_with_the_notice_of_the_demo_model(
    qtbot: QtBot, open_fake: Callable[..., tuple[MainWindow, FakeEngine]]
) -> None:
    window, _ = open_fake()
    window.commands.action("about").trigger()
    (dialog,) = window.findChildren(AboutDialog)
    assert dialog.isVisible()
    assert "Built with Llama" in [label.text() for label in dialog.labels]
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    qtbot.waitUntil(lambda: not window.findChildren(AboutDialog))


def test_versions_and_licences_are_listed_and_links_open_only_when_clicked(
    qtbot: QtBot, appearance: Appearance, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toString()))
    dialog = AboutDialog(resources_dir(), appearance)
    qtbot.addWidget(dialog)
    versions = dialog.versions.toPlainText()
    own = f"Medusa Chat: {medusa_core.__version__}"
    for part in (own, "torch: 2", "PySide6", "transformers: 5", "Compiled library"):
        assert part in versions
    licences = dialog.licences.toPlainText()
    assert "torch: Apache-2.0 AND" in licences
    assert "see its own files" not in licences
    assert opened == []
    assert licences_file().as_uri() in dialog.links.text()
    assert "## What ships with it" in licences_file().read_text(encoding="utf-8")
    dialog.links.linkActivated.emit(PAGES[0][1])
    assert opened == [PAGES[0][1]]


def test_links_follow_the_theme(qtbot: QtBot, appearance: Appearance) -> None:
    appearance.use(ThemeChoice.DARK)
    dialog = AboutDialog(resources_dir(), appearance)
    qtbot.addWidget(dialog)
    dialog.show()
    for choice in (ThemeChoice.DARK, ThemeChoice.LIGHT):
        appearance.use(choice)
        image = dialog.links.grab().toImage()
        places = ((x, y) for x in range(image.width()) for y in range(image.height()))
        colors = {image.pixelColor(x, y).name() for x, y in places}
        assert QColor(appearance.theme.link).name() in colors
