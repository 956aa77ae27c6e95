"""The parts of the window that its commands, effects, error actions and dialogs work with."""

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
from app.theme.appearance import Appearance
from app.window.commands.table import CommandTable
from app.window.known_models import KnownModels
from medusa_core.api import Places, places
from medusa_core.chats.presets import Presets


@dataclass(frozen=True, slots=True)
class WindowParts:
    """What the window is made of.

    Attributes:
        window: The window itself, as a widget: dialogs stand above it.
        appearance: Theme and sizes.
        resources: Folder of what is shipped with the program.
        settings: The user's choices.
        loaded_model: State of the model.
        models: The models that can be changed to.
        page: The chat's widgets.
        chat: Leads the conversation.
        insight: Shows how answers came to be.
        history: Keeps conversations; None where nothing is kept.
        commands: All that can be done, with its keys.
        presets: Those of the program and of the user.
        places: Where this user's files lie; None keeps nothing of the window.
        server: Lets other programs use the model; None where it can't be.
    """

    window: QWidget
    appearance: Appearance
    resources: Path
    settings: SettingsStore
    loaded_model: LoadedModel
    models: KnownModels
    page: ChatPage
    chat: ChatController
    insight: Insight
    history: HistoryController | None
    commands: CommandTable
    presets: Presets
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

    @property
    def model_bytes(self) -> int:
        """Memory that the loaded model holds, and another one would free."""
        loaded = self.loaded_model.status.loaded
        return 0 if loaded is None else loaded.plan.model_bytes
