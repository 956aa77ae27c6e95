"""All commands of the window: the one table of what can be done, and under which keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QKeySequence

from app.commands.command import Command, Section, standard

if TYPE_CHECKING:
    from app.window import MainWindow

_KEY = QKeySequence.StandardKey

# What the window's menu holds, by name; None for a line between.
MENU: tuple[str | None, ...] = (
    *("tree", "steps", "equilibrium", "compare", "open-trace", None),
    *("palette", "models", "settings", "theme", None),
    *("welcome", "diagnostics", "about", None, "quit"),
)


def window_commands(window: MainWindow) -> tuple[Command, ...]:
    """What can be done in a window, in the order of menus and of the palette."""
    return (*_chat(window), *_models(window), *_view(window), *_application(window))


def _chat(window: MainWindow) -> tuple[Command, ...]:
    chat, section = window.chat, Section.CHAT
    return (
        Command("new-chat", _said("New chat"), section, chat.new_chat, standard(_KEY.New)),
        Command(
            "search-history",
            _said("Search all conversations"),
            section,
            window.search_history,
            ("Ctrl+Shift+F",),
        ),
        Command("stop", _said("Stop"), section, window.stop, ("Esc",)),
        Command("send", _said("Send"), section, window.page.composer.submit, ("Ctrl+Return",)),
        Command(
            "regenerate", _said("Write the answer again"), section, chat.regenerate, ("Ctrl+R",)
        ),
        Command(
            "chat-settings",
            _said("Settings of this chat"),
            section,
            window.page.toggle_panel,
            ("Ctrl+Shift+P",),
        ),
    )


def _models(window: MainWindow) -> tuple[Command, ...]:
    return (
        Command("models", _said("Models…"), Section.MODELS, window.show_models, ("Ctrl+Shift+M",)),
    )


def _view(window: MainWindow) -> tuple[Command, ...]:
    insight, section = window.insight, Section.VIEW
    return (
        Command(
            "sidebar", _said("List of conversations"), section, window.toggle_sidebar, ("Ctrl+B",)
        ),
        Command(
            "tree",
            _said("Tree"),
            section,
            lambda: insight.toggle(insight.open_tree),
            ("F9",),
        ),
        Command(
            "steps",
            _said("Steps"),
            section,
            lambda: insight.toggle(insight.open_steps),
            ("F10",),
        ),
        Command(
            "equilibrium",
            _said("Equilibrium"),
            section,
            lambda: insight.toggle(insight.open_equilibrium),
            ("Ctrl+Shift+E",),
        ),
        Command(
            "compare",
            _said("Compare two modes…"),
            section,
            insight.open_compare,
            ("Ctrl+Shift+D",),
        ),
        Command("open-trace", _said("Open a trace…"), section, insight.files.ask_to_open),
        # The same key without Shift on most keyboards.
        Command(
            "zoom-in",
            _said("Larger"),
            section,
            lambda: window.zoom(1),
            standard(_KEY.ZoomIn, "Ctrl+="),
        ),
        Command(
            "zoom-out",
            _said("Smaller"),
            section,
            lambda: window.zoom(-1),
            standard(_KEY.ZoomOut),
        ),
        Command("zoom-normal", _said("Normal size"), section, lambda: window.zoom(0), ("Ctrl+0",)),
        Command("theme", _said("Light or dark"), section, window.toggle_theme),
    )


def _application(window: MainWindow) -> tuple[Command, ...]:
    desk, section = window.desk, Section.APPLICATION
    return (
        Command("palette", _said("Find a command…"), section, desk.show_palette, ("Ctrl+K",)),
        Command("settings", _said("Settings…"), section, desk.show_settings, ("Ctrl+,",)),
        Command("welcome", _said("First steps…"), section, desk.show_welcome),
        Command("diagnostics", _said("Diagnostics…"), section, desk.show_diagnostics),
        Command(
            "about",
            _said("About Medusa Chat"),
            section,
            window.show_about,
            standard(_KEY.HelpContents),
        ),
        Command("close", _said("Close the window"), section, window.close, ("Ctrl+W",)),
        Command("quit", _said("Quit"), section, window.close, ("Ctrl+Q",)),
    )


def _said(text: str) -> str:
    return QCoreApplication.translate("Commands", text)
