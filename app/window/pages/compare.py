"""The page that compares two decoding modes."""

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.pages.page import Page

SPEC = Page(
    "compare",
    QT_TRANSLATE_NOOP("Pages", "Compare"),
    Section.VIEW,
    lambda parts, _pages: parts.insight.ask_to_compare(),
    keys=("Ctrl+Shift+D",),
    menu=140,
    label=QT_TRANSLATE_NOOP("Pages", "Compare two modes…"),
    show=lambda _dialog, parts: parts.insight.ask_to_compare(),
)
