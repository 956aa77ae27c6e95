"""The equilibrium page: checks whether the model reproduces a text."""

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.pages.page import Page

SPEC = Page(
    "equilibrium",
    QT_TRANSLATE_NOOP("Pages", "Equilibrium"),
    Section.VIEW,
    lambda parts, _pages: parts.insight.open_equilibrium(),
    keys=("Ctrl+Shift+E",),
    menu=130,
    is_panel=True,
)
