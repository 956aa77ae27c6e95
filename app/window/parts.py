"""The objects of the window that commands and pages use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from PySide6.QtWidgets import QWidget

from app.chat.chat_page import ChatPage
from app.chat.controller import ChatController
from app.engine.loaded_model import LoadedModel
from app.history.history_controller import HistoryController
from app.insight.insight_panels import Insight
from app.server.server_switch import ServerSwitch
from app.settings.store import SettingsStore
from app.state.documents import DocumentsState
from app.state.library import LibraryState
from app.theme.appearance import Appearance
from app.tools.window_tools import WindowTools
from app.window.commands.table import CommandTable
from app.window.job_notices import JobNotices
from app.window.proposal import Proposal
from app.window.settings_exchange import SettingsExchange
from medusa_core.api import Places, places


@dataclass(frozen=True, slots=True)
class WindowParts:
    """Objects of the window.

    Attributes:
        window: Parent widget of dialogs.
        appearance: Theme and sizes.
        settings: The user's choices.
        loaded_model: State of the model.
        models: The available models.
        documents: The collections of documents.
        page: The chat's widgets.
        chat: Controller of the conversation.
        insight: Inspects the decoding steps of answers.
        history: Stores conversations; None without history.
        commands: Commands with their shortcuts.
        notices: Desktop notifications.
        proposal: Proposes and downloads a model.
        exchange: Exports and imports settings.
        places: Folders of the user's files; None saves nothing.
        server: Switch of the API server; None if unavailable.
        tools: Tools that models may call; None without user folders.
    """

    window: QWidget
    appearance: Appearance
    settings: SettingsStore
    loaded_model: LoadedModel
    models: LibraryState
    documents: DocumentsState
    page: ChatPage
    chat: ChatController
    insight: Insight
    history: HistoryController | None
    commands: CommandTable
    notices: JobNotices
    proposal: Proposal
    exchange: SettingsExchange
    places: Places | None
    server: ServerSwitch | None = None
    tools: WindowTools | None = None

    @property
    def folders(self) -> Places:
        """Folders of the user's files; the system's defaults if nothing is saved."""
        return self.places or places()

    @property
    def layers_dir(self) -> Path:
        """Folder of offloaded layers."""
        chosen = self.settings.values.layers_dir
        return Path(chosen) if chosen else self.folders.layers
