"""The main window: creates and connects its parts, and saves its state."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import QLineEdit, QMainWindow, QPlainTextEdit, QSplitter, QTextEdit

from app.chat.chat_page import ChatPage
from app.chat.compose.composer import files_of
from app.chat.compose.documents_button import DocumentsButton
from app.chat.controller import ChatController
from app.chat.passage_retrieval import PassageRetrieval
from app.chat.strip.memory_watch import MemoryWatch
from app.chat_settings.seeds import (
    NewSeed,
    new_seed,
)
from app.engine.bridge import EngineBridge
from app.engine.loaded_model import LoadedModel
from app.history.draft_data_sync import DraftDataSync
from app.history.history_controller import HistoryController
from app.history.saved_settings import SavedSettings
from app.history.sidebar import WIDTH_EM, Sidebar
from app.history.titles import Titles
from app.history.trace_archive import TraceArchive
from app.insight.insight_panels import Insight
from app.server.server_switch import MakeServer, ServerSwitch
from app.settings.hub import hub_settings
from app.settings.store import SettingsStore
from app.state.chat import ChatState
from app.state.documents import DocumentsState
from app.state.library import LibraryState
from app.theme.appearance import Appearance
from app.tools.window_tools import WindowTools
from app.widgets.dropping import accept_copy
from app.widgets.typed import types_text
from app.window.commands.table import CommandTable
from app.window.commands.window_commands import WindowCommands
from app.window.effects import (
    ModelEffects,
    apply_appearance,
    apply_to_chat,
    apply_to_documents,
    apply_to_server,
)
from app.window.error_actions import ErrorActions
from app.window.first_model import FirstModel
from app.window.geometry import Panels, WindowState
from app.window.job_notices import JobNotices
from app.window.load_questions import ask_for_gguf, offer_to_load
from app.window.pages.registry import Pages, all_pages
from app.window.parts import WindowParts
from app.window.proposal import Proposal
from app.window.settings_exchange import SettingsExchange
from medusa_core.api import Endpoints, Places, is_trace
from medusa_core.chats.presets import Presets
from medusa_core.loading.choice import ModelChoice

if TYPE_CHECKING:
    from app.state.library import OpenLibrary
    from medusa_core.api import History, Toolbox

TITLE = "Medusa Chat"
START_SIZE = QSize(1120, 800)
DRAFT_MS = 800
MIN_SIZE = QSize(700, 500)


class MainWindow(QMainWindow):
    """The window of the application.

    Args:
        settings: The user's choices.
        open_library: Opens the library when it is needed first; None offers none.
        places: Folders of the user's files; None saves nothing.
        history: Stores conversations; None saves and lists none.
        datastore_dir: Folder of the draft datastore; None for none.
        make_server: Creates the API server; None for no server.

    Attributes:
        page: The chat's widgets.
        chat: Controller of the conversation.
        insight: Inspects the decoding steps of answers.
        loaded_model: State of the model.
        memory: Shows the device and its memory.
        settings: The user's choices.
        models: The available models.
        documents: The collections of documents.
        documents_button: Attaches them to the conversation.
        commands: Commands with their shortcuts.
        sidebar: The list of conversations.
        history: Stores conversations; None without history, like the next two.
        titles: Generates titles of conversations.
        learned: Draft datastore of saved conversations.
        server: Switch of the API server; None if unavailable.
        tools: Tools that models may call; None without user folders.
        pages: Dialogs and panels such as settings and model manager.
        error_actions: Remedies on error cards.
        first_model: Offers the starter model if it isn't installed.
        proposal: Proposes a better model while a very small one is loaded.
        notices: Desktop notifications.
        wants_restart: Whether to restart the application after closing.

    Signals:
        closed: The window was closed.
    """

    closed = Signal()

    def __init__(
        self,
        bridge: EngineBridge,
        loaded_model: LoadedModel,
        appearance: Appearance,
        settings: SettingsStore,
        *,
        open_library: OpenLibrary | None = None,
        make_seed: NewSeed = new_seed,
        places: Places | None = None,
        history: History | None = None,
        datastore_dir: Path | None = None,
        make_server: MakeServer | None = None,
    ) -> None:
        super().__init__()
        self.loaded_model = loaded_model
        self._bridge = bridge
        self._appearance = appearance
        self.settings = settings
        apply_appearance(settings, appearance)
        config_dir = settings.folder
        presets = Presets(config_dir)
        state = ChatState()
        self.page = ChatPage(state, appearance, presets, make_seed)
        self.chat = ChatController(state, self.page, bridge, loaded_model, appearance)
        endpoints = Endpoints(config_dir)
        loaded_model.find_keys_in(config_dir)
        self.models = LibraryState(
            loaded_model, open_library, endpoints, lambda: settings.values.draft_models
        )
        self.models.failed.connect(self.chat.errors.show_error)
        documents_dir = None if places is None else places.data / "documents"
        self.documents = DocumentsState(documents_dir, bridge)
        self.documents.failed.connect(self.chat.errors.show_error)
        self.chat.retrieval = PassageRetrieval(self.documents, loaded_model)
        self.documents_button = DocumentsButton(state, self.chat.retrieval, appearance)
        self.page.composer.add_button(self.documents_button)
        self.memory = MemoryWatch(self.page.strip, loaded_model)
        self.insight = Insight(
            self, self.chat, bridge, loaded_model, appearance, lambda: self.page.readable_height
        )
        self.commands = CommandTable(self)
        self.sidebar = Sidebar(appearance)
        self.history: HistoryController | None = None
        self.titles: Titles | None = None
        self.learned: DraftDataSync | None = None
        self._traces: TraceArchive | None = None
        if history is not None:
            self._keep(history, datastore_dir)
        self.server = None if make_server is None else ServerSwitch(make_server)
        if self.server is not None:
            self.server.served.connect(loaded_model.touch)
            self.server.model_wanted.connect(loaded_model.wake)
        self.tools = None if places is None else self._make_tools(places)
        self.notices = JobNotices(self, settings, self.chat, self.models)
        self.proposal = Proposal(self.page, self.models, loaded_model, settings, appearance)
        self.first_model = FirstModel(self.page, self.chat, loaded_model, settings, appearance)
        parts = WindowParts(
            window=self,
            appearance=appearance,
            settings=settings,
            loaded_model=loaded_model,
            models=self.models,
            documents=self.documents,
            page=self.page,
            chat=self.chat,
            insight=self.insight,
            history=self.history,
            commands=self.commands,
            notices=self.notices,
            proposal=self.proposal,
            exchange=SettingsExchange(self, self.page, settings, presets, appearance),
            places=places,
            server=self.server,
            tools=self.tools,
        )
        self._model_effects = ModelEffects(
            settings, loaded_model, self.models, lambda: parts.layers_dir
        )
        self.error_actions = ErrorActions(
            self.chat.errors, loaded_model, settings, lambda: parts.layers_dir
        )
        self.pages = Pages(parts)
        self.commands.add(WindowCommands(parts).all())
        self.commands.add((*self.pages.commands(), self.first_model.command()))
        self._state = None if places is None else WindowState(self, places.state, self._panels())
        self.wants_restart = self._is_closed = False
        self._build()
        self._connect()
        apply_to_chat(settings, self.page, self.chat, self.commands)
        apply_to_documents(settings, self.documents)
        if presets.trouble is not None:
            self.chat.errors.show_error(presets.trouble.message, presets.trouble.hint)

    def restore(self) -> None:
        """Restore the window's geometry if configured."""
        if self._state is not None and self.settings.values.restores_window:
            self._state.restore()
            self.page.composer.setFocus()  # which panels that are opened take

    def serve(self) -> None:
        """Start the API server if configured; the engine must be running."""
        if self.server is not None:
            apply_to_server(self.settings, self.server)

    def restart(self) -> None:
        """Close the window and restart the application."""
        self.wants_restart = True
        self.close()

    def come_to_front(self) -> None:
        """Raise the window."""
        self.setWindowState(self.windowState() & ~Qt.WindowState.WindowMinimized)
        self.show()
        self.raise_()
        self.activateWindow()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if event.mimeData().hasUrls():
            accept_copy(event)

    def dropEvent(self, event: QDropEvent) -> None:
        if not accept_copy(event):
            return
        paths = files_of(event.mimeData())
        if len(paths) == 1 and is_trace(paths[0]):
            self.insight.files.open_trace(paths[0])
        elif paths:
            self.page.composer.attach(paths)
        else:
            self.chat.errors.show_error(
                self.tr("This can't be attached."),
                self.tr("Drop files that are on this computer."),
            )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Redirect text typed in a panel without text fields to the composer."""
        if types_text(event):
            self.page.keyPressEvent(event)
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._end()
        super().closeEvent(event)

    def _end(self) -> None:
        if self._state is not None:
            self._state.save()
        if self.server is not None:
            self.server.turn_off()
        if self.tools is not None:
            self.tools.close()
        self.first_model.stop()
        self.insight.close_all()
        self.page.composer.reader.stop()
        self.documents.close()
        self.chat.close()
        if self._traces is not None:
            self._traces.finish()
        if self.history is not None:
            self.history.close()
        self.pages.end()
        self.notices.notifier.close()
        self.closed.emit()

    def _keep(self, history: History, datastore_dir: Path | None) -> None:
        """Save new messages to the history and list earlier conversations."""
        self.history = history_controller = HistoryController(self.chat, self.sidebar, history)
        self._saved_settings = SavedSettings(
            self.chat, self.page.settings_panel, history_controller
        )
        if self.chat.retrieval is not None:
            self.chat.retrieval.inherited = history_controller.inherited_collections
            history_controller.offer_documents(self.documents)
            history_controller.folder_documents_changed.connect(self.documents_button.refresh)
        self.titles = Titles(self.chat, self._bridge, self.loaded_model, history_controller.journal)
        self.titles.named.connect(history_controller.refresh)
        self._traces = TraceArchive(self.insight, history, history_controller.journal)
        if datastore_dir is not None:
            self.learned = DraftDataSync(
                self.chat, history_controller, self.settings, datastore_dir
            )
        pause = QTimer(self)
        pause.setSingleShot(True)
        pause.setInterval(DRAFT_MS)
        pause.timeout.connect(history_controller.keep_drafts)
        self.chat.state.draft_changed.connect(pause.start)
        self.chat.state.queued_changed.connect(pause.start)

    def _make_tools(self, places: Places) -> WindowTools:
        tools = WindowTools(places.config, self.page.settings_panel.tools, self)
        tools.opened.connect(self._use_toolbox)
        self.page.settings_panel.tools.manage_requested.connect(lambda: self.pages.open("tools"))
        self.settings.follow("hub", lambda now: tools.go_offline(hub_settings(now).is_offline))
        if self.history is not None:
            self.history.trashed.connect(tools.forget)
        return tools

    def _use_toolbox(self, toolbox: Toolbox) -> None:
        self.chat.toolbox = toolbox

    def _build(self) -> None:
        self.setAcceptDrops(True)
        self.setWindowTitle(TITLE)
        self.setMinimumSize(MIN_SIZE)
        self.resize(START_SIZE)
        split = QSplitter(self)  # taking it later would style all that is in it once more
        split.setObjectName("sides")
        split.setChildrenCollapsible(False)
        split.addWidget(self.sidebar)
        split.addWidget(self.page)
        split.setStretchFactor(1, 1)
        self.sidebar.setVisible(self.history is not None)
        split.setSizes([self._appearance.scale.px(WIDTH_EM), START_SIZE.width()])
        self.setCentralWidget(split)
        self.page.header.fill_menu(self.commands.menu())
        self.page.composer.setFocus()

    def _connect(self) -> None:
        page, models = self.page, self.models
        self._appearance.changed.connect(page.restyle)
        self._appearance.changed.connect(self.documents_button.restyle)
        self.documents_button.manage_requested.connect(lambda: self.pages.open("documents"))
        self._appearance.changed.connect(self.sidebar.restyle)
        self.models.changed.connect(self._offer_models)
        self.loaded_model.chosen.connect(self._focus_message)
        self.error_actions.restart_requested.connect(self.restart)
        self.notices.notifier.clicked.connect(self.come_to_front)
        for asker in (page.empty, page.header, self.first_model):
            asker.models_requested.connect(self._open_models)
        page.header.gguf_requested.connect(lambda: ask_for_gguf(self, models))
        page.composer.model_attached.connect(partial(offer_to_load, self, models))
        page.settings_panel.measure.requested.connect(self.loaded_model.measure_again)
        page.settings_panel.presets.refused.connect(self.chat.errors.show_error)

    def _open_models(self) -> None:
        """Open the model manager."""
        self.pages.open("models")

    def _focus_message(self) -> None:
        """Focus the composer after loading, unless another text field has the focus."""
        focused = self.focusWidget()
        if not isinstance(focused, QLineEdit | QPlainTextEdit | QTextEdit):
            self.page.composer.setFocus()

    def _panels(self) -> Panels:
        """Panels by name: whether each is open, and the function that opens it."""
        names = [page.name for page in all_pages().values() if page.is_panel]
        return {
            name: (partial(self.insight.is_open, name), partial(self.pages.open, name))
            for name in names
        }

    def _offer_models(self) -> None:
        by_name = sorted(self.models.choices, key=_place_and_name)
        self.page.header.offer_models(by_name, self.loaded_model.load, self.loaded_model.choice)


def _place_and_name(choice: ModelChoice) -> tuple[str, str]:
    """Sort key of models: local ones first, then by machine."""
    return "" if choice.remote is None else choice.note, choice.name.casefold()
