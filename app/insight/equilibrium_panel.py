"""The equilibrium panel: does the model reproduce a text, token for token?"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import (
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QColor, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QPlainTextEdit,
    QPushButton,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.insight.agreement import AGREES, DIFFERS, Agreement, agreement, say
from app.insight.note import note
from app.insight.verifications import Verifications
from app.insight.words import as_tip, as_typed, percent
from app.theme.appearance import Appearance
from medusa_core.messages import ChatMessage, Verified, Verify

ROWS = ("Input", "Output", "Equal to the next input?")
HELP = (
    "The model reads all inputs at once and says behind each what it would write next. Where that "
    "is the next input everywhere, the text is an equilibrium: the model writes it itself. "
    "Double-click an input (or press F2) to change it, and see where the outputs part."
)
INPUT, OUTPUT, MARK = range(3)
BONUS = "★"


class _TintedCells(QStyledItemDelegate):
    """Paints the backgrounds of cells: a style sheet that frames cells leaves them out."""

    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        tint = index.data(Qt.ItemDataRole.BackgroundRole)
        if tint is not None:
            painter.fillRect(option.rect, tint)
        super().paint(painter, option, index)


class EquilibriumPanel(QWidget):
    """Shows a verified text and lets its tokens be edited.

    Args:
        submit: Hands a command to the engine.
        conversation: All that has been said in the chat.
        make_id: Names requests.

    Attributes:
        table: Inputs, outputs and marks, a column for each token.
        edit: A text of the user's own.
        shown: What is in the table.

    Signals:
        refused: A text couldn't be verified: message and hint.
    """

    refused = Signal(str, str)

    def __init__(
        self,
        submit: Callable[[Verify], None],
        conversation: Callable[[], tuple[ChatMessage, ...]],
        make_id: Callable[[], str],
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("insight")
        self._conversation = conversation
        self._verifications = Verifications(submit, make_id)
        self._appearance = appearance
        self._late: Verified | None = None  # came while a cell was edited
        self.shown = Agreement((), 0, None)
        self.table = QTableWidget(len(ROWS), 0)
        self.edit = QPlainTextEdit()
        self._use_button = QPushButton("Verify the conversation")
        self._verify_button = QPushButton("Verify this text")
        self._next_button = QPushButton("Next ✗")
        self._said = note()
        self._column = QVBoxLayout(self)
        self._build()
        self._connect()
        self.restyle()

    @property
    def text(self) -> str:
        """What is said about the table."""
        return self._said.text()

    def verify_conversation(self) -> None:
        """Read what has been said in the chat."""
        messages = self._conversation()
        if not messages:
            self.refused.emit("There is no conversation yet.", "Ask something, or paste a text.")
            return
        self._verifications.read(messages=messages)
        self._say_waiting()

    def verify_text(self) -> None:
        """Read the user's own text."""
        self._verifications.read(text=self.edit.toPlainText())
        self._say_waiting()

    def replace(self, token: int, text: str) -> None:
        """Put another text in the place of a token and read everything again."""
        self._verifications.replace(token, text)
        self._say_waiting()

    def take(self, verified: Verified) -> None:
        """Show what the engine says, if it is what was asked last."""
        if not self._verifications.answers(verified.request_id):
            return
        if self.table.state() is QAbstractItemView.State.EditingState:
            self._late = verified  # a table that is filled forgets what is being typed
            return
        edit = self._verifications.take(verified)
        self.shown = agreement(verified, None if edit is None else edit.start)
        self._fill()
        last = len(self.shown.cells) - 1
        self._go_to(last if self.shown.bonus is None else self.shown.bonus)
        if self._verifications.go_on():
            self._say_waiting()

    def refuse(self, request_id: str, message: str, hint: str) -> None:
        """The engine couldn't verify; what was shown stays."""
        if self._verifications.answers(request_id):
            self._verifications.give_up()
            self._fill()
            self.refused.emit(message, hint)

    def _say_waiting(self) -> None:
        self._said.setText("Verifying …")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # As in the composer: Enter is for the whole text, Shift+Enter begins a line.
        if event.type() == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self.verify_text()
                return True
        return super().eventFilter(watched, event)

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        scale = self._appearance.scale
        self._column.setContentsMargins(scale.px(1.0), scale.px(0.5), scale.px(1.0), scale.px(0.6))
        # All three rows, their header and the bar that scrolls.
        self.table.setFixedHeight(scale.px(2.5 * (len(ROWS) + 1)) + scale.px(1.2))
        self.edit.setFixedHeight(scale.px(3.6))  # two lines
        self._fill()

    def _take_late(self) -> None:
        late, self._late = self._late, None
        if late is not None:
            self.take(late)

    def _build(self) -> None:
        row = QHBoxLayout()
        row.addWidget(self._use_button)
        self.edit.setPlaceholderText(
            "… or any text of yours; Enter verifies it, Shift+Enter starts a new line"
        )
        self.edit.setObjectName("verifyText")
        self.edit.setTabChangesFocus(True)
        self.edit.installEventFilter(self)
        self.edit.setAccessibleName("Text to verify")
        row.addWidget(self.edit, 1)
        row.addWidget(self._verify_button)
        self._next_button.setAccessibleName("Next difference")
        row.addWidget(self._next_button)
        table = self.table
        table.setAccessibleName("Inputs and outputs")
        table.setItemDelegate(_TintedCells(table))
        table.setTabKeyNavigation(False)  # arrow keys do that; Tab leaves
        table.setVerticalHeaderLabels(ROWS)
        table.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        table.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        triggers = QAbstractItemView.EditTrigger
        table.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self._column.addLayout(row)
        self._column.addWidget(table)
        self._column.addWidget(self._said)
        self._column.addWidget(note(HELP))
        self._column.addStretch(1)

    def _connect(self) -> None:
        self._use_button.clicked.connect(self.verify_conversation)
        self._verify_button.clicked.connect(self.verify_text)
        self._next_button.clicked.connect(self._next_difference)
        self.table.itemChanged.connect(self._changed)
        # The editor is still there while it says that it is closed.
        self.table.itemDelegate().closeEditor.connect(
            lambda: QTimer.singleShot(0, self, self._take_late)
        )

    def _changed(self, item: QTableWidgetItem) -> None:
        place = item.column()
        if item.row() == INPUT and item.text() != self.shown.cells[place].text:
            self.replace(place, as_typed(item.text()))

    def _fill(self) -> None:
        theme, table = self._appearance.theme, self.table
        table.blockSignals(True)
        table.setColumnCount(len(self.shown.cells))
        for place, cell in enumerate(self.shown.cells):
            is_bonus, differs = place == self.shown.bonus, cell.mark == DIFFERS
            output = f"{BONUS} {cell.output}" if is_bonus else cell.output
            tip = f"The model gives “{cell.output}” {percent(cell.probability)} here."
            for row, text in enumerate((cell.text, output, cell.mark)):
                item = QTableWidgetItem(text)
                item.setToolTip(as_tip(tip) if row else f"Token {cell.token_id}")
                item.setTextAlignment(Qt.AlignmentFlag.AlignCenter)
                if row != INPUT:
                    item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
                if row == OUTPUT and is_bonus:
                    item.setBackground(QColor(theme.agreed.tint))
                elif row != INPUT and differs:
                    item.setBackground(QColor(theme.danger_surface))
                if row == MARK:
                    item.setForeground(QColor(theme.danger if differs else theme.agreed.line))
                table.setItem(row, place, item)
            table.setHorizontalHeaderItem(place, QTableWidgetItem(f"{place + 1}"))
        table.blockSignals(False)
        # Once: a header that follows its contents measures every column anew for each cell.
        table.resizeColumnsToContents()
        self._said.setText(say(self.shown))

    def _next_difference(self) -> None:
        """Go to the next column whose output isn't the next input, from the start at the end."""
        marks = [cell.mark for cell in self.shown.cells]
        here = self.table.currentColumn()
        order = [*range(here + 1, len(marks)), *range(here + 1)]
        found = next((i for i in order if 0 <= i < len(marks) and marks[i] != AGREES), None)
        if found is not None:
            self._go_to(found)

    def _go_to(self, place: int) -> None:
        item = self.table.item(INPUT, place)
        if item is not None:
            self.table.setCurrentItem(item)
            self.table.scrollToItem(item, QAbstractItemView.ScrollHint.PositionAtCenter)
