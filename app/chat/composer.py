"""Where the user writes."""

from __future__ import annotations

import math

from PySide6.QtCore import QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QSizePolicy,
    QTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.theme.appearance import Appearance

MAX_LINES = 9


class PromptEdit(QTextEdit):
    """Plain text that grows with what is written.

    Signals:
        submitted: Enter was pressed.
        focused: The cursor came or went.
        scrolled: The conversation is to scroll by so many pages, down if positive.
    """

    submitted = Signal()
    focused = Signal(bool)
    scrolled = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setPlaceholderText(self.tr("Ask something…"))
        self.setAccessibleName(self.tr("Message"))
        self.setAccessibleDescription(self.tr("Enter sends, Shift and Enter start a new line."))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(2)
        self.document().documentLayout().documentSizeChanged.connect(self.fit)

    def fit(self) -> None:
        """Take the height of the text, up to a limit from which on it scrolls."""
        line = self.fontMetrics().lineSpacing()
        wanted = math.ceil(self.document().size().height())
        highest = line * MAX_LINES + 4
        self.setFixedHeight(max(line + 4, min(wanted, highest)))
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded
            if wanted > highest
            else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )

    def keyPressEvent(self, event: QKeyEvent) -> None:
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.submitted.emit()
            return
        if event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self.scrolled.emit(1 if event.key() == Qt.Key.Key_PageDown else -1)
            return
        super().keyPressEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        # Files are dropped on the window.
        return not source.hasUrls() and super().canInsertFromMimeData(source)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit(False)


class Composer(QFrame):
    """The prompt and the button that sends it or stops the answer.

    Attributes:
        edit: The text.
        button: Send, or Stop while an answer is written.

    Signals:
        send_requested: The text that is to be sent; it stays until `clear`.
        stop_requested: The answer is to end.
    """

    send_requested = Signal(str)
    stop_requested = Signal()

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("composer")
        self._appearance = appearance
        self._is_busy = False
        self._locked = ""
        self.edit = PromptEdit(self)
        self.button = QToolButton(self)
        self.button.setObjectName("sendButton")
        self._row = row = QHBoxLayout(self)
        row.addWidget(self.edit, 1, Qt.AlignmentFlag.AlignVCenter)
        holder = QVBoxLayout()
        holder.addStretch(1)
        holder.addWidget(self.button)
        row.addLayout(holder)
        self.edit.submitted.connect(self.submit)
        self.edit.textChanged.connect(self._refresh)
        self.edit.focused.connect(self._show_focus)
        self.button.clicked.connect(self._click)
        self.setFocusProxy(self.edit)
        self.restyle()

    @property
    def text(self) -> str:
        """What is written now."""
        return self.edit.toPlainText()

    def set_text(self, text: str) -> None:
        """Write something for the user, with the cursor behind it."""
        self.edit.setPlainText(text)
        cursor = self.edit.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        self.edit.setTextCursor(cursor)

    def give_back(self, text: str) -> None:
        """Put back a text that could not be sent, before what was written meanwhile."""
        written = self.text
        self.set_text(f"{text}\n{written}" if written.strip() else text)

    def clear(self) -> None:
        """Forget the text: it has been sent."""
        self.edit.clear()

    def set_busy(self, is_busy: bool) -> None:
        """Offer to stop instead of to send."""
        self._is_busy = is_busy
        self._refresh()

    def lock(self, reason: str) -> None:
        """Send nothing any more; what is written can still be copied."""
        self._locked = reason
        self._refresh()

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        scale = self._appearance.scale
        self._row.setContentsMargins(scale.px(1.0), scale.px(0.5), scale.px(0.5), scale.px(0.5))
        self.button.setIconSize(QSize(scale.px(1.25), scale.px(1.25)))
        self.edit.fit()
        self._refresh()

    def submit(self) -> None:
        """Send what is written, if anything is and it can be sent now."""
        if not self._is_busy and not self._locked and self.text.strip():
            self.send_requested.emit(self.text)

    def _click(self) -> None:
        if self._is_busy:
            self.stop_requested.emit()
        else:
            self.submit()

    def _refresh(self) -> None:
        theme = self._appearance.theme
        enabled = self._is_busy or (bool(self.text.strip()) and not self._locked)
        ink = theme.on_accent if enabled else theme.muted
        self.button.setEnabled(enabled)
        self.button.setIcon(self._appearance.icon("stop" if self._is_busy else "send", ink, 1.25))
        self.button.setAccessibleName("Stop" if self._is_busy else "Send")
        usual = "Stop the answer (Esc)" if self._is_busy else "Send (Enter)"
        self.button.setToolTip(self._locked or usual)

    def _show_focus(self, has_focus: bool) -> None:
        self.setProperty("focused", has_focus)
        # Qt looks at properties in style sheets only when the style is set anew.
        self.style().unpolish(self)
        self.style().polish(self)
