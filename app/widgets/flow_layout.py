"""Layout that wraps a row of widgets."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtWidgets import QLayout, QLayoutItem, QWidget


class FlowLayout(QLayout):
    """Layout from left to right, wrapped to further lines.

    Args:
        spacing_px: Spacing in both directions.
    """

    def __init__(self, spacing_px: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._items: list[QLayoutItem] = []
        # A column of many messages asks each again whenever one of them changes.
        self._heights: dict[int, int] = {}
        self.setSpacing(spacing_px)
        self.setContentsMargins(0, 0, 0, 0)

    def invalidate(self) -> None:
        self._heights.clear()
        super().invalidate()

    def addItem(self, item: QLayoutItem) -> None:
        self._items.append(item)

    def count(self) -> int:
        return len(self._items)

    def itemAt(self, index: int) -> QLayoutItem | None:
        return self._items[index] if 0 <= index < len(self._items) else None

    def takeAt(self, index: int) -> QLayoutItem | None:
        return self._items.pop(index) if 0 <= index < len(self._items) else None

    def expandingDirections(self) -> Qt.Orientation:
        return Qt.Orientation(0)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        if width not in self._heights:
            self._heights[width] = self._arrange(QRect(0, 0, width, 0), move=False)
        return self._heights[width]

    def setGeometry(self, rect: QRect) -> None:
        super().setGeometry(rect)
        self._arrange(rect, move=True)

    def sizeHint(self) -> QSize:
        return self.minimumSize()

    def minimumSize(self) -> QSize:
        size = QSize()
        for item in self._items:
            size = size.expandedTo(item.minimumSize())
        return size

    def _arrange(self, rect: QRect, *, move: bool) -> int:
        """Place the widgets; returns the height they need."""
        y = rect.y()
        for line in self._lines(rect.width()):
            sizes = [_size_within(item, rect.width()) for item in line]
            height = max(size.height() for size in sizes)
            x = rect.x()
            for item, size in zip(line, sizes, strict=True):
                if move:
                    centred = y + (height - size.height()) // 2
                    item.setGeometry(QRect(QPoint(x, centred), size))
                x += size.width() + self.spacing()
            y += height + self.spacing()
        return max(0, y - self.spacing() - rect.y())

    def _lines(self, width: int) -> list[list[QLayoutItem]]:
        """The visible widgets, line by line."""
        lines: list[list[QLayoutItem]] = []
        used = 0
        for item in self._items:
            if item.isEmpty():
                continue
            wanted = item.sizeHint().width()
            if not lines or used + self.spacing() + wanted > width:
                lines.append([item])
                used = wanted
            else:
                lines[-1].append(item)
                used += self.spacing() + wanted
        return lines


def _size_within(item: QLayoutItem, width: int) -> QSize:
    """Return the size of an item; its text is wrapped if it is wider than the layout."""
    size, width = item.sizeHint(), max(width, item.minimumSize().width())
    if size.width() <= width or not item.hasHeightForWidth():
        return size
    return QSize(width, item.heightForWidth(width))
