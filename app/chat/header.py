"""The top of the window: which model answers and how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPushButton,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chat.pickers import NewSeed, Pickers, new_seed
from app.theme.appearance import Appearance
from medusa_core.model_choice import ModelChoice
from medusa_core.model_state import ModelStatus, Phase

RECORDING = (
    "Keep what the panels show of the last 20,000 steps: 12 to 31 MB by the size of the trees. "
    "With the built-in model that costs two to five hundredths of the speed, with a large one "
    "nothing to speak of."
)
ChooseModel = Callable[[ModelChoice], None]


class Header(QFrame):
    """Model, pickers, theme and New chat.

    Attributes:
        pickers: How the next answer is decoded.
        model_button: Which model answers; opens the list of others.
        model_menu: That list.
        state_label: How far it is.

    Signals:
        new_chat_requested: A new conversation is wanted.
        theme_toggled: The other theme is wanted.
        about_requested: The user wants to know what this is.
        models_requested: The user wants the model manager.
        recording_chosen: Steps are to be recorded, or not.
    """

    new_chat_requested = Signal()
    theme_toggled = Signal()
    about_requested = Signal()
    models_requested = Signal()
    recording_chosen = Signal(bool)

    def __init__(
        self,
        appearance: Appearance,
        make_seed: NewSeed = new_seed,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("header")
        self._appearance = appearance
        self.model_button = QToolButton()
        self.model_button.setObjectName("modelName")
        self.model_button.setToolTip("Another model (Ctrl+Shift+M manages them)")
        self.model_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.model_menu = QMenu(self.model_button)
        self.model_button.setMenu(self.model_menu)
        self.model_menu.addAction("Manage models …", self.models_requested.emit)
        self.state_label = QLabel()
        self.state_label.setObjectName("modelState")
        self.pickers = Pickers(appearance, make_seed)
        self.insight_button = QToolButton()
        self.insight_button.setAccessibleName("Insight")
        self.insight_button.setToolTip("See how the last answer came to be")
        self.insight_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.insight_menu = QMenu(self.insight_button)
        self.insight_menu.setToolTipsVisible(True)
        self.insight_button.setMenu(self.insight_menu)
        self.record_action = QAction("Record steps", self.insight_menu)
        self.record_action.setCheckable(True)
        self.record_action.setChecked(True)
        self.record_action.setToolTip(RECORDING)
        self.record_action.toggled.connect(self.recording_chosen)
        self._theme_button = QToolButton()
        self._theme_button.setAccessibleName("Light or dark")
        self._theme_button.clicked.connect(self.theme_toggled)
        self._about_button = QToolButton()
        self._about_button.setAccessibleName("About Medusa Chat")
        self._about_button.setToolTip("About Medusa Chat (F1)")
        self._about_button.clicked.connect(self.about_requested)
        self._new_button = QPushButton("New chat")
        self._new_button.setToolTip("Start a new conversation (Ctrl+N)")
        self._new_button.clicked.connect(self.new_chat_requested)
        self._row = QHBoxLayout(self)
        self._build()
        self.restyle()

    def show_model(self, choice: ModelChoice) -> None:
        """Say which model answers."""
        label = f"{choice.name} · {choice.note}" if choice.note else choice.name
        self.model_button.setText(label)
        self.model_button.setAccessibleName(f"Model: {label}")

    def offer_models(
        self, choices: Sequence[ModelChoice], choose: ChooseModel, now: ModelChoice
    ) -> None:
        """Offer models to change to; the present one is ticked."""
        self.model_menu.clear()
        for choice in choices:
            action = self.model_menu.addAction(choice.name, partial(choose, choice))
            action.setCheckable(True)
            action.setChecked(choice.model_dir == now.model_dir)
        self.model_menu.addSeparator()
        self.model_menu.addAction("Manage models …", self.models_requested.emit)

    def offer_insight(self, panels: Sequence[tuple[str, Callable[[], object]]]) -> None:
        """Offer panels to open, by name."""
        for name, action in panels:
            self.insight_menu.addAction(name, action)
        self.insight_menu.addSeparator()
        self.insight_menu.addAction(self.record_action)

    def choose_recording(self, on: bool) -> None:
        """Show and tell whether steps are recorded."""
        self.record_action.setChecked(on)

    def show_status(self, status: ModelStatus) -> None:
        """Say how far the model is."""
        self.state_label.setText(describe(status))
        self.state_label.setAccessibleName(f"Model: {describe(status)}")
        note = "" if status.loaded is None else status.loaded.device_note
        self.state_label.setToolTip(note)
        if status.phase is Phase.READY and status.loaded is not None:
            self.pickers.offer(status.loaded)

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        scale, theme = self._appearance.scale, self._appearance.theme
        self._row.setContentsMargins(scale.px(1.4), scale.px(0.7), scale.px(1.0), scale.px(0.7))
        self._row.setSpacing(scale.px(0.7))
        self._theme_button.setIcon(
            self._appearance.icon("sun" if theme.is_dark else "moon", theme.muted)
        )
        self._theme_button.setToolTip("Light theme" if theme.is_dark else "Dark theme")
        self.insight_button.setIcon(self._appearance.icon("tree", theme.muted))
        self._about_button.setIcon(self._appearance.icon("info", theme.muted))
        self._new_button.setIcon(self._appearance.icon("plus", theme.text, 1.0))
        buttons = (
            (self.insight_button, 1.3),
            (self._theme_button, 1.3),
            (self._about_button, 1.3),
            (self._new_button, 1.0),
        )
        for button, em in buttons:
            button.setIconSize(QSize(scale.px(em), scale.px(em)))
        self.pickers.restyle()

    def _build(self) -> None:
        row = self._row
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addStretch(1)
        words.addWidget(self.model_button)
        words.addWidget(self.state_label)
        words.addStretch(1)
        row.addLayout(words)
        row.addWidget(self.pickers, 1)
        row.addWidget(self.insight_button)
        row.addWidget(self._theme_button)
        row.addWidget(self._about_button)
        row.addWidget(self._new_button)


def describe(status: ModelStatus) -> str:
    """The state of the model in a few words."""
    if status.phase is Phase.FAILED:
        return "could not be loaded"
    if status.phase is Phase.ASLEEP:
        return "asleep: wakes with the next message"
    if status.loaded is None:
        return f"{status.text.rstrip('.…')} … {status.fraction:.0%}"
    loaded = status.loaded
    heads = f"{loaded.num_heads} Medusa heads" if loaded.num_heads else "no heads"
    count = loaded.num_parameters
    size = f"{count / 1e9:,.1f} B" if count >= 10**9 else f"{count / 1e6:,.1f} M"
    device = loaded.device.upper() + (" (the card can't be used)" if loaded.device_note else "")
    return " · ".join((f"{size} parameters", heads, loaded.quant, device))
