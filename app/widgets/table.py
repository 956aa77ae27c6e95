"""Table of text whose rows are selected as a whole."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from PySide6.QtCore import QLocale, QModelIndex, QPersistentModelIndex, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
)

_MOST_LINES = 4  # of a row
_TYPICAL = 0.6  # of a column's texts are in one line where there is room for so many
_FRAME_PX = 16
_BEFORE_UNIT = re.compile(r"(?<=\d) (?=[kKMGTB](i?B)?\b)")


class RowTable(QTableWidget):
    """Table of text cells; long texts are wrapped.

    The first column takes the remaining width.
    """

    def __init__(self, name: str, columns: Sequence[str]) -> None:
        """Create an empty table.

        Args:
            name: Accessible name.
            columns: Titles of the columns.
        """
        super().__init__(0, len(columns))
        self.setAccessibleName(name)
        self.setHorizontalHeaderLabels(list(columns))
        self.verticalHeader().hide()
        self.setShowGrid(False)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setTabKeyNavigation(False)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names differ at their ends
        self.setWordWrap(True)
        self.setItemDelegate(_WrappedCells(self))
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)

    def show_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Replace the cells; the selected row index is kept."""
        chosen = self.currentRow()
        self.setRowCount(len(rows))
        for row, cells in enumerate(rows):
            self.show_row(row, cells)
        if rows and 0 <= chosen < len(rows):
            self.selectRow(chosen)
        self._make_room()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._make_room()

    def _make_room(self) -> None:
        """Set the widths of columns and the heights of rows."""
        header, columns = self.horizontalHeader(), range(self.columnCount())
        wanted = [
            max(self.sizeHintForColumn(column), header.sectionSizeHint(column))
            for column in columns
        ]
        widths = [self._text_widths(column) for column in columns]
        typical = [min(most, width[0]) for most, width in zip(wanted, widths, strict=True)]
        least = [min(most, width[1]) for most, width in zip(wanted, widths, strict=True)]
        for column, width in enumerate(_divide(self.viewport().width(), least, typical, wanted)):
            header.resizeSection(column, width)
        metrics = self.fontMetrics()
        margin = self.verticalHeader().defaultSectionSize() - metrics.height()
        self.verticalHeader().setMaximumSectionSize(_MOST_LINES * metrics.lineSpacing() + margin)
        self.resizeRowsToContents()

    def _text_widths(self, column: int) -> tuple[int, int]:
        """Return two widths of a column: one for most of its texts, one for its longest word."""
        items = (self.item(row, column) for row in range(self.rowCount()))
        texts = [_unbroken(item.text()) for item in items if item is not None]
        title = str(self.model().headerData(column, Qt.Orientation.Horizontal))
        metrics = self.fontMetrics()
        words = [metrics.horizontalAdvance(word) for text in texts for word in text.split(" ")]
        lines = sorted(metrics.horizontalAdvance(text) for text in (title, *texts))
        longest = max(metrics.horizontalAdvance(title), *words, 0)
        typical = lines[round(_TYPICAL * (len(lines) - 1))]
        return max(typical, longest) + self._padding, longest + self._padding

    @property
    def _padding(self) -> int:
        """Horizontal padding of a cell."""
        return self.fontMetrics().averageCharWidth() + _FRAME_PX

    def show_row(self, row: int, cells: Sequence[str]) -> None:
        """Replace the cells of a row."""
        for column, text in enumerate(cells):
            item = self.item(row, column)
            if item is None:
                item = QTableWidgetItem()
                self.setItem(row, column, item)
            if item.text() != text:
                item.setText(text)
                # Qt would take a name with tags in it for rich text, and load its pictures.
                item.setToolTip(f"<span>{html.escape(text)}</span>")


class _WrappedCells(QStyledItemDelegate):
    """Delegate that wraps texts between words, but not between a number and its unit."""

    def displayText(self, value: object, locale: QLocale | QLocale.Language) -> str:
        return _unbroken(super().displayText(value, locale))

    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        # The style sheet's padding isn't in the width that Qt wraps a text in to measure it.
        option.rect = option.rect.adjusted(0, 0, -_FRAME_PX, 0)
        return super().sizeHint(option, index)


def _unbroken(text: str) -> str:
    return _BEFORE_UNIT.sub("\N{NO-BREAK SPACE}", text)


def _divide(
    room: int, least: Sequence[int], typical: Sequence[int], wanted: Sequence[int]
) -> list[int]:
    """Divide a width among columns.

    Args:
        room: Available width.
        least: Minimum widths, in which no word is cut.
        typical: Widths in which most texts have one line; not smaller.
        wanted: Widths in which all texts have one line; not smaller.
    """
    if sum(wanted) <= room:
        return [wanted[0] + room - sum(wanted), *wanted[1:]]
    if sum(least) >= room:
        return _cut_widest(room, least)
    low, high = (typical, wanted) if sum(typical) <= room else (least, typical)
    share = (room - sum(low)) / (sum(high) - sum(low))
    return [int(a + share * (b - a)) for a, b in zip(low, high, strict=True)]


def _cut_widest(room: int, widths: Sequence[int]) -> list[int]:
    """Reduce the largest widths to a common size, so that all fit."""
    ascending = sorted(widths)
    for place, width in enumerate(ascending):
        most = (room - sum(ascending[:place])) // (len(widths) - place)
        if width > most:
            return [min(one, most) for one in widths]
    return list(widths)
