"""The page of a step's draft tree."""

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.pages.page import Page

SPEC = Page(
    "tree",
    QT_TRANSLATE_NOOP("Pages", "Tree"),
    Section.VIEW,
    lambda parts, _pages: parts.insight.open_tree(),
    keys=("F9",),
    menu=110,
    is_panel=True,
)
