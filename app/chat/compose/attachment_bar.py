"""Chips of a message's attached files."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QSize, Signal
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.chat.messages.text_view import cut_for_view
from app.i18n.numbers import Number
from app.theme.appearance import Appearance
from app.widgets.flow_layout import FlowLayout
from medusa_core.api import Attachment

# English text has about four characters a token; the meter under the composer counts exactly.
_CHARS_A_TOKEN = 4
_NAME_CHARS = 40


class AttachmentBar(QWidget):
    """Chips of attached files; hidden if there are none.

    Attributes:
        attachments: The files in display order.

    Signals:
        removed: The user removed this file (an `Attachment`).
        unpacked: The user turned an attachment into message text (the `str`).
    """

    removed = Signal(object)
    unpacked = Signal(str)

    def __init__(
        self, appearance: Appearance, *, is_removable: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self._is_removable = is_removable
        self.attachments: tuple[Attachment, ...] = ()
        self._chips: list[QFrame] = []
        self._flow = FlowLayout(appearance.scale.px(0.4), self)
        self.hide()

    def show_all(self, attachments: tuple[Attachment, ...]) -> None:
        """Replace the displayed files."""
        for chip in self._chips:
            self._flow.removeWidget(chip)
            chip.hide()
            chip.deleteLater()
        self.attachments = attachments
        self._chips = [self._chip(one) for one in attachments]
        for chip in self._chips:
            self._flow.addWidget(chip)
        self.setVisible(bool(attachments))
        self._flow.invalidate()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        self.show_all(self.attachments)

    def show_text(self, attachment: Attachment) -> None:
        """Show the text of a file as the model gets it."""
        dialog = QDialog(self)
        dialog.setWindowTitle(attachment.name)
        dialog.resize(self._appearance.scale.px(44), self._appearance.scale.px(32))
        view = QPlainTextEdit(cut_for_view(attachment.text))
        view.setReadOnly(True)
        view.setAccessibleName(attachment.name)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(dialog.reject)
        if self._is_removable:
            unpack = buttons.addButton(
                self.tr("Put the text into the message"), QDialogButtonBox.ButtonRole.ActionRole
            )
            unpack.clicked.connect(lambda: self._unpack(attachment, dialog))
        column = QVBoxLayout(dialog)
        column.addWidget(view)
        column.addWidget(buttons)
        dialog.open()

    def _unpack(self, attachment: Attachment, dialog: QDialog) -> None:
        dialog.accept()
        self.removed.emit(attachment)
        self.unpacked.emit(attachment.text)

    def _chip(self, attachment: Attachment) -> QFrame:
        chip = QFrame(self)
        chip.setObjectName("chip")
        row = QHBoxLayout(chip)
        gap = self._appearance.scale.px(0.25)
        row.setContentsMargins(gap, 0, gap, 0)
        row.setSpacing(0)
        name = QToolButton()
        name.setProperty("class", "action")
        words = chip_text(attachment)
        name.setText(words.replace("&", "&&"))  # one alone is no letter but a shortcut
        name.setToolTip(self.tr("Show what the model reads of it"))
        name.setAccessibleName(words)
        name.clicked.connect(lambda: self.show_text(attachment))
        row.addWidget(name)
        if self._is_removable:
            row.addWidget(self._remove_button(attachment))
        return chip

    def _remove_button(self, attachment: Attachment) -> QToolButton:
        button = QToolButton()
        button.setProperty("class", "action")
        words = self.tr("Remove {name}").format(name=attachment.name)
        button.setToolTip(words)
        button.setAccessibleName(words)
        side = self._appearance.scale.px(0.8)
        button.setIcon(self._appearance.icon("close", self._appearance.theme.muted, 0.8))
        button.setIconSize(QSize(side, side))
        button.clicked.connect(lambda: self.removed.emit(attachment))
        return button


def chip_text(attachment: Attachment) -> str:
    """Return a chip's text: file name and estimated number of tokens."""
    name = attachment.name
    if len(name) > _NAME_CHARS:
        name = f"{name[: _NAME_CHARS // 2]}…{name[-_NAME_CHARS // 2 :]}"
    num_tokens = -(-len(attachment.text) // _CHARS_A_TOKEN)
    return QCoreApplication.translate("Chat", "{0} · ≈ {1:,} tokens").format(
        name, Number(num_tokens)
    )
