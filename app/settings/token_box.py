"""Editor of the Hub token, stored at Hugging Face's default place."""

from __future__ import annotations

import asyncio

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QLineEdit, QPushButton, QVBoxLayout, QWidget

from app.i18n.engine_texts import error_text
from app.state.tasks import Tasks
from app.widgets.flow_layout import FlowLayout
from app.widgets.live_label import LiveLabel
from medusa_core.api import HubSettings, has_saved_token, remove_user_token, save_user_token, whoami
from medusa_core.errors import MedusaError


class TokenBox(QWidget):
    """Sets or removes the Hub token, which is never displayed.

    Attributes:
        edit: Field for a new token.
        note: Whether a token is stored, and the result of its check.

    Signals:
        changed: The stored token changed; empty if removed.
    """

    changed = Signal(str)

    def __init__(self, settings: HubSettings) -> None:
        super().__init__()
        self._settings = settings
        self._tasks = Tasks(self)
        self.edit = QLineEdit()
        self.edit.setEchoMode(QLineEdit.EchoMode.Password)
        self.edit.setAccessibleName(self.tr("Hub token"))
        self.save_button = QPushButton(self.tr("Save token"))
        self.remove_button = QPushButton(self.tr("Remove"))
        self.check_button = QPushButton(self.tr("Check"))
        self.check_button.setToolTip(self.tr("Asks Hugging Face once whose token this is."))
        self.note = LiveLabel()
        row = FlowLayout(self.fontMetrics().height() // 2)
        for button in (self.save_button, self.remove_button, self.check_button):
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.edit)
        column.addLayout(row)
        column.addWidget(self.note)
        self.edit.textChanged.connect(lambda _text: self._refresh())
        self.save_button.clicked.connect(self._save)
        self.remove_button.clicked.connect(self._remove)
        self.check_button.clicked.connect(self._check)
        self._show_state()

    def use(self, settings: HubSettings) -> None:
        """Set the Hub settings for checks."""
        self._settings = settings
        self._refresh()

    def _show_state(self) -> None:
        has_token = bool(self._settings.token)
        self.edit.setPlaceholderText(
            self.tr("A token is saved") if has_token else self.tr("No token is saved")
        )
        self._refresh()

    def _refresh(self) -> None:
        is_typed = bool(self.edit.text().strip())
        self.save_button.setEnabled(is_typed)
        self.remove_button.setEnabled(has_saved_token())
        self.check_button.setEnabled(is_typed or bool(self._settings.token))

    def _save(self) -> None:
        token = self.edit.text().strip()
        try:
            save_user_token(token)
        except OSError as error:
            self.note.setText(self.tr("The token can't be saved: {0}").format(error.strerror))
            return
        self.edit.clear()
        self.note.setText(self.tr("Token saved; only you can read it."))
        self._set_token(token)

    def _remove(self) -> None:
        try:
            remove_user_token()
        except OSError as error:
            self.note.setText(self.tr("The token can't be removed: {0}").format(error.strerror))
            return
        self.note.setText(self.tr("Token removed."))
        self._set_token("")

    def _set_token(self, token: str) -> None:
        self.changed.emit(token)
        self._show_state()

    def _check(self) -> None:
        self._tasks.start(self._ask(self.edit.text().strip() or self._settings.token))

    async def _ask(self, token: str) -> None:
        self.note.setText(self.tr("Asking Hugging Face…"))
        try:
            name = await asyncio.to_thread(whoami, self._settings, token)
        except MedusaError as error:
            self.note.setText(error_text(error))
            return
        self.note.setText(self.tr("The token works: it is {0}’s.").format(name))
