"""Editor of the next prompt."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QMimeData, QSize, Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QFocusEvent, QInputMethodEvent, QKeyEvent, QTextCursor
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chat.compose.attachment_bar import AttachmentBar
from app.chat.compose.file_reader import FileReader
from app.state.chat import ChatState, Draft
from app.theme.appearance import Appearance
from app.widgets.dropping import is_model
from app.widgets.file_dialogs import choose_files
from medusa_core.api import Attachment

MAX_LINES = 9
# Longer pasted texts become a file of the message: the editor would have to lay all of it out.
LONG_TEXT_CHARS = 8_000
# What an input method takes while it composes a word: they choose one, or turn a page of choices.
_COMPOSING_KEYS = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_PageUp, Qt.Key.Key_PageDown)


class QueuedRow(QWidget):
    """Shows the queued prompt; hidden if there is none.

    Attributes:
        edit_button: Moves the queued prompt back into the composer.
        cancel_button: Discards the queued prompt.

    Signals:
        edit_requested: The user wants to edit the queued prompt.
        cancelled: The user discarded the queued prompt.
    """

    edit_requested = Signal()
    cancelled = Signal()

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._label = QLabel()
        self._label.setObjectName("composerNote")
        self._label.setTextFormat(Qt.TextFormat.PlainText)
        self._label.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self.edit_button = QPushButton(self.tr("Edit"))
        self.cancel_button = QPushButton(self.tr("Cancel"))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(appearance.scale.px(0.5))
        row.addWidget(self._label, 1)
        row.addWidget(self.edit_button)
        row.addWidget(self.cancel_button)
        self.edit_button.clicked.connect(self.edit_requested)
        self.cancel_button.clicked.connect(self.cancelled)
        self.hide()

    def show_queued(self, queued: Draft | None) -> None:
        """Show the queued prompt."""
        self.setVisible(queued is not None)
        if queued is not None:
            words = " ".join(queued.text.split()) or queued.attachments[0].name
            shown_text = self.tr("Will be sent after this answer: {words}").format(
                words=words[:200]
            )
            self._label.setText(shown_text)
            self._label.setAccessibleName(shown_text)


class PromptEdit(QTextEdit):
    """Plain-text editor that grows with its text.

    Signals:
        submitted: Enter was pressed.
        focused: The editor got (True) or lost the focus.
        scrolled: The user wants to scroll the conversation by pages, down if positive.
        files_pasted: The user pasted files (a list of `Path`).
        long_text_pasted: The user pasted a text long enough to be attached as a file.
    """

    files_pasted = Signal(object)
    long_text_pasted = Signal(str)
    submitted = Signal()
    focused = Signal(bool)
    scrolled = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._is_composing = False
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setAccessibleName(self.tr("Message"))
        self.setAccessibleDescription(self.tr("Enter sends, Shift and Enter start a new line."))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(2)
        self.document().documentLayout().documentSizeChanged.connect(self.fit)

    def fit(self) -> None:
        """Fit the height to the text, up to a limit."""
        line = self.fontMetrics().lineSpacing()
        wanted = math.ceil(self.document().size().height())
        highest = line * MAX_LINES + 4
        self.setFixedHeight(max(line + 4, min(wanted, highest)))
        self.setVerticalScrollBarPolicy(
            Qt.ScrollBarPolicy.ScrollBarAsNeeded
            if wanted > highest
            else Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        )

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._is_composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if self._is_composing and event.key() in _COMPOSING_KEYS:
            return  # the key is for the input method; some platforms hand it on as well
        is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if is_enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.submitted.emit()
            return
        if event.key() in (Qt.Key.Key_PageUp, Qt.Key.Key_PageDown):
            self.scrolled.emit(1 if event.key() == Qt.Key.Key_PageDown else -1)
            return
        super().keyPressEvent(event)

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if files_of(event.mimeData()):
            event.ignore()  # the window knows what to do with each kind of file
        else:
            super().dragEnterEvent(event)

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return bool(files_of(source)) or super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if files := files_of(source):
            self.files_pasted.emit(files)
        elif len(source.text()) > LONG_TEXT_CHARS:
            self.long_text_pasted.emit(source.text())
        else:
            super().insertFromMimeData(source)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focused.emit(True)

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focused.emit(False)


class Composer(QFrame):
    """Editor of the next prompt, its attachments, and the Send or Stop button.

    Attributes:
        edit: The text.
        files: Attached files.
        reader: Reads files to attach.
        queued_row: The prompt queued until the answer ends.
        attach_button: Opens a file dialog.
        button: Send, or Stop while an answer is generated.

    Signals:
        send_requested: The user wants to send the text; it stays until `clear`.
        queue_requested: The user wants to send the text after the current answer.
        stop_requested: The user wants to stop the answer.
        model_attached: The user attached a model file (its `Path`).
    """

    send_requested = Signal(str)
    queue_requested = Signal()
    stop_requested = Signal()
    model_attached = Signal(object)

    def __init__(
        self, state: ChatState, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("composer")
        self._state = state
        self._appearance = appearance
        self.edit = PromptEdit(self)
        self.button = QToolButton(self)
        self.button.setObjectName("sendButton")
        self.attach_button = QToolButton(self)
        self.attach_button.setProperty("class", "action")
        self.attach_button.setAccessibleName(self.tr("Attach files"))
        self.attach_button.setToolTip(self.tr("Attach text, code, PDF or DOCX"))
        self.files = AttachmentBar(appearance, is_removable=True)
        self.reader = FileReader()
        self.queued_row = QueuedRow(appearance)
        self._row = QHBoxLayout()
        self._build()
        self.offer_to(continues_text=False)
        self.attach_button.clicked.connect(self.choose_files)
        self.reader.read.connect(lambda session_id, read: state.attach(read, session_id=session_id))
        self.reader.finished.connect(self._refresh)
        self.files.removed.connect(state.detach)
        self.files.unpacked.connect(self.edit.insertPlainText)
        self.queued_row.edit_requested.connect(state.unqueue)
        self.queued_row.cancelled.connect(state.take_queued)
        state.draft_changed.connect(self._show_draft)
        state.queued_changed.connect(lambda: self.queued_row.show_queued(state.queued))
        state.phase_changed.connect(self._refresh)
        self.edit.textChanged.connect(lambda: state.write(self.edit.toPlainText()))
        self.edit.files_pasted.connect(self.attach)
        self.edit.long_text_pasted.connect(self._attach_text)
        self.edit.submitted.connect(self.submit)
        self.edit.focused.connect(self._show_focus)
        self.button.clicked.connect(self._click)
        self.setFocusProxy(self.edit)
        self.restyle()

    def attach(self, paths: Sequence[Path]) -> None:
        """Read and attach files; offer to load model files instead."""
        models = [path for path in paths if is_model(path)]
        if files := [path for path in paths if path not in models]:
            self.reader.start(self._state.conversation.session_id, files)
            self._refresh()
        if models:
            self.model_attached.emit(models[0])

    def add_button(self, button: QToolButton) -> None:
        """Add a button after the one that attaches files."""
        self._row.insertWidget(1, button, 0, Qt.AlignmentFlag.AlignBottom)

    def quote(self, text: str) -> None:
        """Append a quotation to the draft."""
        quoted = "\n".join(f"> {line}".rstrip() for line in text.strip().split("\n"))
        written = self._state.draft.text.rstrip()
        self._state.write(f"{written}\n\n{quoted}\n\n" if written else f"{quoted}\n\n")
        self.setFocus()

    def offer_to(self, continues_text: bool) -> None:
        """Adapt the placeholder to a base model or a chat model."""
        hint = self.tr("Continues your text") if continues_text else self.tr("Ask something…")
        self.edit.setPlaceholderText(hint)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self._row.setContentsMargins(scale.px(0.4), scale.px(0.5), scale.px(0.5), scale.px(0.5))
        self.attach_button.setIcon(
            self._appearance.icon("attach", self._appearance.theme.muted, 1.2)
        )
        self.attach_button.setIconSize(QSize(scale.px(1.2), scale.px(1.2)))
        self.files.restyle()
        for above in (self.files, self.queued_row):
            above.setContentsMargins(scale.px(0.8), scale.px(0.5), scale.px(0.6), 0)
        self.button.setIconSize(QSize(scale.px(1.25), scale.px(1.25)))
        self.edit.fit()
        self._refresh()

    def submit(self) -> None:
        """Request to send or queue the draft, unless it is empty or sending is disabled."""
        state = self._state
        if state.lock_reason or self.is_reading or not state.draft:
            return
        if state.is_busy:
            self.queue_requested.emit()
        else:
            self.send_requested.emit(state.draft.text)

    @property
    def is_reading(self) -> bool:
        """Whether files of the shown conversation are being read."""
        return self.reader.is_reading(self._state.conversation.session_id)

    def _build(self) -> None:
        row = self._row
        row.addWidget(self.attach_button, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.edit, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self.button, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.queued_row)
        column.addWidget(self.files)
        column.addLayout(row)

    def choose_files(self) -> None:
        """Open a file dialog and attach the selected files."""
        if words := choose_files(self, self.tr("Attach files")):
            self.attach(words)

    def _show_draft(self) -> None:
        """Show the draft, unless the editor shows it already."""
        draft = self._state.draft
        if self.edit.toPlainText() != draft.text:
            self.edit.setPlainText(draft.text)
            self.edit.moveCursor(QTextCursor.MoveOperation.End)
        if self.files.attachments != draft.attachments:
            self.files.show_all(draft.attachments)
        self._refresh()

    def _attach_text(self, text: str) -> None:
        name = self.tr("Pasted text")
        self._state.attach(Attachment(name, "text/plain", text, len(text.encode())))

    def _click(self) -> None:
        if self._state.is_busy:
            self.stop_requested.emit()
        else:
            self.submit()

    def _refresh(self) -> None:
        theme, is_busy = self._appearance.theme, self._state.is_busy
        is_ready = bool(self._state.draft) and not self._state.lock_reason and not self.is_reading
        enabled = is_busy or is_ready
        ink = theme.on_accent if enabled else theme.muted
        self.button.setEnabled(enabled)
        self.button.setIcon(self._appearance.icon("stop" if is_busy else "send", ink, 1.25))
        self.button.setAccessibleName(self.tr("Stop") if is_busy else self.tr("Send"))
        default = self.tr("Stop the answer (Esc)") if is_busy else self.tr("Send (Enter)")
        if self.is_reading:
            default = self.tr("A file is being read")
        self.button.setToolTip(self._state.lock_reason or default)

    def _show_focus(self, has_focus: bool) -> None:
        self.setProperty("focused", has_focus)
        # Qt looks at properties in style sheets only when the style is set anew.
        self.style().unpolish(self)
        self.style().polish(self)


def files_of(source: QMimeData) -> list[Path]:
    """Return the local files in dropped or pasted data; empty for links and text."""
    return [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]
