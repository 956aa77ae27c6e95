"""What can be done with a prompt: edit it, move between its versions."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QHBoxLayout, QToolButton, QWidget

from app.chat.messages.copy_button import CopyButton
from app.chat.messages.version_row import VersionRow
from app.theme.appearance import Appearance


class PromptActions(QWidget):
    """The row under a prompt.

    Attributes:
        copy_button: Copies it.
        edit_button: Writes it anew.
        versions: Moves between its versions.

    Signals:
        copy_requested: It is to go to the clipboard.
        edit_requested: It is to be written anew.
    """

    copy_requested = Signal()
    edit_requested = Signal()

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self.versions = VersionRow(self.tr("message"), appearance)
        self.copy_button = CopyButton(self.tr("Copy the message"), appearance)
        self.copy_button.clicked.connect(self.copy_requested)
        self.edit_button = QToolButton()
        self.edit_button.setProperty("class", "action")
        self.edit_button.setAccessibleName(self.tr("Edit"))
        self.edit_button.setToolTip(self.tr("Edit and send again; this version stays"))
        self.edit_button.clicked.connect(self.edit_requested)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(self.versions)
        row.addWidget(self.copy_button)
        row.addWidget(self.edit_button)
        self.restyle()

    def restyle(self) -> None:
        """Take the sizes and colours of the theme."""
        side = self._appearance.scale.px(1.0)
        self.edit_button.setIcon(self._appearance.icon("edit", self._appearance.theme.muted, 1.0))
        self.edit_button.setIconSize(QSize(side, side))
        self.copy_button.restyle()
        self.versions.restyle()
