"""The messages under each other, in a column that is good to read.

One widget for each message in a scroll area, not a list with delegates: text can be selected and
read aloud without a line of our own, and 200 long answers stay smooth, because only the last one
changes while it is written and the column keeps its width while the window grows.
"""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chat.message_widgets import Message
from app.theme.appearance import Appearance

COLUMN_EM = 52
# So close to the end, in pixels, counts as the end.
END_SLACK_PX = 4


class ConversationView(QScrollArea):
    """Scrolls the messages; follows the end while the user is there.

    Signals:
        changed: There are other messages.
    """

    changed = Signal()

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversation")
        self.setAccessibleName("Conversation")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._appearance = appearance
        self._follows_end = True
        self._messages: list[Message] = []
        self._page = QWidget()
        self._page_row = QHBoxLayout()
        self._column, self._stack = self._build_column()
        self._jump = QToolButton(self)
        self._jump.setObjectName("jumpButton")
        self._jump.setToolTip("Go to the end")
        self._jump.setAccessibleName("Go to the end")
        self._jump.clicked.connect(self.follow_end)
        self._jump.hide()
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._range_changed)
        bar.valueChanged.connect(self._scrolled)
        self.restyle()

    @property
    def messages(self) -> tuple[Message, ...]:
        """What is shown, oldest first."""
        return tuple(self._messages)

    def add(self, message: Message) -> None:
        """Show a message at the end."""
        self._messages.append(message)
        self._stack.insertWidget(self._stack.count() - 1, message)
        self.changed.emit()

    def remove(self, message: Message) -> None:
        """Take a message away."""
        self._messages.remove(message)
        self._stack.removeWidget(message)
        message.hide()
        message.deleteLater()
        self.changed.emit()

    def clear(self) -> None:
        """Take all messages away."""
        for message in self.messages:
            self.remove(message)
        self._follows_end = True

    def follow_end(self) -> None:
        """Go to the end and stay there while it moves."""
        self._follows_end = True
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())
        self._jump.hide()

    def reveal(self, message: Message, place: QRect) -> None:
        """Scroll to a part of a message, which is in its own coordinates."""
        at = message.mapTo(self._page, place.center())
        margin = place.height() + self._appearance.scale.px(3)
        self.ensureVisible(at.x(), at.y(), 0, min(margin, self.viewport().height() // 3))

    def scroll_pages(self, num_pages: int) -> None:
        """Scroll by so many pages, down if positive."""
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + num_pages * bar.pageStep())

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        scale = self._appearance.scale
        self._column.setMaximumWidth(scale.px(COLUMN_EM))
        self._stack.setSpacing(scale.px(1.2))
        self._stack.setContentsMargins(scale.px(1.2), scale.px(1.6), scale.px(1.2), scale.px(1.2))
        side = scale.px(2.0)
        self._jump.setFixedSize(side, side)
        self._jump.setIconSize(QSize(scale.px(1.1), scale.px(1.1)))
        self._jump.setIcon(self._appearance.icon("down", self._appearance.theme.text, 1.1))
        for message in self._messages:
            message.restyle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        gap = self._appearance.scale.px(0.6)
        self._jump.move(
            (self.width() - self._jump.width()) // 2, self.height() - self._jump.height() - gap
        )

    def _build_column(self) -> tuple[QWidget, QVBoxLayout]:
        """The column of messages, centred in the page that scrolls."""
        column = QWidget()
        column.setObjectName("column")
        column.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        stack = QVBoxLayout(column)
        stack.addStretch(1)
        page = self._page
        page.setObjectName("page")
        row = self._page_row
        page.setLayout(row)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        # Almost all of the width, until the column is as wide as it may be.
        row.addWidget(column, 1000)
        row.addStretch(1)
        self.setWidget(page)
        return column, stack

    def _range_changed(self, _lowest: int, highest: int) -> None:
        bar = self.verticalScrollBar()
        # As much at the left as the bar takes at the right, so that the column stays in the middle.
        self._page_row.setContentsMargins(bar.sizeHint().width() if highest else 0, 0, 0, 0)
        if self._follows_end:
            bar.setValue(highest)
        self._jump.setVisible(not self._follows_end)

    def _scrolled(self, value: int) -> None:
        self._follows_end = value >= self.verticalScrollBar().maximum() - END_SLACK_PX
        self._jump.setVisible(not self._follows_end)
