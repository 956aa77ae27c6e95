"""Model of the server's requests."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QAbstractTableModel,
    QCoreApplication,
    QDateTime,
    QLocale,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
)

from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP

if TYPE_CHECKING:
    from medusa_core.server.request_log import RequestRecord

MOST_REQUESTS = 500  # the latest ones
_COLUMNS = (
    QT_TRANSLATE_NOOP("Server", "Time"),
    QT_TRANSLATE_NOOP("Server", "Request"),
    QT_TRANSLATE_NOOP("Server", "Status"),
    QT_TRANSLATE_NOOP("Server", "Tokens read"),
    QT_TRANSLATE_NOOP("Server", "Tokens written"),
    QT_TRANSLATE_NOOP("Server", "Tokens/s"),
    QT_TRANSLATE_NOOP("Server", "Seconds"),
)
_Index = QModelIndex | QPersistentModelIndex


class RequestsModel(QAbstractTableModel):
    """Requests, the latest first, without their texts."""

    def __init__(self) -> None:
        super().__init__()
        self._records: deque[RequestRecord] = deque()

    def add(self, record: RequestRecord) -> None:
        """Add a finished request."""
        if len(self._records) == MOST_REQUESTS:
            last = MOST_REQUESTS - 1
            self.beginRemoveRows(QModelIndex(), last, last)
            self._records.pop()
            self.endRemoveRows()
        self.beginInsertRows(QModelIndex(), 0, 0)
        self._records.appendleft(record)
        self.endInsertRows()

    def rowCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - Qt's signature
        return 0 if parent.isValid() else len(self._records)

    def columnCount(self, parent: _Index = QModelIndex()) -> int:  # noqa: B008 - as above
        return 0 if parent.isValid() else len(_COLUMNS)

    def headerData(
        self,
        section: int,
        orientation: Qt.Orientation,
        role: int = Qt.ItemDataRole.DisplayRole,
    ) -> str | None:
        if orientation is Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole:
            return QCoreApplication.translate("Server", _COLUMNS[section])
        return None

    def data(self, index: _Index, role: int = Qt.ItemDataRole.DisplayRole) -> str | int | None:
        column = index.column()
        if role == Qt.ItemDataRole.DisplayRole:
            return _cells(self._records[index.row()])[column]
        if role == Qt.ItemDataRole.TextAlignmentRole and column >= 2:
            return int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        return None


def _cells(record: RequestRecord) -> tuple[str, ...]:
    time = QDateTime.fromMSecsSinceEpoch(round(record.time * 1000)).time()
    has_answer = record.answer_tokens > 0
    return (
        QLocale().toString(time, "HH:mm:ss"),
        f"{record.method} {record.path}",
        str(record.status),
        f"{Number(record.prompt_tokens)}" if has_answer else "",
        f"{Number(record.answer_tokens)}" if has_answer else "",
        f"{Number(record.tokens_per_s):.1f}" if has_answer else "",
        f"{Number(record.seconds):.2f}",
    )
