"""A message that waits for the answer that is being written."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QSizePolicy, QWidget

from app.state.chat import Draft
from app.theme.appearance import Appearance


class QueuedRow(QWidget):
    """Says what waits; hidden where nothing does.

    Attributes:
        edit_button: Brings it back into the composer.
        cancel_button: Forgets it.

    Signals:
        edit_requested: It belongs back into the composer.
        cancelled: It isn't to be sent.
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
        """Say what waits."""
        self.setVisible(queued is not None)
        if queued is not None:
            words = " ".join(queued.text.split()) or queued.attachments[0].name
            shown_text = self.tr("Will be sent after this answer: {words}").format(
                words=words[:200]
            )
            self._label.setText(shown_text)
            self._label.setAccessibleName(shown_text)
