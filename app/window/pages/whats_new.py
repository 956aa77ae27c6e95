"""The release notes: all from the menu, new ones after an update."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.pages.page import Page
from medusa_core.api import VERSION

if TYPE_CHECKING:
    from app.help.whats_new import WhatsNewDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts


def _make(parts: WindowParts, _pages: Pages) -> WhatsNewDialog:
    from app.help.changelog import own_releases
    from app.help.whats_new import WhatsNewDialog

    return WhatsNewDialog(own_releases(), parts.appearance, parts.window)


def _show_once(parts: WindowParts, pages: Pages) -> None:
    """Show the new release notes after an update."""
    before = parts.settings.values.seen_version
    if before == VERSION:
        return
    parts.settings.set(seen_version=VERSION)
    from app.help.changelog import own_releases, released_since
    from app.help.whats_new import WhatsNewDialog

    news = released_since(own_releases(), before, VERSION)
    dialog = pages.open(SPEC.name) if news else None
    if isinstance(dialog, WhatsNewDialog):
        dialog.show_releases(news)


SPEC = Page(
    "whats-new",
    QT_TRANSLATE_NOOP("Pages", "What’s new"),
    Section.APPLICATION,
    _make,
    menu=330,
    is_kept=False,
    at_start=_show_once,
)
