"""In-place editor of a sent prompt."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.chat.compose.composer import PromptEdit
from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance

NOTE = QT_TRANSLATE_NOOP("Chat", "What followed stays; you can go back to it with ‹ ›.")


class PromptEditor(QWidget):
    """Editor of a sent prompt.

    Attributes:
        edit: The text.
        send_button: Sends the new text.
        cancel_button: Discards the changes.

    Signals:
        sent: The user sent the new text.
        cancelled: The user discarded the changes.
    """

    sent = Signal(str)
    cancelled = Signal()

    def __init__(self, text: str, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.edit = PromptEdit(self)
        self.edit.setAccessibleName(self.tr("Edited message"))
        self.edit.setPlainText(text)
        self.edit.moveCursor(QTextCursor.MoveOperation.End)
        self.edit.installEventFilter(self)
        self.edit.submitted.connect(self._send)
        self.send_button = QPushButton(self.tr("Send"))
        self.send_button.setObjectName("primaryButton")
        self.cancel_button = QPushButton(self.tr("Cancel"))
        note = QLabel(QCoreApplication.translate("Chat", NOTE))
        note.setObjectName("composerNote")
        note.setWordWrap(True)
        buttons = QHBoxLayout()
        buttons.addWidget(note, 1)
        buttons.addWidget(self.cancel_button)
        buttons.addWidget(self.send_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(appearance.scale.px(0.5))
        column.addWidget(self.edit)
        column.addLayout(buttons)
        self.send_button.clicked.connect(self._send)
        self.cancel_button.clicked.connect(self.cancelled)
        self.setFocusProxy(self.edit)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            if event.type() is QEvent.Type.ShortcutOverride:
                event.accept()  # else it would stop an answer
                return True
            if event.type() is QEvent.Type.KeyPress:
                self.cancelled.emit()
                return True
        return super().eventFilter(watched, event)

    def _send(self) -> None:
        if text := self.edit.toPlainText().strip():
            self.sent.emit(text)
