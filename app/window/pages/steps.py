"""The page of curves over all decoding steps."""

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.pages.page import Page

SPEC = Page(
    "steps",
    QT_TRANSLATE_NOOP("Pages", "Steps"),
    Section.VIEW,
    lambda parts, _pages: parts.insight.open_steps(),
    keys=("F10",),
    menu=120,
    is_panel=True,
)
