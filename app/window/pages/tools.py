"""The page of tools that models may call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer

from app.i18n.words import QT_TRANSLATE_NOOP
from app.window.commands.command import Section
from app.window.pages.page import Page

if TYPE_CHECKING:
    from app.tools.tools_dialog import ToolsDialog
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts


def _make(parts: WindowParts, _pages: Pages) -> ToolsDialog | None:
    """Create the dialog; None without a user folder."""
    if parts.tools is None:
        return None
    from app.tools.tools_dialog import ToolsDialog
    from medusa_core.api import TOOLS_EXTRA

    return ToolsDialog(parts.tools, parts.appearance, TOOLS_EXTRA.need, parts.window)


def _prepare(dialog: ToolsDialog, parts: WindowParts) -> None:
    """Read mcp.json again, which the user may have edited, and show everything."""
    if parts.tools is not None:
        parts.tools.toolbox.reload()
    dialog.refresh()


def _start(parts: WindowParts, _pages: Pages) -> None:
    """Start the servers that are switched on, after the window has been painted."""
    if parts.tools is not None:
        QTimer.singleShot(0, parts.tools.start)


SPEC = Page(
    "tools",
    QT_TRANSLATE_NOOP("Pages", "Tools"),
    Section.MODELS,
    _make,
    menu=245,
    prepare=_prepare,
    at_start=_start,
)
