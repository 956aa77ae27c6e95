"""The equilibrium panel: does the model reproduce a text, token for token?"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QCoreApplication, QEvent, QMimeData, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.engine.bridge import OnEvents, Request
from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.agreement import NOTHING, Agreement, agreement, describe_agreement
from app.insight.equilibrium_table import ROWS, EquilibriumTable
from app.insight.verifications import Verifications
from app.theme.appearance import Appearance
from app.widgets.live_label import LiveLabel
from app.widgets.plain_label import plain_label
from medusa_core.messages import ChatMessage, Event, Failed, Verified, Verify

HELP = QT_TRANSLATE_NOOP(
    "Insight",
    "The model reads all inputs in one pass and predicts the next token after each. If each "
    "prediction equals the next input, the text is an equilibrium: the model would write it "
    "itself. Double-click an input (or press F2) to change it, and see where the outputs "
    "differ. ␣ is a space, ⏎ a line's end; most words begin with their space.",
)


class _TextEdit(QPlainTextEdit):
    """Text field that leaves dropped files to the window."""

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return not source.hasUrls() and super().canInsertFromMimeData(source)


class EquilibriumPanel(QWidget):
    """Shows a verified text and lets its tokens be edited.

    Args:
        ask: Sends a command to the engine.
        conversation: Returns the messages of the chat.
        make_id: Makes ids of requests.

    Attributes:
        table: Inputs, outputs and marks, a column for each token.
        edit: A text of the user's own.

    Signals:
        refused: A text couldn't be verified: message and hint.
    """

    refused = Signal(object, object)

    def __init__(
        self,
        ask: Callable[[Verify, OnEvents], Request],
        conversation: Callable[[], tuple[ChatMessage, ...]],
        make_id: Callable[[], str],
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("insight")
        self._conversation = conversation
        self._verifications = Verifications(ask, self._take_events, make_id)
        self._appearance = appearance
        self._late: Verified | None = None  # came while a cell was edited
        self._is_conversation = False  # what the table shows
        self.table = EquilibriumTable()
        self.edit = _TextEdit()
        self._use_button = QPushButton(self.tr("Verify the conversation"))
        self._verify_button = QPushButton(self.tr("Verify this text"))
        self._next_button = QPushButton(self.tr("Next difference"))
        self._note = LiveLabel()
        self._note.setObjectName("insightNote")
        self._column = QVBoxLayout(self)
        self._build()
        self._connect()
        self.restyle()

    @property
    def shown(self) -> Agreement:
        """Content of the table."""
        return self.table.shown

    @property
    def text(self) -> str:
        """Description of the table."""
        return self._note.text()

    def open(self) -> None:
        """Verify the conversation if there is one and the table is empty."""
        is_free = not self.shown.cells and not self._verifications.is_reading
        if is_free and not self.edit.toPlainText() and self._conversation():
            self.verify_conversation()

    def verify_conversation(self) -> None:
        """Verify the messages of the chat."""
        messages = self._conversation()
        if not messages:
            self.refused.emit(
                self.tr("There is no conversation yet."), self.tr("Ask something, or paste a text.")
            )
            return
        self._is_conversation = True
        self._verifications.read(messages=messages)
        self._show_waiting()

    def verify_text(self) -> None:
        """Verify the text in the field."""
        self._is_conversation = False
        self._verifications.read(text=self.edit.toPlainText())
        self._show_waiting()

    def replace(self, token: int, text: str) -> None:
        """Replace a token by a text, and verify again."""
        if self._verifications.is_reading:
            self._fill(self.shown)  # another text is about to come: this one can't be changed
            return
        self._verifications.replace(token, text)
        self._show_waiting()

    def _take_events(self, events: tuple[Event, ...]) -> None:
        for event in events:
            if isinstance(event, Verified):
                self._show_verified(event)
            elif isinstance(event, Failed):
                self._verifications.give_up()
                self._fill(self.shown)
                self.refused.emit(event.message, event.hint)

    def _show_verified(self, verified: Verified) -> None:
        if self.table.is_editing:
            self._late = verified
            return
        edited = self._verifications.receive(verified)
        written, ends = self._verifications.written, self._appearance.legend.specials
        self._fill(agreement(verified, edited, written, ends))
        last = len(self.shown.cells) - 1
        self.table.go_to(last if self.shown.bonus is None else self.shown.bonus)
        if self._verifications.go_on():
            self._show_waiting()

    def announce_answer(self) -> None:
        """Say that the conversation has more messages than the table."""
        if self._is_conversation and self.shown.cells:
            self._note.setText(
                self.tr("{0} The conversation has gone on since.").format(
                    describe_agreement(self.shown)
                )
            )

    def forget_model(self) -> None:
        """Clear the table after another model was loaded."""
        self._verifications.give_up()
        self._fill(NOTHING)

    def forget_conversation(self) -> None:
        """Clear the table for a new conversation, but keep the user's own text."""
        if self._is_conversation:
            self._verifications.give_up()
            self._fill(NOTHING)

    def _show_waiting(self) -> None:
        self._note.setText(self.tr("Verifying…"))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # As in the composer: Enter is for the whole text, Shift+Enter begins a line.
        if isinstance(event, QKeyEvent) and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()  # Ctrl+Enter is for this text, too, not for the last answer
            has_shift = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
            if event.type() == QEvent.Type.KeyPress and not has_shift:
                self.verify_text()
                return True
        return super().eventFilter(watched, event)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self._column.setContentsMargins(scale.px(1.0), scale.px(0.5), scale.px(1.0), scale.px(0.6))
        # All three rows, their header and the bar that scrolls.
        self.table.setFixedHeight(scale.px(2.5 * (len(ROWS) + 1)) + scale.px(1.2))
        self.edit.setFixedHeight(scale.px(3.6))  # two lines
        self._fill(self.shown)

    def _take_late(self) -> None:
        late, self._late = self._late, None
        if late is not None:
            self._show_verified(late)

    def _build(self) -> None:
        row = QHBoxLayout()
        row.addWidget(self._use_button)
        self.edit.setPlaceholderText(
            self.tr("… or any text of yours; Enter verifies it, Shift+Enter starts a new line")
        )
        self.edit.setObjectName("verifyText")
        self.edit.setTabChangesFocus(True)
        self.edit.installEventFilter(self)
        self.edit.setAccessibleName(self.tr("Text to verify"))
        row.addWidget(self.edit, 1)
        row.addWidget(self._verify_button)
        row.addWidget(self._next_button)
        self._column.addLayout(row)
        self._column.addWidget(self.table)
        self._column.addWidget(self._note)
        self._column.addWidget(
            plain_label(QCoreApplication.translate("Insight", HELP), "insightNote")
        )
        self._column.addStretch(1)

    def _connect(self) -> None:
        self._use_button.clicked.connect(self.verify_conversation)
        self._verify_button.clicked.connect(self.verify_text)
        self._next_button.clicked.connect(self.table.go_to_next_difference)
        self.table.edited.connect(self.replace)
        self.table.editing_ended.connect(self._take_late)

    def _fill(self, shown: Agreement) -> None:
        self.table.fill(shown, self._appearance.theme)
        self._note.setText(describe_agreement(shown))
