"""Model of the growing table of a batch's answers."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import (
    QAbstractTableModel,
    QCoreApplication,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
)

from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from medusa_core.api import BatchRow

MOST_ROWS = 10_000  # the latest ones; the file has all
_MOST_CHARS = 300
_COLUMNS = (
    QT_TRANSLATE_NOOP("Batch", "Line"),
    QT_TRANSLATE_NOOP("Batch", "Tokens"),
    QT_TRANSLATE_NOOP("Batch", "Ended by"),
    QT_TRANSLATE_NOOP("Batch", "Answer"),
)
_ENDS = {
    "eos": QT_TRANSLATE_NOOP("Batch", "its end"),
    "stop_string": QT_TRANSLATE_NOOP("Batch", "a stop string"),
    "max_tokens": QT_TRANSLATE_NOOP("Batch", "the longest answer"),
    "context": QT_TRANSLATE_NOOP("Batch", "the context"),
}
_Index = QModelIndex | QPersistentModelIndex


class ResultsModel(QAbstractTableModel):
    """Answers in the order in which they ended."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[BatchRow] = []

    @property
    def rows(self) -> Sequence[BatchRow]:
        """The rows."""
        return self._rows

    def add(self, rows: Sequence[BatchRow]) -> None:
        """Append answers."""
        surplus = min(len(self._rows), max(0, len(self._rows) + len(rows) - MOST_ROWS))
        if surplus:
            self.beginRemoveRows(QModelIndex(), 0, surplus - 1)
            del self._rows[:surplus]
            self.endRemoveRows()
        rows = rows[-MOST_ROWS:]
        if rows:
            first = len(self._rows)
            self.beginInsertRows(QModelIndex(), first, first + len(rows) - 1)
            self._rows += rows
            self.endInsertRows()

    def clear(self) -> None:
        """Remove all answers."""
        self.beginResetModel()
        self._rows.clear()
        self.endResetModel()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - as above
        return 0 if parent.isValid() else len(_COLUMNS)

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> str | None:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return _tr(_COLUMNS[section])
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> str | None:
        row = self._rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return _cells(row)[index.column()]
        if role == Qt.ItemDataRole.ToolTipRole and index.column() == len(_COLUMNS) - 1:
            return row.text[: 4 * _MOST_CHARS] if row.error is None else row.error
        return None


def _cells(row: BatchRow) -> tuple[str, ...]:
    if row.error is not None:
        return str(row.id), "", _tr(QT_TRANSLATE_NOOP("Batch", "an error")), row.error
    ended = _tr(_ENDS.get(row.stop_reason, row.stop_reason))
    return (
        str(row.id),
        f"{Number(row.num_tokens):,}",
        ended,
        " ".join(row.text[:_MOST_CHARS].split()),
    )


def _tr(text: str) -> str:
    return QCoreApplication.translate("Batch", text)
