"""The command palette's page."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from app.i18n.words import QT_TRANSLATE_NOOP
from app.widgets.matching import Provider
from app.window.commands.command import Section
from app.window.pages.page import Page

if TYPE_CHECKING:
    from app.window.commands.palette import Palette
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts


def _make(parts: WindowParts, _pages: Pages) -> Palette:
    from app.window.commands.palette import Palette, command_entries, model_entries

    providers: list[Provider] = [
        partial(command_entries, parts.commands),
        partial(model_entries, parts.models),
    ]
    if parts.history is not None:
        providers.append(parts.history.entries)
    return Palette(parts.appearance, parts.window, providers)


SPEC = Page(
    "palette",
    QT_TRANSLATE_NOOP("Pages", "Find a command"),
    Section.APPLICATION,
    _make,
    keys=("Ctrl+K",),
    menu=210,
    show=lambda palette, parts: palette.open_over(parts.window),
)
