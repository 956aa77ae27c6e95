"""The documents in the window."""

from pathlib import Path

import yaml
from PySide6.QtCore import QUrl
from PySide6.QtGui import QTextDocument
from pytestqt.qtbot import QtBot

from app.help.help_dialog import PAGES, HelpDialog
from app.theme.appearance import Appearance, ThemeChoice
from medusa_core.api import docs_dir
from tests.support.window.fixtures import Open


def test_help_lists_the_same_pages_as_the_site() -> None:
    site = yaml.safe_load((docs_dir() / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = [
        Path(file).stem
        for section in site["nav"]
        for pages in section.values()
        if isinstance(pages, list) and "Develop" not in section
        for page in pages
        for file in page.values()
    ]
    assert list(PAGES) == [name for name in listed if (docs_dir() / f"{name}.md").is_file()]


def test_help_opens_a_page_follows_links_and_shows_pictures(open_ready: Open) -> None:
    window, _ = open_ready()
    window.commands.action("help").trigger()
    dialog = window.pages.find(HelpDialog)
    assert dialog is not None
    assert dialog.isVisible()
    for name in PAGES:
        dialog.open_page(name)
        assert len(dialog.text.toPlainText()) > 200, name
    dialog.open_page("start")
    dialog.text.anchorClicked.emit(QUrl("troubleshooting.md"))
    assert dialog.pages.currentRow() == PAGES.index("troubleshooting")
    dialog.open_page("drafts")
    picture = dialog.text.loadResource(2, QUrl("images/tree-panel-light.png"))
    assert not picture.isNull()
    assert dialog.text.loadResource(2, QUrl("../README.md")) is None, "only the documents' own"
    dialog.close()


def test_links_follow_the_theme(qtbot: QtBot, appearance: Appearance) -> None:
    dialog = HelpDialog(appearance)
    qtbot.addWidget(dialog)
    dialog.open_page("tools")
    dialog.show()
    bar = dialog.text.verticalScrollBar()
    bar.setValue(bar.maximum() // 2)
    place = bar.value()
    assert place > 0
    for theme in (ThemeChoice.DARK, ThemeChoice.LIGHT):
        appearance.use(theme)
        assert link_colours(dialog.text.document()) == {appearance.theme.link}
        assert bar.value() == place, "the page isn't scrolled"


def link_colours(document: QTextDocument) -> set[str]:
    """Return the colours of all links."""
    found, block = set(), document.begin()
    while block.isValid():
        for one in block.textFormats():
            if one.format.isAnchor():  # type: ignore[attr-defined]
                found.add(one.format.foreground().color().name())  # type: ignore[attr-defined]
        block = block.next()
    return found
