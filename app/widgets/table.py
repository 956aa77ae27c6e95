"""A table of rows that are chosen whole."""

from __future__ import annotations

import html
from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QTableWidget, QTableWidgetItem

_LEAST_WIDTH = 200  # of the first column: a name can be told by so much


class RowTable(QTableWidget):
    """Text cells; the first column takes the room, and a readable width where there is none."""

    def __init__(self, name: str, columns: Sequence[str], *, is_last_elided: bool = False) -> None:
        """Make a table without rows.

        Args:
            name: For those who can't see it.
            columns: What stands above them.
            is_last_elided: The last column, too, takes what room there is, and is cut where it
                is longer: else a long text there would leave none for the first one.
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
        if is_last_elided:
            header.setSectionResizeMode(len(columns) - 1, QHeaderView.ResizeMode.Stretch)

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
        others = sum(header.sectionSize(column) for column in range(1, self.columnCount()))
        if self.viewport().width() - others >= _LEAST_WIDTH:
            header.setSectionResizeMode(0, modes.Stretch)
        else:
            header.setSectionResizeMode(0, modes.Interactive)
            header.resizeSection(0, _LEAST_WIDTH)

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
