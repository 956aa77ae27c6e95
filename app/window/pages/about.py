"""The About page, with licences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.pages.page import Page
from medusa_core.api import resources_dir

if TYPE_CHECKING:
    from app.help.about import AboutDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts


def _make(parts: WindowParts, _pages: Pages) -> AboutDialog:
    from app.help.about import AboutDialog

    return AboutDialog(resources_dir(), parts.appearance, parts.window)


SPEC = Page(
    "about",
    QT_TRANSLATE_NOOP("Pages", "About Medusa Chat"),
    Section.APPLICATION,
    _make,
    label=QT_TRANSLATE_NOOP("Pages", "About Medusa Chat"),
    menu=370,
    is_kept=False,
)
