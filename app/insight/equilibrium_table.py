"""The table of the equilibrium panel: inputs that can be edited, outputs, and where they agree."""

from __future__ import annotations

from PySide6.QtCore import (
    QAbstractItemModel,
    QCoreApplication,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QColor, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QLineEdit,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
    QWidget,
)

from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.agreement import DIFFERS, NOTHING, OPEN, Agreement, Cell
from app.insight.words import as_tip, as_typed, percent
from app.theme.tokens import Theme

ROWS = (
    QT_TRANSLATE_NOOP("Insight", "Input"),
    QT_TRANSLATE_NOOP("Insight", "Output"),
    QT_TRANSLATE_NOOP("Insight", "Equal to the next input?"),
)
INPUT, OUTPUT, MARK = range(3)
BONUS = "★"
_Index = QModelIndex | QPersistentModelIndex


class EquilibriumTable(QTableWidget):
    """Shows a verified text, a column for each token.

    Attributes:
        shown: Content of the table.
        is_editing: Whether a cell is edited; `fill` discards the edit.

    Signals:
        edited: The user replaced a token: its index, and the text.
        editing_ended: The typed text was submitted or discarded.
    """

    edited = Signal(int, str)
    editing_ended = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(len(ROWS), 0, parent)
        self.shown: Agreement = NOTHING
        self.setAccessibleName(self.tr("Inputs and outputs"))
        self.setItemDelegate(_Cells(self))
        self.setTabKeyNavigation(False)  # arrow keys do that; Tab leaves
        self.setVerticalHeaderLabels([QCoreApplication.translate("Insight", name) for name in ROWS])
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Stretch)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        triggers = QAbstractItemView.EditTrigger
        self.setEditTriggers(triggers.DoubleClicked | triggers.EditKeyPressed)
        self.itemChanged.connect(self._changed)
        # The editor is still there while it says that it is closed.
        self.itemDelegate().closeEditor.connect(
            lambda: QTimer.singleShot(0, self, self.editing_ended.emit)
        )

    @property
    def is_editing(self) -> bool:
        return self.state() is QAbstractItemView.State.EditingState

    def fill(self, shown: Agreement, theme: Theme) -> None:
        """Show a text."""
        self.shown = shown
        self.blockSignals(True)
        self.setColumnCount(len(shown.cells))
        for place, cell in enumerate(shown.cells):
            self._fill_column(place, cell, theme)
        self.blockSignals(False)
        # Once: a header that follows its contents measures every column anew for each cell.
        self.resizeColumnsToContents()

    def go_to(self, place: int) -> None:
        """Make a token the current one; F2 edits it."""
        item = self.item(INPUT, place)
        if item is not None:
            self.setCurrentItem(item)
            self.scrollToItem(item, QAbstractItemView.ScrollHint.PositionAtCenter)

    def go_to_next_difference(self) -> None:
        """Go to the next column whose output differs from the next input; wraps around."""
        marks, here = [cell.mark for cell in self.shown.cells], self.currentColumn()
        order = [*range(here + 1, len(marks)), *range(here + 1)]
        found = next(
            (i for i in order if 0 <= i < len(marks) and marks[i] in (DIFFERS, OPEN)), None
        )
        if found is not None:
            self.go_to(found)

    def _fill_column(self, place: int, cell: Cell, theme: Theme) -> None:
        is_bonus, differs = place == self.shown.bonus, cell.mark == DIFFERS
        output = f"{BONUS} {cell.output}" if is_bonus else cell.output
        tip = self.tr("The model gives “{0}” {1} here.").format(
            cell.output, percent(cell.probability)
        )
        for row, text in enumerate((cell.text, output, cell.mark)):
            item = QTableWidgetItem(text)
            item.setToolTip(as_tip(tip) if row else self.tr("Token {0}").format(cell.token_id))
            item.setTextAlignment(Qt.AlignmentFlag.AlignCenter)
            if row != INPUT:
                item.setFlags(item.flags() & ~Qt.ItemFlag.ItemIsEditable)
            if row == OUTPUT and is_bonus:
                item.setBackground(QColor(theme.agreed.tint))
            elif row != INPUT and differs:
                item.setBackground(QColor(theme.danger_surface))
            if row == MARK:
                item.setForeground(QColor(theme.danger if differs else theme.agreed.line))
            self.setItem(row, place, item)
        self.setHorizontalHeaderItem(place, QTableWidgetItem(f"{place + 1}"))

    def _changed(self, item: QTableWidgetItem) -> None:
        place = item.column()
        if item.row() == INPUT and item.text() != self.shown.cells[place].text:
            self.edited.emit(place, as_typed(item.text()))


class _Cells(QStyledItemDelegate):
    """Paints cells, and edits them."""

    def __init__(self, table: EquilibriumTable) -> None:
        super().__init__(table)
        self._table = table

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        # A style sheet that frames cells leaves out their backgrounds.
        tint = index.data(Qt.ItemDataRole.BackgroundRole)
        if tint is not None:
            painter.fillRect(option.rect, tint)
        super().paint(painter, option, index)

    def setEditorData(self, editor: QWidget, index: _Index) -> None:
        super().setEditorData(editor, index)
        assert isinstance(editor, QLineEdit)
        if not self._table.shown.cells[index.column()].is_text:
            editor.clear()  # a special token, or a part of a character, can only be replaced
        editor.setModified(False)

    def setModelData(self, editor: QWidget, model: QAbstractItemModel, index: _Index) -> None:
        if isinstance(editor, QLineEdit) and editor.isModified():
            super().setModelData(editor, model, index)
