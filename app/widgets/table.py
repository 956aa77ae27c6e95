"""A table of rows that are chosen whole."""

from __future__ import annotations

import html
from collections.abc import Sequence

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableWidget,
    QTableWidgetItem,
)

_LEAST_WIDTH = 200  # of the first column: a name can be told by so much
_LEAST_SHARE = 150  # of it where others are cut, too


class RowTable(QTableWidget):
    """Text cells; the first column takes the room, and a readable width where there is none."""

    def __init__(
        self,
        name: str,
        columns: Sequence[str],
        shares: Sequence[int] = (),
        cut_at_end: Sequence[int] = (),
    ) -> None:
        """Make a table without rows.

        Args:
            name: For those who can't see it.
            columns: What stands above them.
            shares: Of the room what part each column takes at most, so that a long text leaves
                some for the others and is cut; 0 for as wide as its texts.
            cut_at_end: Columns whose texts are cut at their ends; others are in the middle.
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
        self.setWordWrap(False)
        header = self.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column in cut_at_end:
            self.setItemDelegateForColumn(column, _CutAtEnd(self))
        self._shares = {column: share for column, share in enumerate(shares) if share}
        for column in self._shares:
            header.setSectionResizeMode(column, QHeaderView.ResizeMode.Interactive)

    def show_rows(self, rows: Sequence[Sequence[str]]) -> None:
        """Show these cells; the chosen row stays chosen by its place."""
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
        header, modes = self.horizontalHeader(), QHeaderView.ResizeMode
        if self._shares:
            self._share_room(header)
            return
        others = sum(header.sectionSize(column) for column in range(1, self.columnCount()))
        if self.viewport().width() - others >= _LEAST_WIDTH:
            header.setSectionResizeMode(0, modes.Stretch)
        else:
            header.setSectionResizeMode(0, modes.Interactive)
            header.resizeSection(0, _LEAST_WIDTH)

    def _share_room(self, header: QHeaderView) -> None:
        """Give each column its share, and what others don't need to the first one."""
        wanted = {
            column: max(self.sizeHintForColumn(column), header.sectionSizeHint(column))
            for column in range(self.columnCount())
        }
        fixed = sum(size for column, size in wanted.items() if column not in self._shares)
        room = max(0, self.viewport().width() - fixed)
        left, total = room, sum(self._shares.values())
        for column, share in self._shares.items():
            if column:
                size = min(wanted[column], room * share // total)
                header.resizeSection(column, size)
                left -= size
        header.resizeSection(0, max(_LEAST_SHARE, left))

    def show_row(self, row: int, cells: Sequence[str]) -> None:
        """Show one row's cells."""
        for column, text in enumerate(cells):
            item = self.item(row, column)
            if item is None:
                item = QTableWidgetItem()
                self.setItem(row, column, item)
            if item.text() != text:
                item.setText(text)
                # Qt would take a name with tags in it for rich text, and load its pictures.
                item.setToolTip(f"<span>{html.escape(text)}</span>")


class _CutAtEnd(QStyledItemDelegate):
    """Cells whose beginning is read."""

    def initStyleOption(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        super().initStyleOption(option, index)
        option.textElideMode = Qt.TextElideMode.ElideRight
