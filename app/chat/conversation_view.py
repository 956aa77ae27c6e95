"""The scrollable column of messages.

One widget for each message in a scroll area, not a list with delegates: text can be selected and
read aloud without a line of our own. Messages are laid out when they come near the view; until
then each is an empty widget of about the height that it will have, so that long conversations open
at once and scroll smoothly.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import pairwise

from PySide6.QtCore import QCoreApplication, QEvent, QRect, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chat.messages.message_widgets import MessageWidget
from app.theme.appearance import Appearance

COLUMN_EM = 52
# So close to the end, in pixels, counts as the end.
END_SLACK_PX = 4
_ANY_HEIGHT = (1 << 24) - 1  # as Qt says it
_FRAME_MS = 16
_MOST_ROUNDS = 20
# A layout of the column, of the message in it, and of the text that then knows its width.
_LAYOUT_ROUNDS = 4


class ConversationView(QScrollArea):
    """Scroll area of messages; follows the end if it is scrolled to the end.

    Signals:
        changed: Messages were added or removed.
    """

    changed = Signal()

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversation")
        self.setAccessibleName(self.tr("Conversation"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._appearance = appearance
        self._follows_end = True
        self._messages: list[MessageWidget] = []
        # Messages of an estimated height. One that laid itself out keeps it until it is near.
        self._estimated: set[MessageWidget] = set()
        self._page = QWidget()
        self._page_row = QHBoxLayout()
        self._column, self._stack = self._build_column()
        self._jump = QToolButton(self)
        self._jump.setObjectName("jumpButton")
        self._jump.setToolTip(self.tr("Go to the end"))
        self._jump.setAccessibleName(self.tr("Go to the end"))
        self._jump.clicked.connect(self.follow_end)
        self._jump.hide()
        self._focus_line = QFrame(self)  # a frame of the style sheet would be painted slowly
        self._focus_line.setObjectName("focusLine")
        self._focus_line.hide()
        self._is_settling = False
        self._has_new = False
        # One message at a time, between two frames.
        self._later = QTimer(self)
        self._later.setInterval(_FRAME_MS)
        self._later.timeout.connect(self._populate_more)
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        app.focusChanged.connect(self._focus_changed)
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(self._range_changed)
        bar.valueChanged.connect(self._scrolled)
        self.restyle()

    @property
    def messages(self) -> tuple[MessageWidget, ...]:
        """The shown messages, oldest first."""
        return tuple(self._messages)

    def add(self, message: MessageWidget) -> None:
        """Show a message at the end."""
        self._messages.append(message)
        if not message.is_populated:
            width = min(self.viewport().width(), self._column.maximumWidth())
            message.setFixedHeight(message.estimated_px(width))
            self._estimated.add(message)
            self._has_new = True
            self._later.start()
        self._stack.insertWidget(self._stack.count() - 1, message)
        if message.is_populated:
            self._order_focus(message)
        self.changed.emit()

    def remove(self, message: MessageWidget) -> None:
        """Remove a message."""
        self._messages.remove(message)
        self._estimated.discard(message)
        self._stack.removeWidget(message)
        message.hide()
        message.deleteLater()
        self.changed.emit()

    def clear(self) -> None:
        """Remove all messages."""
        for message in self.messages:
            self.remove(message)
        self._follows_end = True

    def follow_end(self) -> None:
        """Scroll to the end and follow it as it grows."""
        self._follows_end = True
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())
        self._jump.hide()

    def populate_message(self, message: MessageWidget) -> None:
        """Lay out a message; the visible part doesn't move."""
        self._populate([message])

    def reveal(self, message: MessageWidget, place: QRect) -> None:
        """Scroll until `place`, a rectangle in the message's coordinates, is visible."""
        self.populate_message(message)
        at = message.mapTo(self._page, place.center())
        margin = place.height() + self._appearance.scale.px(3)
        self.ensureVisible(at.x(), at.y(), 0, min(margin, self.viewport().height() // 3))

    def scroll_pages(self, num_pages: int) -> None:
        """Scroll by a number of pages, down if positive."""
        bar = self.verticalScrollBar()
        bar.setValue(bar.value() + num_pages * bar.pageStep())

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
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

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self._focus_line.setGeometry(0, 0, self._appearance.scale.px(0.15), self.height())
        self._focus_line.raise_()
        self._focus_line.show()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self._focus_line.hide()

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

    # Laid out where it is seen, and then around it ----------------------------------------------

    def _populate_more(self) -> None:
        """Lay out the visible messages, then the nearest ones, one per call."""
        if self.isHidden() or not self._messages:
            self._later.stop()
            return
        if self._waiting_within(0) or self._has_new:
            self._populate_visible()
            return
        near = self._waiting_within(self.viewport().height())
        if near:
            middle = self.verticalScrollBar().value() + self.viewport().height() // 2
            self._populate([min(near, key=lambda one: abs(one.geometry().center().y() - middle))])
        else:
            self._later.stop()

    def _lay_out(self) -> None:
        """Apply the layout at once."""
        for _ in range(_LAYOUT_ROUNDS):
            QCoreApplication.sendPostedEvents(None, QEvent.Type.LayoutRequest.value)

    def _populate_visible(self) -> None:
        if self._has_new:  # which has no place yet
            self._has_new = False
            self._lay_out()
        for _ in range(_MOST_ROUNDS):
            if not (seen := self._waiting_within(0)):
                return
            self._populate(seen)

    def _waiting_within(self, margin_px: int) -> list[MessageWidget]:
        """Messages in or near the view that aren't laid out yet."""
        top = self.verticalScrollBar().value() - margin_px
        bottom = top + self.viewport().height() + 2 * margin_px
        return [one for one in self._between(top, bottom) if one in self._estimated]

    def _between(self, top: int, bottom: int) -> list[MessageWidget]:
        """Return messages that overlap a vertical range of the page."""
        messages = self._messages
        first = bisect_left(messages, top, key=lambda one: one.geometry().bottom())
        return messages[first : bisect_right(messages, bottom, key=lambda one: one.y())]

    def _populate(self, messages: list[MessageWidget]) -> None:
        """Lay out messages and correct the scroll position for estimated heights."""
        waiting = [message for message in messages if message in self._estimated]
        if not waiting or self._is_settling:
            return
        bar = self.verticalScrollBar()
        anchor = self._anchor(bar.value())
        before = anchor.y() - bar.value() if anchor else 0
        self._is_settling = True
        for message in waiting:
            message.populate()
            self._estimated.remove(message)
            message.setMinimumHeight(0)
            message.setMaximumHeight(_ANY_HEIGHT)
            self._order_focus(message)
        self._lay_out()
        if self._follows_end:
            bar.setValue(bar.maximum())
        elif anchor is not None:
            bar.setValue(anchor.y() - before)
        self._is_settling = False

    def _order_focus(self, message: MessageWidget) -> None:
        """Set the Tab order to the order of messages."""
        place = self._messages.index(message)
        before = next((one for one in reversed(self._messages[:place]) if _focusable(one)), None)
        chain = [_focusable(before)[-1] if before else self, *_focusable(message)]
        for first, second in pairwise(chain):
            self.setTabOrder(first, second)

    def _focus_changed(self, _before: QWidget | None, now: QWidget | None) -> None:
        """Scroll to a widget that got the focus by the keyboard."""
        if now is not None and self.isAncestorOf(now) and now.visibleRegion().isEmpty():
            self.ensureWidgetVisible(now)

    def _anchor(self, top: int) -> MessageWidget | None:
        """Return the first message that begins in the view; else the one that fills it."""
        seen = self._between(top, top + self.viewport().height())
        inside = (message for message in seen if message.y() >= top)
        return next(inside, seen[0] if seen else None)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._later.start()

    def _scrolled(self, value: int) -> None:
        if self._is_settling:
            return
        self._follows_end = value >= self.verticalScrollBar().maximum() - END_SLACK_PX
        self._populate_visible()
        self._later.start()
        self._jump.setVisible(not self._follows_end)


def _focusable(message: MessageWidget) -> list[QWidget]:
    """Return a message's focusable widgets; none before it is laid out."""
    tab = Qt.FocusPolicy.TabFocus
    return [one for one in message.findChildren(QWidget) if one.focusPolicy() & tab == tab]
