"""Page of a new conversation: welcome text, suggested prompts, and a hint."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QCoreApplication, Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance
from app.widgets.wrapped_button import WrappedButton

HINT = QT_TRANSLATE_NOOP(
    "Chat",
    "A language model normally writes one token per step. Here the next few tokens are drafted, "
    "by small extra heads or from the text so far; the model checks all draft tokens in a single "
    "step and keeps those that it would have written itself. Accepted draft tokens are tinted "
    "and underlined in the colour of their source; the strip at the bottom counts. The words are "
    "the model's either way. Where drafts don't pay, it writes without them.",
)


class EmptyState(QWidget):
    """The page of a conversation without messages.

    Attributes:
        buttons: One for each suggested prompt.

    Signals:
        suggestion_chosen: The text of a prompt to send.
        hint_dismissed: The user closed the hint.
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
        self._grid.setColumnStretch(0, 1)
        self._grid.setColumnStretch(1, 1)
        self._hint_column = QVBoxLayout(self._hint)
        self._fill_hint()
        self.buttons: tuple[QPushButton, ...] = ()
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addStretch(3)
        column.addWidget(self._title)
        column.addWidget(self._text)
        column.addLayout(self._grid)
        self._models_button = WrappedButton(
            self.tr("See which larger models fit this computer…"), Qt.AlignmentFlag.AlignHCenter
        )
        self._models_button.setProperty("class", "action")
        self._models_button.setFlat(True)
        self._models_button.clicked.connect(self.models_requested)
        column.addWidget(self._models_button, 0, Qt.AlignmentFlag.AlignCenter)
        column.addWidget(self._hint)
        column.addStretch(4)
        self.show_model(self.tr("The model is being loaded."))
        self.restyle()

    def show_model(self, text: str) -> None:
        """Show the name of the model."""
        self._text.setText(text)

    def show_suggestions(self, prompts: Sequence[str]) -> None:
        """Replace the suggested prompts."""
        if [button.text() for button in self.buttons] == list(prompts):
            return
        for old in self.buttons:
            self._grid.removeWidget(old)
            old.hide()
            old.deleteLater()
        self.buttons = tuple(WrappedButton(prompt) for prompt in prompts)
        for index, (button, prompt) in enumerate(zip(self.buttons, prompts, strict=True)):
            button.setProperty("class", "suggestion")
            button.setAccessibleDescription(self.tr("Sends this prompt"))
            button.clicked.connect(lambda _checked, p=prompt: self.suggestion_chosen.emit(p))
            is_wide = index == len(prompts) - 1 and index % 2 == 0  # the last of an odd number
            self._grid.addWidget(button, index // 2, index % 2, 1, 2 if is_wide else 1)

    def show_card(self, card: QWidget) -> None:
        """Show a card below the suggested prompts until its creator removes it."""
        self._column.insertWidget(self._column.indexOf(self._models_button), card)

    def show_hint(self, is_shown: bool) -> None:
        """Show or hide the hint."""
        self._hint.setVisible(is_shown)

    def restyle(self) -> None:
        """Apply the theme's sizes."""
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


def _centred(text: str, name: str) -> QLabel:
    label = QLabel(text)
    label.setObjectName(name)
    label.setAlignment(Qt.AlignmentFlag.AlignCenter)
    label.setWordWrap(True)
    return label
