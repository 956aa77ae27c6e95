"""A page: a dialog or panel of the application, and how it is reached."""

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
    """A page.

    Attributes:
        name: Name of its command, its keys and its picture.
        title: Title of its window, in English; its command is called by it, too.
        section: What it is about.
        make: Makes its widget when it is opened first, or returns the one that its room keeps. None
            where it can't be opened: whoever asked has been told why.
        keys: Default keys.
        menu: Its place in the window's menu, as for `AppCommand`; 0 leaves it out.
        label: Name of its command, in English; empty for its title, with an ellipsis if it is a
            dialog.
        prepare: Called each time it is opened, before it is shown; False doesn't show it.
        show: Shows it; None shows it beside the window.
        is_kept: Its widget is kept for the next time.
        is_panel: It is a panel of the window: its command closes it where it is open, and it is
            open again at the next start.
        at_start: Called once the window is seen for the first time.
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
