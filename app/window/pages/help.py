"""The help page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtGui import QKeySequence

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section, standard
from app.window.pages.page import Page

if TYPE_CHECKING:
    from app.help.help_dialog import HelpDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts


def _make(parts: WindowParts, _pages: Pages) -> HelpDialog:
    from app.help.help_dialog import HelpDialog

    return HelpDialog(parts.appearance, parts.window)


SPEC = Page(
    "help",
    QT_TRANSLATE_NOOP("Pages", "Help"),
    Section.APPLICATION,
    _make,
    keys=standard(QKeySequence.StandardKey.HelpContents),
    label=QT_TRANSLATE_NOOP("Pages", "Help"),
    menu=310,
)
