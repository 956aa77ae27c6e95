"""The equilibrium panel: does the model reproduce a text, token for token?"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QColor
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QPushButton,
    QTableWidget,
    QTableWidgetItem,
    QVBoxLayout,
    QWidget,
)

from app.insight.agreement import AGREES, DIFFERS, Agreement, agreement, say
from app.insight.note import note
from app.insight.words import as_tip, as_typed, percent
from app.theme.appearance import Appearance
from medusa_core.messages import ChatMessage, Verified, Verify

SESSION = "equilibrium"
ROWS = ("Input", "Output", "Equal to the next input?")
HELP = (
    "The model reads all inputs at once and says behind each what it would write next. Where that "
    "is the next input everywhere, the text is an equilibrium: the model writes it itself. "
    "Double-click an input (or press F2) to change it, and see where the outputs part."
)
INPUT, MARK = 0, 2


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the running verification is about.

    Attributes:
        request_id: Its name.
        edited: The token that was changed; None for a text that is read first.
    """

    request_id: str
    edited: int | None = None


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
        self._submit = submit
        self._conversation = conversation
        self._make_id = make_id
        self._appearance = appearance
        self._asked: _Asked | None = None
        self._token_ids: tuple[int, ...] = ()
        self.shown = Agreement((), 0, None)
        self.table = QTableWidget(len(ROWS), 0)
        self.edit = QLineEdit()
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
        self._ask(Verify(SESSION, self._make_id(), messages=messages))

    def verify_text(self) -> None:
        """Read the user's own text."""
        self._ask(Verify(SESSION, self._make_id(), text=self.edit.text()))

    def replace(self, token: int, text: str) -> None:
        """Put another text in the place of a token and read everything again."""
        before, after = self._token_ids[:token], self._token_ids[token + 1 :]
        request = Verify(SESSION, self._make_id(), before_ids=before, text=text, after_ids=after)
        self._ask(request, token)

    def take(self, verified: Verified) -> None:
        """Show what the engine says, if it is what was asked last."""
        if self._asked is None or verified.request_id != self._asked.request_id:
            return
        edited, self._asked = self._asked.edited, None
        self._token_ids = tuple(token.token_id for token in verified.tokens)
        self.shown = agreement(verified, edited)
        self._fill()
        place = self.shown.bonus if self.shown.bonus is not None else len(self._token_ids) - 1
        self._go_to(place)

    def refuse(self, request_id: str, message: str, hint: str) -> None:
        """The engine couldn't verify; what was shown stays."""
        if self._asked is not None and request_id == self._asked.request_id:
            self._asked = None
            self._fill()
            self.refused.emit(message, hint)

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        scale = self._appearance.scale
        self._column.setContentsMargins(scale.px(1.0), scale.px(0.5), scale.px(1.0), scale.px(0.6))
        # All three rows, their header and the bar that scrolls.
        self.table.setFixedHeight(scale.px(2.5 * (len(ROWS) + 1)) + scale.px(1.2))
        self._fill()

    def _ask(self, request: Verify, edited: int | None = None) -> None:
        self._asked = _Asked(request.request_id, edited)
        self._submit(request)

    def _build(self) -> None:
        row = QHBoxLayout()
        row.addWidget(self._use_button)
        self.edit.setPlaceholderText("… or any text of yours")
        self.edit.setAccessibleName("Text to verify")
        row.addWidget(self.edit, 1)
        row.addWidget(self._verify_button)
        self._next_button.setAccessibleName("Next difference")
        row.addWidget(self._next_button)
        table = self.table
        table.setAccessibleName("Inputs and outputs")
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
        self.edit.returnPressed.connect(self.verify_text)
        self._next_button.clicked.connect(self._next_difference)
        self.table.itemChanged.connect(self._changed)

    def _changed(self, item: QTableWidgetItem) -> None:
        place = item.column()
        if item.row() == INPUT and item.text() != self.shown.cells[place].text:
            self.replace(place, as_typed(item.text()))

    def _fill(self) -> None:
        theme, table = self._appearance.theme, self.table
        right = theme.head(3).line
        table.blockSignals(True)
        table.setColumnCount(len(self.shown.cells))
        for place, cell in enumerate(self.shown.cells):
            is_bonus = place == self.shown.bonus
            mark = f"{cell.mark} bonus" if is_bonus else cell.mark
            tip = f"The model gives “{cell.output}” {percent(cell.probability)} here."
            for row, text in enumerate((cell.text, cell.output, mark)):
                item = QTableWidgetItem(text)
                item.setToolTip(as_tip(tip) if row else f"Token {cell.token_id}")
                item.setTextAlignment(Qt.AlignmentFlag.AlignCenter)
                if row != INPUT:
                    item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
                if row and is_bonus:
                    item.setBackground(QColor(theme.head(3).tint))
                elif row and cell.mark == DIFFERS:
                    item.setBackground(QColor(theme.danger_surface))
                if row == MARK:
                    item.setForeground(QColor(theme.danger if cell.mark == DIFFERS else right))
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
