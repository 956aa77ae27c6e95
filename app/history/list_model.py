"""Model of the list of conversations, or of search results."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QAbstractListModel, QModelIndex, QPersistentModelIndex, Qt

from app.history.grouping import GroupedRow, Heading
from medusa_core.api import ConversationInfo, SearchHit

ListRow = GroupedRow | SearchHit
ROW = Qt.ItemDataRole.UserRole

Index = QModelIndex | QPersistentModelIndex


class ListModel(QAbstractListModel):
    """Model with a row for each heading, conversation or search result.

    Attributes:
        rows: Listed rows.
        running: Conversations with an answer in progress.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: tuple[ListRow, ...] = ()
        self.running: frozenset[str] = frozenset()

    def show(self, rows: Sequence[ListRow]) -> None:
        """Replace the rows."""
        if tuple(rows) == self.rows:
            return
        self.beginResetModel()
        self.rows = tuple(rows)
        self.endResetModel()

    def mark_running(self, conversation_ids: frozenset[str]) -> None:
        """Mark conversations with an answer in progress."""
        if conversation_ids != self.running:
            self.running = conversation_ids
            self.dataChanged.emit(self.index(0), self.index(len(self.rows) - 1))

    def place_of(self, conversation_id: str) -> int:
        """Return the row of a conversation; −1 if it isn't listed."""
        for place, row in enumerate(self.rows):
            if isinstance(row, ConversationInfo) and row.id == conversation_id:
                return place
        return -1

    def rowCount(self, parent: Index | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        row = self.rows[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole | Qt.ItemDataRole.ToolTipRole:
                return row.text if isinstance(row, Heading) else row.title
            case Qt.ItemDataRole.AccessibleTextRole:
                return self._spoken(row)
            case _ if role == ROW:
                return row
        return None

    def flags(self, index: Index) -> Qt.ItemFlag:
        if isinstance(self.rows[index.row()], Heading):
            return Qt.ItemFlag.ItemIsEnabled
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable

    def _spoken(self, row: ListRow) -> str:
        if isinstance(row, Heading):
            return self.tr("Heading: {0}").format(row.text)
        if isinstance(row, SearchHit):
            return f"{row.title}: {row.snippet}"
        state = self.tr(", is being answered") if row.id in self.running else ""
        return f"{row.title}{self.tr(', pinned') if row.is_pinned else ''}{state}"
