"""Search bar of a conversation."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QToolButton, QWidget

from app.theme.appearance import Appearance

_ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class FindBar(QFrame):
    """Search field, number of matches, and buttons for the next and previous match.

    Attributes:
        edit: Search field.
        count: Number of the current match and of all matches.

    Signals:
        changed: The search text has changed.
        moved: The user wants the next (1) or previous (−1) match.
        closed: The bar was closed.
    """

    changed = Signal(str)
    moved = Signal(int)
    closed = Signal()

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("findBar")
        self._appearance = appearance
        self.edit = QLineEdit()
        self.edit.setAccessibleName(self.tr("Find in this conversation"))
        self.edit.setPlaceholderText(self.tr("Find in this conversation"))
        self.edit.installEventFilter(self)
        self.edit.textChanged.connect(self.changed)
        self.count = QLabel()
        self.count.setProperty("class", "figure")
        self._buttons = {
            "previous": self._button(
                self.tr("Previous (Shift+Enter)"), lambda: self.moved.emit(-1)
            ),
            "next": self._button(self.tr("Next (Enter)"), lambda: self.moved.emit(1)),
            "close": self._button(self.tr("Close (Esc)"), self.close_bar),
        }
        self._row = row = QHBoxLayout(self)
        row.addWidget(self.edit, 1)
        row.addWidget(self.count)
        for button in self._buttons.values():
            row.addWidget(button)
        self.hide()
        self.restyle()

    def open_bar(self, words: str = "") -> None:
        """Show the bar, with a search text unless it is empty."""
        self.show()
        if words and "\n" not in words:
            self.edit.setText(words)
        self.edit.setFocus()
        self.edit.selectAll()
        self.changed.emit(self.edit.text())

    def close_bar(self) -> None:
        """Hide the bar and the highlighted matches."""
        self.hide()
        self.closed.emit()

    def show_count(self, place: int, num_found: int) -> None:
        """Show the number of the current match, which is counted from 0."""
        text = (
            self.tr("{n} of {all}").format(n=place + 1, all=num_found)
            if num_found
            else self.tr("Not found")
        )
        self.count.setText(text if self.edit.text().strip() else "")
        self.count.setAccessibleName(self.count.text())

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self._row.setContentsMargins(scale.px(1.2), scale.px(0.35), scale.px(0.8), scale.px(0.35))
        side = scale.px(1.0)
        for icon, button in self._buttons.items():
            button.setIcon(self._appearance.icon(icon, self._appearance.theme.muted, 1.0))
            button.setIconSize(QSize(side, side))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent):
            is_press = event.type() == QEvent.Type.KeyPress
            if event.key() == Qt.Key.Key_Escape:
                if is_press:
                    self.close_bar()
                else:
                    event.accept()  # else it would stop an answer
                return True
            if event.key() in _ENTER and is_press:
                is_back = event.modifiers() & Qt.KeyboardModifier.ShiftModifier
                self.moved.emit(-1 if is_back else 1)
                return True
        return super().eventFilter(watched, event)

    def _button(self, name: str, act: object) -> QToolButton:
        button = QToolButton()
        button.setAccessibleName(name.partition(" (")[0])
        button.setToolTip(name)
        button.clicked.connect(act)
        return button
