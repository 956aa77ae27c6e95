"""Offer of the starter model, once, if the installer hasn't downloaded it."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal

from app.chat.chat_page import ChatPage
from app.chat.controller import ChatController
from app.engine.loaded_model import LoadedModel
from app.i18n.engine_texts import error_text
from app.models.first_model_card import FirstModelCard
from app.settings.store import SettingsStore
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.window.commands.command import AppCommand, Section
from medusa_core.api import FIRST_MODEL_NAME
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import first_choice


class FirstModel(QObject):
    """Offers the starter model and downloads it in the background.

    Attributes:
        card: The shown card; None if none is shown.

    Signals:
        models_requested: The user wants the model manager.
    """

    _arrived = Signal(int)

    models_requested = Signal()

    def __init__(
        self,
        page: ChatPage,
        chat: ChatController,
        loaded_model: LoadedModel,
        settings: SettingsStore,
        appearance: Appearance,
    ) -> None:
        """Create the controller without showing an offer.

        Args:
            page: Page that shows the offer.
            chat: Its answers aren't interrupted by loading.
            loaded_model: Loads the model.
            settings: Settings that store whether it was declined.
            appearance: Theme and sizes.
        """
        super().__init__()
        self._page, self._chat, self._loaded_model = page, chat, loaded_model
        self._settings, self._appearance = settings, appearance
        self.card: FirstModelCard | None = None
        self._stop = threading.Event()
        self._tasks = Tasks(self)
        self._arrived.connect(self._show_progress, Qt.ConnectionType.QueuedConnection)

    def offer_once(self) -> None:
        """Show the offer if the demo model is loaded and the user hasn't declined."""
        from medusa_core.api import is_first_model_offered

        values = self._settings.values
        is_open = not (values.has_declined_first_model or values.is_offline)
        if is_open and self._loaded_model.choice.is_demo and is_first_model_offered():
            self.offer()

    def command(self) -> AppCommand:
        """Return the command that shows the offer again."""
        words = self.tr("Chat with {0}").format(FIRST_MODEL_NAME)
        return AppCommand("first-model", words, Section.APPLICATION, self._load_or_offer)

    def offer(self) -> None:
        """Show the offer."""
        if self.card is not None:
            return
        from medusa_core.api import FIRST_MODEL_BYTES

        self.card = card = FirstModelCard(FIRST_MODEL_BYTES, self._appearance)
        card.wanted.connect(self.fetch)
        card.declined.connect(self._decline)
        card.stopped.connect(self.stop)
        card.models_requested.connect(self.models_requested)
        card.load_requested.connect(self._load)
        self._page.add_card(card)

    def fetch(self) -> None:
        """Download the model in the background."""
        if self.card is not None and self._settings.values.is_offline:
            self.card.show_problem(self.tr("Offline mode is on: nothing is fetched."))
            return
        self._stop = threading.Event()
        self._tasks.start(self._fetch(self._stop))

    def stop(self) -> None:
        """Cancel the download and delete its partial files."""
        self._stop.set()

    async def _fetch(self, stop: threading.Event) -> None:
        from medusa_core.api import fetch_first_model

        self._show_progress(0)
        try:
            path = await asyncio.to_thread(fetch_first_model, self._arrived.emit, stop)
        except MedusaError as error:
            if self.card is not None:
                self.card.show_problem(error_text(error))
            return
        if self.card is not None:
            self._show_end(path)

    def _show_end(self, path: Path | None) -> None:
        assert self.card is not None
        if path is None:  # the user has ended it
            self.card.ask()
        elif self._loaded_model.choice.is_demo and not self._chat.is_busy:
            self._load()
        else:
            self.card.show_ready()

    def _show_progress(self, num_bytes: int) -> None:
        if self.card is not None and not self._stop.is_set():
            self.card.show_progress(num_bytes)

    def _load_or_offer(self) -> None:
        choice = first_choice()
        if choice.is_demo:
            self.offer()
        else:
            self._loaded_model.load(choice)

    def _decline(self) -> None:
        self._settings.set(has_declined_first_model=True)
        self._close_card()

    def _load(self) -> None:
        self._loaded_model.load(first_choice())
        self._close_card()

    def _close_card(self) -> None:
        """Remove the card that offers the starter model."""
        if self.card is not None:
            self.card.hide()
            self.card.deleteLater()
            self.card = None
