"""What a new conversation shows: a word of welcome, prompts to try, and what all this is."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance

SUGGESTIONS = (
    "Write a bedtime story about a small bear.",
    "Who are you?",
    "What is the capital of France?",
    "Write a podcast about the moon.",
)

HINT = QT_TRANSLATE_NOOP(
    "Chat",
    "A language model normally writes one token per step. Here small extra heads guess the next "
    "few tokens, the model checks all guesses in a single step and keeps those that it would "
    "have written itself. Text that was guessed right is tinted and underlined in the colour of "
    "its head; the strip at the bottom counts. The words are the model's either way — only "
    "faster.",
)


class EmptyState(QWidget):
    """The page of a conversation without messages.

    Signals:
        suggestion_chosen: The text of a prompt to send.
        hint_dismissed: The user has read what this is.
        models_requested: The user wants a larger model.
    """

    suggestion_chosen = Signal(str)
    hint_dismissed = Signal()
    models_requested = Signal()

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("emptyState")
        self._appearance = appearance
        self._title = _centred(self.tr("What shall we talk about?"), "heroTitle")
        self._text = _centred("", "heroText")
        self._hint = QFrame(self)
        self._hint.setObjectName("hint")
        self._grid = QGridLayout()
        self._hint_column = QVBoxLayout(self._hint)
        self._fill_hint()
        self._fill_grid()
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addStretch(3)
        column.addWidget(self._title)
        column.addWidget(self._text)
        column.addLayout(self._grid)
        self._models_button = QPushButton(self.tr("See which larger models fit this computer…"))
        self._models_button.setProperty("class", "action")
        self._models_button.setFlat(True)
        self._models_button.clicked.connect(self.models_requested)
        column.addWidget(self._models_button, 0, Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self._hint)
        column.addStretch(4)
        self.show_model(self.tr("The model is being loaded."))
        self.restyle()

    def show_model(self, text: str) -> None:
        """Say which model answers."""
        self._text.setText(text)

    def show_hint(self, is_shown: bool) -> None:
        """Explain what this is, or no longer."""
        self._hint.setVisible(is_shown)

    def restyle(self) -> None:
        """Take the sizes of the theme."""
        scale = self._appearance.scale
        self._column.setSpacing(scale.px(0.9))
        self._grid.setSpacing(scale.px(0.7))
        self._grid.setContentsMargins(0, scale.px(0.9), 0, scale.px(0.9))
        self._hint_column.setContentsMargins(*[scale.px(1.1)] * 4)
        self._hint_column.setSpacing(scale.px(0.6))

    def _fill_hint(self) -> None:
        title = QLabel(self.tr("What is this?"))
        title.setObjectName("hintTitle")
        text = QLabel(
            '<p style="line-height: 140%">' + QCoreApplication.translate("Chat", HINT) + "</p>"
        )
        text.setObjectName("hintText")
        text.setWordWrap(True)
        button = QPushButton(self.tr("Got it"))
        button.clicked.connect(self.hint_dismissed)
        self._hint_column.addWidget(title)
        self._hint_column.addWidget(text)
        self._hint_column.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)

    def _fill_grid(self) -> None:
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, 1)
        for index, prompt in enumerate(SUGGESTIONS):
            button = QPushButton(prompt)
            button.setProperty("class", "suggestion")
            button.setAccessibleDescription(self.tr("Sends this prompt"))
            button.clicked.connect(lambda _checked, p=prompt: self.suggestion_chosen.emit(p))
            self._grid.addWidget(button, index // 2, index % 2)


def _centred(text: str, name: str) -> QLabel:
    label = QLabel(text)
    label.setObjectName(name)
    label.setAlignment(Qt.AlignmentFlag.AlignCenter)
    label.setWordWrap(True)
    return label
