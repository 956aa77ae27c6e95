"""The diagnostics dialog: checks, and a report to save."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.i18n.engine_texts import (
    engine_text,
    error_text,
)
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.widgets.closing import close_by_key
from app.widgets.file_dialogs import choose_save_path
from app.widgets.live_label import LiveLabel
from app.widgets.table import RowTable

if TYPE_CHECKING:
    from medusa_core.api import Check

    Examine = Callable[[], tuple[Check, ...]]
    Compose = Callable[[tuple[Check, ...]], str]

FILE_NAME = "medusa-chat-report.txt"


class DiagnosticsDialog(QDialog):
    """Dialog with the results of all checks, and the report to save.

    Attributes:
        table: Results of the checks.
        preview: The report.
        note: Summary.

    Signals:
        looked: All checks have run.
    """

    looked = Signal()

    def __init__(
        self,
        examine: Examine,
        compose: Compose,
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("diagnostics")
        self._examine, self._compose = examine, compose
        self.tasks = Tasks(self)
        self.table = RowTable(
            self.tr("Checks"), (self.tr("Finding"), self.tr("Check"), self.tr("Works"))
        )
        self.preview = QPlainTextEdit()
        self.preview.setReadOnly(True)
        self.preview.setObjectName("reportText")
        self.preview.setAccessibleName(self.tr("Report"))
        self.note = LiveLabel()
        self.save_button = QPushButton(self.tr("Save report…"))
        self.copy_button = QPushButton(self.tr("Copy report"))
        self.again_button = QPushButton(self.tr("Check again"))
        for button in (self.save_button, self.copy_button):
            button.setEnabled(False)
        self._build(appearance)
        close_by_key(self)
        self.save_button.clicked.connect(self._ask_where)
        self.copy_button.clicked.connect(
            lambda: QGuiApplication.clipboard().setText(self.preview.toPlainText())
        )
        self.again_button.clicked.connect(self.look)

    def look(self) -> None:
        """Run the checks, and show their results."""
        if not self.tasks.is_running:
            self.tasks.start(self._run_checks())

    def save(self, path: Path) -> None:
        """Save the shown report."""
        try:
            path.write_text(self.preview.toPlainText(), encoding="utf-8")
        except OSError as error:
            self.note.setText(self.tr("It can't be saved: {0}").format(error.strerror))
            return
        self.note.setText(self.tr("Saved as {0}.").format(path))

    async def _run_checks(self) -> None:
        self.note.setText(self.tr("Looking…"))
        for button in (self.save_button, self.copy_button):
            button.setEnabled(False)
        checks = await asyncio.to_thread(self._examine)
        works, fails = self.tr("yes"), self.tr("no")
        self.table.show_rows(
            [
                (error_text(one), engine_text(one.name), works if one.ok else fails)
                for one in sorted(checks, key=lambda check: check.ok)
            ]
        )
        self.preview.setPlainText(self._compose(checks))
        failed = sum(not one.ok for one in checks)
        self.note.setText(
            self.tr("{0} of {1} checks found something wrong.").format(failed, len(checks))
            if failed
            else self.tr("All {0} checks are fine.").format(len(checks))
        )
        for button in (self.save_button, self.copy_button):
            button.setEnabled(True)
        self.looked.emit()

    def _build(self, appearance: Appearance) -> None:
        scale = appearance.scale
        promise = QLabel(
            self.tr(
                "This is all that the report holds. It has no conversations; names of home folders "
                "and tokens are taken out. It is sent nowhere: save or copy it yourself."
            )
        )
        promise.setWordWrap(True)
        buttons = QHBoxLayout()
        buttons.addWidget(self.again_button)
        buttons.addStretch(1)
        buttons.addWidget(self.copy_button)
        buttons.addWidget(self.save_button)
        close = QPushButton(self.tr("Close"))
        close.clicked.connect(self.reject)
        buttons.addWidget(close)
        column = QVBoxLayout(self)
        column.addWidget(self.table, 1)
        column.addWidget(promise)
        column.addWidget(self.preview, 1)
        column.addWidget(self.note)
        column.addLayout(buttons)
        self.resize(scale.px(60), scale.px(44))

    def _ask_where(self) -> None:
        path, _ = choose_save_path(self, self.tr("Save report"), FILE_NAME)
        if path:
            self.save(path)
