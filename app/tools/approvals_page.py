"""Calls that are always approved, to be revoked."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QListWidget, QPushButton, QVBoxLayout, QWidget

from app.i18n.engine_texts import error_text
from app.tools.window_tools import WindowTools
from app.tools.words import builtin_words
from app.widgets.live_label import LiveLabel
from app.widgets.qt_text import with_visible_controls
from medusa_core.api import HOST_SEPARATOR, approval_key
from medusa_core.errors import MedusaError


class ApprovalsPage(QWidget):
    """List of the approvals that hold for all conversations.

    Attributes:
        labels: The approved calls.
        revoke_button: Revokes the selected one.
        note: Why it can't be revoked; hidden if there is nothing to say.
    """

    def __init__(self, tools: WindowTools) -> None:
        super().__init__()
        self._tools = tools
        self._keys: tuple[str, ...] = ()
        self.labels = QListWidget()
        self.labels.setAccessibleName(self.tr("Calls that are always approved"))
        self.revoke_button = QPushButton(self.tr("Revoke"))
        self.note = LiveLabel()
        self.note.hide()
        intro = QLabel(
            self.tr(
                "These calls run without a question. If a server's command line, or a tool's name, "
                "description or arguments change, you are asked again."
            )
        )
        intro.setWordWrap(True)
        self._empty = QLabel(self.tr("No call is always approved."))
        self._empty.setProperty("class", "muted")
        column = QVBoxLayout(self)
        for widget in (intro, self._empty, self.labels, self.note):
            column.addWidget(widget)
        column.addWidget(self.revoke_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.revoke_button.clicked.connect(self._revoke)
        self.labels.currentRowChanged.connect(self._show_button)
        self.refresh()

    def refresh(self) -> None:
        """Show the approvals as they are now."""
        listed = self._tools.toolbox.approvals.always()
        row = self.labels.currentRow()
        self._keys = tuple(key for key, _ in listed)
        unnamed = self.tr("A call that an earlier version approved")
        self.labels.clear()
        self.labels.addItems([self._display_name(*pair) or unnamed for pair in listed])
        self.labels.setCurrentRow(min(row, len(listed) - 1))
        self._empty.setVisible(not listed)
        self._show_button()

    def _display_name(self, key: str, label: str) -> str:
        """Return the stored label of an approval, that of a built-in tool in the user's language.

        Only the key tells a built-in tool from a server of the same name.
        """
        for status in self._tools.toolbox.builtins():
            name, dot, host = label.partition(HOST_SEPARATOR)
            tool = status.builtin.tool
            if name == status.builtin.label and key == approval_key(None, tool, host):
                label = f"{builtin_words(status.builtin)[0]}{dot}{host}"
                break
        return with_visible_controls(label)

    def _show_button(self) -> None:
        self.revoke_button.setEnabled(self.labels.currentRow() >= 0)

    def _revoke(self) -> None:
        self.note.hide()
        try:
            self._tools.toolbox.approvals.revoke(self._keys[self.labels.currentRow()])
        except MedusaError as error:
            self.note.setText(error_text(error))
            self.note.show()
        self.refresh()
