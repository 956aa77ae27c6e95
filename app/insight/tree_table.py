"""A tree as a table, for screen readers and exact numbers."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QSize, Signal
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHeaderView,
    QTableWidget,
    QTableWidgetItem,
)

from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.layout import TreeLayout
from app.insight.words import origin, percent
from app.theme.legend import Legend

COLUMNS = (
    QT_TRANSLATE_NOOP("Insight", "Node"),
    QT_TRANSLATE_NOOP("Insight", "Depth"),
    QT_TRANSLATE_NOOP("Insight", "Token"),
    QT_TRANSLATE_NOOP("Insight", "From"),
    QT_TRANSLATE_NOOP("Insight", "Draft token"),
    QT_TRANSLATE_NOOP("Insight", "Drafter gave"),
    QT_TRANSLATE_NOOP("Insight", "Model gave"),
    QT_TRANSLATE_NOOP("Insight", "Result"),
    QT_TRANSLATE_NOOP("Insight", "After token"),
)


class TreeTable(QTableWidget):
    """One row per node.

    Args:
        legend: Names of drafters.

    Signals:
        node_chosen: The user selects a row; the index of its node.
    """

    node_chosen = Signal(int)

    def __init__(self, legend: Legend) -> None:
        super().__init__(0, len(COLUMNS))
        self._legend = legend
        self._chosen = -1
        self.setAccessibleName(self.tr("Nodes of the tree"))
        self.setHorizontalHeaderLabels(
            [QCoreApplication.translate("Insight", name) for name in COLUMNS]
        )
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setTabKeyNavigation(False)  # arrow keys do that; Tab leaves
        self.verticalHeader().hide()
        header = self.horizontalHeader()
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setStretchLastSection(True)
        self.itemSelectionChanged.connect(self._announce)

    def sizeHint(self) -> QSize:
        return self.minimumSizeHint()  # what room there is comes on top

    def show_layout(self, layout: TreeLayout) -> None:
        """List a tree's nodes."""
        self.blockSignals(True)
        self.setRowCount(len(layout.nodes))
        texts = {node.index: node.text for node in layout.nodes}
        for row, node in enumerate(layout.nodes):
            cells = (
                str(node.index) if node.is_verified else "–",
                str(node.depth),
                node.text,
                "–" if node.is_dropped else origin(node.source, self._legend),
                str(node.rank + 1) if node.rank >= 0 else "–",
                percent(node.probability),
                percent(node.judged),
                QCoreApplication.translate("Insight", node.state.value),
                texts.get(node.parent, "–"),
            )
            for column, text in enumerate(cells):
                self.setItem(row, column, QTableWidgetItem(text))
        self.clearSelection()
        self._chosen = -1
        self.blockSignals(False)

    def choose(self, index: int) -> None:
        """Select a node's row; −1 selects none."""
        self._chosen = index
        if index < 0:
            self.clearSelection()
        else:
            self.selectRow(index)

    def _announce(self) -> None:
        rows = self.selectionModel().selectedRows()
        if rows and rows[0].row() != self._chosen:
            self._chosen = rows[0].row()
            self.node_chosen.emit(self._chosen)
