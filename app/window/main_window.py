"""The main window: the chat, its keys, and what it remembers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QMainWindow, QSplitter

from app.chat.chat_page import ChatPage
from app.chat.compose.composer import files_of
from app.chat.controller import ChatController
from app.chat.strip.memory_watch import MemoryWatch
from app.chat_settings.seeds import (
    NewSeed,
    new_seed,
)
from app.engine.bridge import EngineBridge
from app.engine.model_keeper import ModelKeeper
from app.history.history_keeper import HistoryKeeper
from app.history.kept_settings import KeptSettings
from app.history.learned_keeper import LearnedKeeper
from app.history.sidebar import WIDTH_EM, Sidebar
from app.history.stored import title_of
from app.history.titles import Titles
from app.history.trace_keeper import TraceKeeper
from app.insight.insight_panels import Insight
from app.markdown.formats import Marking
from app.settings.preferences import Preferences
from app.settings.store import SettingsStore
from app.theme.appearance import Appearance, ThemeChoice
from app.widgets.dropping import (
    accept_copy,
    is_model,
)
from app.window.commands.table import CommandTable
from app.window.commands.window_commands import (
    MENU,
    WindowCommands,
)
from app.window.dialogs import Desk
from medusa_core.api import Places, is_trace
from medusa_core.chats.presets import Presets
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import (
    ModelChoice,
    ready_choices,
)
from medusa_core.loading.state import Phase

if TYPE_CHECKING:
    from app.models.library_dialog import LibraryDialog
    from medusa_core.api import History, Installed, Library

    OpenLibrary = Callable[[], Library]

TITLE = "Medusa Chat"
START_SIZE = QSize(1120, 800)
DRAFT_MS = 800
MIN_SIZE = QSize(700, 500)


class MainWindow(QMainWindow):
    """The window of the application.

    Args:
        config_dir: Where choices are kept; None forgets them.
        open_library: Opens the library when it is needed first; None offers none.
        places: Where this user's files lie; None keeps nothing of the window.

    Attributes:
        page: Its widgets.
        chat: Leads the conversation.
        insight: Shows how answers came to be.
        keeper: State of the model.
        memory: Says what it runs on, and how much memory that has.
        settings: The user's choices.
        commands: All that can be done, with its keys.
        desk: Settings, palette and what else is around the chat.
        learned: What drafts learn from conversations; None where nothing is.

    Signals:
        closed: The user is done.
    """

    closed = Signal()

    def __init__(
        self,
        bridge: EngineBridge,
        keeper: ModelKeeper,
        appearance: Appearance,
        preferences: Preferences,
        config_dir: Path | None,
        *,
        resources: Path,
        open_library: OpenLibrary | None = None,
        make_seed: NewSeed = new_seed,
        places: Places | None = None,
    ) -> None:
        super().__init__()
        self.keeper = keeper
        self._bridge = bridge
        self._appearance = appearance
        self.settings = SettingsStore(preferences, config_dir)
        self._resources = resources
        self._open_library = open_library
        self.library: Library | None = None
        self.models: LibraryDialog | None = None
        presets = Presets(config_dir)
        self.page = ChatPage(appearance, presets, make_seed)
        self.chat = ChatController(self.page, bridge, keeper, appearance)
        self._draft_pause = QTimer(self)
        self._draft_pause.setSingleShot(True)
        self._draft_pause.setInterval(DRAFT_MS)
        self._known = {
            one.model_dir: one.drafted_by(preferences.draft_models) for one in ready_choices()
        }
        self.memory = MemoryWatch(self.page.strip, keeper)
        self.insight = Insight(self, self.chat, bridge, keeper, appearance)
        self.commands = CommandTable(self, preferences.shortcuts)
        self.desk = Desk(self, appearance, places)
        self.setAcceptDrops(True)
        self.setWindowTitle(TITLE)
        self.setMinimumSize(MIN_SIZE)
        self.resize(START_SIZE)
        self.sidebar = Sidebar(appearance)
        self.history: HistoryKeeper | None = None
        self.traces: TraceKeeper | None = None
        self.learned: LearnedKeeper | None = None
        self._split = QSplitter()
        self._split.setObjectName("sides")
        self._split.setChildrenCollapsible(False)
        self._split.addWidget(self.sidebar)
        self._split.addWidget(self.page)
        self._split.setStretchFactor(1, 1)
        self._split.setSizes([appearance.scale.px(WIDTH_EM), START_SIZE.width()])
        self.sidebar.hide()
        self.setCentralWidget(self._split)
        self.page.show_panel(preferences.shows_panel)
        self._connect()
        self.commands.add(WindowCommands(self).all())
        self.page.header.fill_menu(
            [None if name is None else self.commands.action(name) for name in MENU]
        )
        self.page.strip.choose_marking(Marking(preferences.marking))
        self.page.header.choose_recording(preferences.records)
        self.chat.records = preferences.records
        self.page.empty.show_hint(not preferences.has_read_hint)
        self.page.composer.setFocus()
        if presets.trouble is not None:
            self.chat.errors.show_error(presets.trouble.message, presets.trouble.hint)

    def keep_history(self, history: History, learned_dir: Path | None = None) -> None:
        """Keep what is said from now on, and list what was said before.

        Args:
            history: Where it is kept.
            learned_dir: Where drafts learn from it; None for nowhere.
        """
        composer = self.page.composer
        self.history = HistoryKeeper(self.chat, self.sidebar, history, composer)
        self._kept_settings = KeptSettings(self.chat, self.page.control, self.history)
        self.titles = Titles(self.chat, self._bridge, self.keeper, self.history.journal)
        self.titles.named.connect(self.history.refresh)
        self.traces = TraceKeeper(self.insight, history, self.history.journal)
        if learned_dir is not None:
            self.learned = LearnedKeeper(self.chat, self.history, self.settings, learned_dir)
        composer.changed.connect(self._draft_pause.start)
        composer.queued_row.cancelled.connect(self._draft_pause.start)
        self._draft_pause.timeout.connect(self.history.keep_draft)
        self.desk.add_provider(self.history.entries)
        self.sidebar.show()

    def continue_last(self) -> None:
        """Show the conversation in which something was said last."""
        if self.history is not None:
            self.history.open_last()

    def toggle_sidebar(self) -> None:
        """Show the list of conversations, or hide it."""
        if self.history is not None:
            self.sidebar.setVisible(self.sidebar.isHidden())

    def search_history(self) -> None:
        """Look for words in all conversations."""
        if self.history is not None:
            self.sidebar.show()
            self.sidebar.search_edit.setFocus()
            self.sidebar.search_edit.selectAll()

    def toggle_theme(self) -> None:
        """Take the other theme, and keep to it whatever the system says."""
        choice = ThemeChoice.LIGHT if self._appearance.theme.is_dark else ThemeChoice.DARK
        self.settings.choose("theme", choice.value)

    def zoom(self, steps: int) -> None:
        """Make everything larger or smaller; 0 goes back to normal."""
        scale = self._appearance.scale
        self.settings.choose("zoom", scale.zoomed(steps).zoom if steps else 1.0)

    def show_about(self) -> None:
        """Say what this is and whose work is in it."""
        from app.help.about import AboutDialog

        dialog = AboutDialog(self._resources, self._appearance, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def stop(self) -> None:
        """Stop the answer that is being written, else the model that is being loaded."""
        if not self.chat.is_busy and self.keeper.status.phase is Phase.LOADING:
            self.keeper.cancel()
        self.chat.stop()

    def show_models(self) -> None:
        """Open the model manager."""
        library = self.need_library()
        if library is None:
            return
        if self.models is None:
            from app.models.library_dialog import LibraryDialog

            self.models = LibraryDialog(
                library,
                self._appearance,
                self.settings.values.device,
                self,
                self.desk.training_dialog(),
            )
            self.desk.adopt(self.models)
        loaded = self.keeper.status.loaded
        plan = None if loaded is None else loaded.plan
        own = 0 if plan is None else plan.weights_bytes + plan.heads_bytes + plan.kv_bytes
        self.models.installed.draft_box.remembered = self.settings.values.draft_models
        self.models.refresh(own)
        self.models.show()
        self.models.raise_()

    def open_gguf(self) -> None:
        """Ask for a GGUF file, and put it among the models that are here."""
        self.show_models()
        if self.models is not None:
            self.models.open_gguf()

    def continue_answer(self) -> None:
        """Go on with the last answer, where it was cut."""
        if self.chat.conversation.turns:
            self.chat.go_on()

    def export_chat(self) -> None:
        """Write the conversation that is shown into a file."""
        if self.history is not None and self.chat.conversation.turns:
            shown = self.chat.conversation
            name = title_of(shown.turns[0].prompt.text)
            self.history.files.ask_to_export([shown.session_id], name)

    def export_all(self) -> None:
        """Write all conversations into a file."""
        if self.history is not None:
            self.history.files.ask_to_export(None, "conversations")

    def import_chats(self) -> None:
        """Take conversations from files."""
        if self.history is not None:
            self.history.files.ask_to_import()

    def need_library(self) -> Library | None:
        """The library, opened at the first call; None if there is none."""
        if self.library is None and self._open_library is not None:
            try:
                self.library = self._open_library()
            except MedusaError as error:
                self.chat.errors.show_error(error.message, error.hint)
                return None
            self.desk.open_library(self.library)
        return self.library

    async def offer_installed(self) -> None:
        """Put what is on this computer into the header's list of models."""
        library = self.need_library()
        if library is None:
            return
        self.list_installed(library, await library.installed())

    def list_installed(self, library: Library, installed: Sequence[Installed]) -> None:
        """Offer these models, those that are always ready and the loaded one, and no others."""
        kept = (*(one.model_dir for one in ready_choices()), self.keeper.choice.model_dir)
        here = {item.folder for item in installed}
        self._known = {path: one for path, one in self._known.items() if path in {*kept, *here}}
        for item in installed:
            if item.config is not None and item.is_complete:
                offered_heads = library.heads_for(item, installed)
                fitting = [h for h, reason in offered_heads if not reason and h.may_pay]
                heads_dir = fitting[0].folder if fitting else None
                name = item.name.rpartition("/")[2]
                offered = ModelChoice(name, item.folder, heads_dir)
                self._known.setdefault(
                    item.folder, offered.drafted_by(self.settings.values.draft_models)
                )
        self._offer_models()

    @property
    def known_models(self) -> tuple[ModelChoice, ...]:
        """The models that can be changed to."""
        return tuple(self._known.values())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            accept_copy(event)

    def dropEvent(self, event: QDropEvent) -> None:
        if not accept_copy(event):
            return
        paths = files_of(event.mimeData())
        if len(paths) == 1 and is_model(paths[0]):
            self.desk.offer_to_load(paths[0])
        elif len(paths) == 1 and is_trace(paths[0]):
            self.insight.files.open_trace(paths[0])
        elif paths:
            self.page.composer.attach(paths)
        else:
            self.chat.errors.show_error(
                "This can't be attached.", "Drop files that are on this computer."
            )

    def closeEvent(self, event: QCloseEvent) -> None:
        self.desk.save_state()
        self.insight.close_all()
        self.page.composer.reader.stop()
        if self.history is not None and self.traces is not None:
            self.traces.finish()
            self.history.close()
            self.history = None
        self.closed.emit()
        super().closeEvent(event)

    def _connect(self) -> None:
        self._appearance.changed.connect(self.page.restyle)
        self._appearance.changed.connect(self.sidebar.restyle)
        self.page.strip.marking_changed.connect(
            lambda marking: self._remember(marking=marking.value)
        )
        self.page.empty.hint_dismissed.connect(self._dismiss_hint)
        self.page.empty.models_requested.connect(self.show_models)
        self.page.header.models_requested.connect(self.show_models)
        self.page.header.gguf_requested.connect(self.open_gguf)
        self.page.header.recording_chosen.connect(lambda on: self.settings.choose("records", on))
        self.page.panel_shown.connect(lambda is_open: self._remember(shows_panel=is_open))
        self.page.control.presets.refused.connect(self.chat.errors.show_error)
        self.keeper.chosen.connect(self._remember_model)

    def _dismiss_hint(self) -> None:
        self.page.empty.show_hint(False)
        self._remember(has_read_hint=True)

    def _remember_model(self) -> None:
        choice = self.keeper.choice
        self._remember(model=choice, draft_models=self._draft_models_with(choice))
        self._known[choice.model_dir] = choice
        self._offer_models()

    def _draft_models_with(self, choice: ModelChoice) -> Mapping[str, str]:
        """What drafts for whom, with what was loaded now."""
        model, before = str(choice.model_dir), self.settings.values.draft_models
        others = {key: folder for key, folder in before.items() if key != model}
        draft = choice.options.assistant_dir
        return others if draft is None else others | {model: str(draft)}

    def _offer_models(self) -> None:
        now = self.keeper.choice
        by_name = sorted(self.known_models, key=lambda choice: choice.name.casefold())
        self.page.header.offer_models(by_name, self.keeper.load, now)

    def _remember(self, **choices: object) -> None:
        self.settings.remember(**choices)
