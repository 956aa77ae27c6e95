"""All commands of the window: the one table of what can be done, and under which keys."""

from __future__ import annotations

from PySide6.QtCore import QObject
from PySide6.QtGui import QKeySequence

from app.history.chat_title import title_of
from app.theme.appearance import ThemeChoice
from app.window.commands.command import (
    AppCommand,
    Section,
    standard,
)
from app.window.dialogs import Dialogs
from app.window.parts import WindowParts
from medusa_core.loading.state import Phase

_KEY = QKeySequence.StandardKey

# What the window's menu holds, by name; None for a line between.
MENU: tuple[str | None, ...] = (
    *("tree", "steps", "equilibrium", "compare", "open-trace", None),
    *("palette", "models", "open-gguf", "batch", "server", "settings", "theme", None),
    *("help", "welcome", "whats-new", "diagnostics", "data-folder", "log-folder", "about", None),
    "quit",
)


class WindowCommands(QObject):
    """What can be done in a window."""

    def __init__(self, parts: WindowParts, dialogs: Dialogs) -> None:
        super().__init__(parts.window)
        self._parts = parts
        self._dialogs = dialogs

    def all(self) -> tuple[AppCommand, ...]:
        """The commands, in the order of the palette."""
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
        dialogs, section = self._dialogs, Section.MODELS
        return (
            AppCommand(
                "models", self.tr("Models…"), section, dialogs.show_models, ("Ctrl+Shift+M",)
            ),
            AppCommand("open-gguf", self.tr("Open a GGUF file…"), section, dialogs.open_gguf),
            AppCommand(
                "measure-again",
                self.tr("Measure this model's speed again"),
                section,
                self._parts.loaded_model.measure_again,
            ),
            AppCommand("batch", self.tr("Batch…"), section, dialogs.show_batch),
            AppCommand("server", self.tr("Server…"), section, dialogs.show_server),
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
                "tree",
                self.tr("Tree"),
                section,
                lambda: insight.toggle(insight.open_tree),
                ("F9",),
            ),
            AppCommand(
                "steps",
                self.tr("Steps"),
                section,
                lambda: insight.toggle(insight.open_steps),
                ("F10",),
            ),
            AppCommand(
                "equilibrium",
                self.tr("Equilibrium"),
                section,
                lambda: insight.toggle(insight.open_equilibrium),
                ("Ctrl+Shift+E",),
            ),
            AppCommand(
                "compare",
                self.tr("Compare two modes…"),
                section,
                insight.ask_to_compare,
                ("Ctrl+Shift+D",),
            ),
            AppCommand("open-trace", self.tr("Open a trace…"), section, insight.files.ask_to_open),
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
            AppCommand("theme", self.tr("Light or dark"), section, self._toggle_theme),
        )

    def _application(self) -> tuple[AppCommand, ...]:
        window, dialogs, section = self._parts.window, self._dialogs, Section.APPLICATION
        return (
            AppCommand(
                "palette", self.tr("Find a command…"), section, dialogs.show_palette, ("Ctrl+K",)
            ),
            AppCommand(
                "settings", self.tr("Settings…"), section, dialogs.show_settings, ("Ctrl+,",)
            ),
            AppCommand(
                "export-settings",
                self.tr("Export settings…"),
                section,
                lambda: dialogs.exchange.ask_to_export(),
            ),
            AppCommand(
                "import-settings",
                self.tr("Import settings…"),
                section,
                lambda: dialogs.exchange.ask_to_import(),
            ),
            AppCommand("welcome", self.tr("First steps…"), section, dialogs.show_welcome),
            AppCommand("whats-new", self.tr("What’s new…"), section, dialogs.show_whats_new),
            AppCommand("diagnostics", self.tr("Diagnostics…"), section, dialogs.show_diagnostics),
            AppCommand(
                "data-folder",
                self.tr("Open the data folder"),
                section,
                dialogs.open_data_folder,
            ),
            AppCommand(
                "log-folder", self.tr("Open the log folder"), section, dialogs.open_log_folder
            ),
            AppCommand(
                "help",
                self.tr("Help"),
                section,
                dialogs.show_help,
                standard(_KEY.HelpContents),
            ),
            AppCommand("about", self.tr("About Medusa Chat"), section, dialogs.show_about),
            AppCommand("close", self.tr("Close the window"), section, window.close, ("Ctrl+W",)),
            AppCommand("quit", self.tr("Quit"), section, window.close, ("Ctrl+Q",)),
        )

    # What takes more than one call ----------------------------------------------------------------

    def _stop(self) -> None:
        """Stop the answer that is being written, else the model that is being loaded."""
        chat, loaded_model = self._parts.chat, self._parts.loaded_model
        if not chat.is_busy and loaded_model.status.phase is Phase.LOADING:
            loaded_model.cancel()
        chat.stop()

    def _export_chat(self) -> None:
        """Write the conversation that is shown into a file."""
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

    def _toggle_theme(self) -> None:
        """Take the other theme, and keep to it whatever the system says."""
        is_dark = self._parts.appearance.theme.is_dark
        choice = ThemeChoice.LIGHT if is_dark else ThemeChoice.DARK
        self._parts.settings.set(theme=choice.value)

    def _zoom(self, steps: int) -> None:
        """Make everything larger or smaller; 0 goes back to normal."""
        scale = self._parts.appearance.scale
        self._parts.settings.set(zoom=scale.zoomed(steps).zoom if steps else 1.0)
