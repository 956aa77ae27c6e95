"""Commands of the window with their default shortcuts."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject
from PySide6.QtGui import QKeySequence

from app.history.chat_title import title_of
from app.theme.appearance import ThemeChoice
from app.window.commands.command import (
    AppCommand,
    Section,
    standard,
)
from app.window.load_questions import ask_for_gguf
from app.window.parts import WindowParts
from medusa_core.loading.state import Phase

_KEY = QKeySequence.StandardKey


class WindowCommands(QObject):
    """All commands of the window except those that open pages."""

    def __init__(self, parts: WindowParts) -> None:
        super().__init__(parts.window)
        self._parts = parts

    def all(self) -> tuple[AppCommand, ...]:
        """Return the commands in the palette's order."""
        return (*self._chat(), *self._models(), *self._view(), *self._application())

    def _chat(self) -> tuple[AppCommand, ...]:
        page, chat, section = self._parts.page, self._parts.chat, Section.CHAT
        return (
            AppCommand("new-chat", self.tr("New chat"), section, chat.new_chat, standard(_KEY.New)),
            AppCommand(
                "find",
                self.tr("Find in this conversation"),
                section,
                page.find_words,
                standard(_KEY.Find),
            ),
            AppCommand(
                "find-next",
                self.tr("Find next"),
                section,
                lambda: page.finder.move(1),
                ("F3",),
            ),
            AppCommand(
                "find-previous",
                self.tr("Find previous"),
                section,
                lambda: page.finder.move(-1),
                ("Shift+F3",),
            ),
            AppCommand(
                "search-history",
                self.tr("Search all conversations"),
                section,
                self._search_history,
                ("Ctrl+Shift+F",),
            ),
            AppCommand("stop", self.tr("Stop"), section, self._stop, ("Esc",)),
            AppCommand("send", self.tr("Send"), section, page.composer.submit, ("Ctrl+Return",)),
            AppCommand("attach", self.tr("Attach files…"), section, page.composer.choose_files),
            AppCommand(
                "regenerate",
                self.tr("Write the answer again"),
                section,
                chat.regenerate,
                ("Ctrl+R",),
            ),
            AppCommand("continue", self.tr("Continue the answer"), section, chat.go_on),
            AppCommand("export", self.tr("Export this chat…"), section, self._export_chat),
            AppCommand("export-all", self.tr("Export all chats…"), section, self._export_all),
            AppCommand("import", self.tr("Import chats…"), section, self._import_chats),
            AppCommand(
                "chat-settings",
                self.tr("Settings of this chat"),
                section,
                page.toggle_panel,
                ("Ctrl+Shift+P",),
            ),
        )

    def _models(self) -> tuple[AppCommand, ...]:
        section = Section.MODELS
        return (
            AppCommand(
                "open-gguf",
                self.tr("Open a GGUF file…"),
                section,
                partial(ask_for_gguf, self._parts.window, self._parts.models),
                menu=230,
            ),
            AppCommand(
                "measure-again",
                self.tr("Measure this model's speed again"),
                section,
                self._parts.loaded_model.measure_again,
            ),
        )

    def _view(self) -> tuple[AppCommand, ...]:
        insight, section = self._parts.insight, Section.VIEW
        return (
            AppCommand(
                "sidebar",
                self.tr("List of conversations"),
                section,
                self._toggle_sidebar,
                ("Ctrl+B",),
            ),
            AppCommand(
                "open-trace",
                self.tr("Open a trace…"),
                section,
                insight.files.ask_to_open,
                menu=150,
            ),
            AppCommand(
                "save-trace", self.tr("Save the trace…"), section, insight.files.ask_to_save
            ),
            # The same key without Shift on most keyboards.
            AppCommand(
                "zoom-in",
                self.tr("Larger"),
                section,
                lambda: self._zoom(1),
                standard(_KEY.ZoomIn, "Ctrl+="),
            ),
            AppCommand(
                "zoom-out",
                self.tr("Smaller"),
                section,
                lambda: self._zoom(-1),
                standard(_KEY.ZoomOut),
            ),
            AppCommand(
                "zoom-normal", self.tr("Normal size"), section, lambda: self._zoom(0), ("Ctrl+0",)
            ),
            AppCommand("theme", self.tr("Light or dark"), section, self._toggle_theme, menu=270),
        )

    def _application(self) -> tuple[AppCommand, ...]:
        window, exchange, section = self._parts.window, self._parts.exchange, Section.APPLICATION
        return (
            AppCommand(
                "export-settings", self.tr("Export settings…"), section, exchange.ask_to_export
            ),
            AppCommand(
                "import-settings", self.tr("Import settings…"), section, exchange.ask_to_import
            ),
            AppCommand(
                "data-folder",
                self.tr("Open the data folder"),
                section,
                lambda: self._open(self._parts.folders.data),
                menu=350,
            ),
            AppCommand(
                "log-folder",
                self.tr("Open the log folder"),
                section,
                lambda: self._open(self._parts.folders.log),
                menu=360,
            ),
            AppCommand("close", self.tr("Close the window"), section, window.close, ("Ctrl+W",)),
            AppCommand("quit", self.tr("Quit"), section, window.close, ("Ctrl+Q",), menu=410),
        )

    # What takes more than one call ----------------------------------------------------------------

    def _stop(self) -> None:
        """Stop the pending answer, else the loading of a model."""
        chat, loaded_model = self._parts.chat, self._parts.loaded_model
        if not chat.is_busy and loaded_model.status.phase is Phase.LOADING:
            loaded_model.cancel()
        chat.stop()

    def _export_chat(self) -> None:
        """Export the shown conversation to a file."""
        history, shown = self._parts.history, self._parts.chat.conversation
        if history is not None and shown.turns:
            history.files.ask_to_export([shown.session_id], title_of(shown.turns[0].prompt.text))

    def _export_all(self) -> None:
        if (history := self._parts.history) is not None:
            history.files.ask_to_export(None, "conversations")

    def _import_chats(self) -> None:
        if (history := self._parts.history) is not None:
            history.files.ask_to_import()

    def _search_history(self) -> None:
        if (history := self._parts.history) is not None:
            history.sidebar.search()

    def _toggle_sidebar(self) -> None:
        if (history := self._parts.history) is not None:
            history.sidebar.setVisible(history.sidebar.isHidden())

    def _open(self, folder: Path) -> None:
        from app.desktop.folders import show_in_files

        if not show_in_files(folder):
            self._parts.chat.errors.show_error(
                self.tr("No file manager opens the folder."), self.tr("It is {0}.").format(folder)
            )

    def _toggle_theme(self) -> None:
        """Toggle between light and dark; the system's theme is no longer followed."""
        is_dark = self._parts.appearance.theme.is_dark
        choice = ThemeChoice.LIGHT if is_dark else ThemeChoice.DARK
        self._parts.settings.set(theme=choice.value)

    def _zoom(self, steps: int) -> None:
        """Zoom in or out; 0 resets the zoom."""
        scale = self._parts.appearance.scale
        self._parts.settings.set(zoom=scale.zoomed(steps).zoom if steps else 1.0)
