"""All commands of the window: the one table of what can be done, and under which keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtGui import QKeySequence

from app.window.commands.command import (
    Command,
    Section,
    standard,
)

if TYPE_CHECKING:
    from app.window.main_window import MainWindow

_KEY = QKeySequence.StandardKey

# What the window's menu holds, by name; None for a line between.
MENU: tuple[str | None, ...] = (
    *("tree", "steps", "equilibrium", "compare", "open-trace", None),
    *("palette", "models", "open-gguf", "batch", "settings", "theme", None),
    *("welcome", "diagnostics", "about", None, "quit"),
)


class WindowCommands(QObject):
    """What can be done in a window."""

    def __init__(self, window: MainWindow) -> None:
        super().__init__(window)
        self._window = window

    def all(self) -> tuple[Command, ...]:
        """The commands, in the order of the palette."""
        return (*self._chat(), *self._models(), *self._view(), *self._application())

    def _chat(self) -> tuple[Command, ...]:
        window = self._window
        chat, section = window.chat, Section.CHAT
        return (
            Command("new-chat", self.tr("New chat"), section, chat.new_chat, standard(_KEY.New)),
            Command(
                "find",
                self.tr("Find in this conversation"),
                section,
                window.page.find_words,
                standard(_KEY.Find),
            ),
            Command(
                "find-next",
                self.tr("Find next"),
                section,
                lambda: window.page.finder.move(1),
                ("F3",),
            ),
            Command(
                "find-previous",
                self.tr("Find previous"),
                section,
                lambda: window.page.finder.move(-1),
                ("Shift+F3",),
            ),
            Command(
                "search-history",
                self.tr("Search all conversations"),
                section,
                window.search_history,
                ("Ctrl+Shift+F",),
            ),
            Command("stop", self.tr("Stop"), section, window.stop, ("Esc",)),
            Command(
                "send", self.tr("Send"), section, window.page.composer.submit, ("Ctrl+Return",)
            ),
            Command(
                "attach", self.tr("Attach files…"), section, window.page.composer.ask_for_files, ()
            ),
            Command(
                "regenerate",
                self.tr("Write the answer again"),
                section,
                chat.regenerate,
                ("Ctrl+R",),
            ),
            Command(
                "continue",
                self.tr("Continue the answer"),
                section,
                window.continue_answer,
            ),
            Command("export", self.tr("Export this chat…"), section, window.export_chat),
            Command("export-all", self.tr("Export all chats…"), section, window.export_all),
            Command("import", self.tr("Import chats…"), section, window.import_chats),
            Command(
                "chat-settings",
                self.tr("Settings of this chat"),
                section,
                window.page.toggle_panel,
                ("Ctrl+Shift+P",),
            ),
        )

    def _models(self) -> tuple[Command, ...]:
        window = self._window
        return (
            Command(
                "models", self.tr("Models…"), Section.MODELS, window.show_models, ("Ctrl+Shift+M",)
            ),
            Command("open-gguf", self.tr("Open a GGUF file…"), Section.MODELS, window.open_gguf),
            Command("batch", self.tr("Batch…"), Section.MODELS, window.desk.show_batch),
        )

    def _view(self) -> tuple[Command, ...]:
        window = self._window
        insight, section = window.insight, Section.VIEW
        return (
            Command(
                "sidebar",
                self.tr("List of conversations"),
                section,
                window.toggle_sidebar,
                ("Ctrl+B",),
            ),
            Command(
                "tree",
                self.tr("Tree"),
                section,
                lambda: insight.toggle(insight.open_tree),
                ("F9",),
            ),
            Command(
                "steps",
                self.tr("Steps"),
                section,
                lambda: insight.toggle(insight.open_steps),
                ("F10",),
            ),
            Command(
                "equilibrium",
                self.tr("Equilibrium"),
                section,
                lambda: insight.toggle(insight.open_equilibrium),
                ("Ctrl+Shift+E",),
            ),
            Command(
                "compare",
                self.tr("Compare two modes…"),
                section,
                insight.open_compare,
                ("Ctrl+Shift+D",),
            ),
            Command("open-trace", self.tr("Open a trace…"), section, insight.files.ask_to_open),
            Command("save-trace", self.tr("Save the trace…"), section, insight.files.ask_to_save),
            # The same key without Shift on most keyboards.
            Command(
                "zoom-in",
                self.tr("Larger"),
                section,
                lambda: window.zoom(1),
                standard(_KEY.ZoomIn, "Ctrl+="),
            ),
            Command(
                "zoom-out",
                self.tr("Smaller"),
                section,
                lambda: window.zoom(-1),
                standard(_KEY.ZoomOut),
            ),
            Command(
                "zoom-normal", self.tr("Normal size"), section, lambda: window.zoom(0), ("Ctrl+0",)
            ),
            Command("theme", self.tr("Light or dark"), section, window.toggle_theme),
        )

    def _application(self) -> tuple[Command, ...]:
        window = self._window
        desk, section = window.desk, Section.APPLICATION
        return (
            Command("palette", self.tr("Find a command…"), section, desk.show_palette, ("Ctrl+K",)),
            Command("settings", self.tr("Settings…"), section, desk.show_settings, ("Ctrl+,",)),
            Command("welcome", self.tr("First steps…"), section, desk.show_welcome),
            Command("diagnostics", self.tr("Diagnostics…"), section, desk.show_diagnostics),
            Command(
                "about",
                self.tr("About Medusa Chat"),
                section,
                window.show_about,
                standard(_KEY.HelpContents),
            ),
            Command("close", self.tr("Close the window"), section, window.close, ("Ctrl+W",)),
            Command("quit", self.tr("Quit"), section, window.close, ("Ctrl+Q",)),
        )
