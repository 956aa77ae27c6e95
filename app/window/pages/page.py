"""Specification of a page: a dialog or panel and its command."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from PySide6.QtWidgets import QWidget

from app.window.commands.command import Section

if TYPE_CHECKING:
    from app.window.pages.registry import Pages
    from app.window.parts import WindowParts

    Make = Callable[[WindowParts, Pages], QWidget | None]
    Prepare = Callable[[Any, WindowParts], object]


@dataclass(frozen=True, slots=True)
class Page:
    """Specification of a page.

    Attributes:
        name: Name of its command and icon.
        title: Title of its window and default label of its command, in English.
        section: Section of its command.
        make: Returns the widget, created on first use; None if it can't be opened, after an
            error was shown.
        keys: Default shortcuts.
        menu: Position in the window's menu, as in `AppCommand`; 0 leaves it out.
        label: Name of its command, in English; empty for its title, with an ellipsis if it is a
            dialog.
        prepare: Called before each opening; False prevents it.
        show: Shows the widget; None shows it as a window.
        is_kept: Whether the widget is kept after closing.
        is_panel: Whether it is a panel of the window, which its command toggles and which is
            restored at the next start.
        at_start: Called once after the window is first shown.
    """

    name: str
    title: str
    section: Section
    make: Make
    keys: tuple[str, ...] = ()
    menu: int = 0
    label: str = ""
    prepare: Prepare | None = None
    show: Callable[[Any, WindowParts], object] | None = None
    is_kept: bool = True
    is_panel: bool = False
    at_start: Callable[[WindowParts, Pages], object] | None = None
