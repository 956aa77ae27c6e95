"""The parts of the window, of which its commands and pages give their widgets what they need."""

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
from app.state.library import LibraryState
from app.theme.appearance import Appearance
from app.window.commands.table import CommandTable
from app.window.job_notices import JobNotices
from app.window.proposal import Proposal
from app.window.settings_exchange import SettingsExchange
from medusa_core.api import Places, places


@dataclass(frozen=True, slots=True)
class WindowParts:
    """What the window is made of.

    Attributes:
        window: The window itself, as a widget: dialogs stand above it.
        appearance: Theme and sizes.
        settings: The user's choices.
        loaded_model: State of the model.
        models: The models that can be changed to.
        page: The chat's widgets.
        chat: Leads the conversation.
        insight: Shows how answers came to be.
        history: Keeps conversations; None where nothing is kept.
        commands: All that can be done, with its keys.
        notices: Says what has ended while the user looks elsewhere.
        proposal: Proposes and downloads a model.
        exchange: Exports and imports settings.
        places: Where this user's files lie; None keeps nothing of the window.
        server: Lets other programs use the model; None where it can't be.
    """

    window: QWidget
    appearance: Appearance
    settings: SettingsStore
    loaded_model: LoadedModel
    models: LibraryState
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

    @property
    def folders(self) -> Places:
        """Where files lie: this user's, or the system's usual folders where nothing is kept."""
        return self.places or places()

    @property
    def layers_dir(self) -> Path:
        """The folder for layers of models that are larger than memory."""
        chosen = self.settings.values.layers_dir
        return Path(chosen) if chosen else self.folders.layers
