"""Settings page of files: folders, their sizes, export and diagnostics."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QLineEdit, QPushButton, QWidget

from app.desktop.folders import show_in_files
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from app.widgets.flow_layout import FlowLayout
from app.widgets.sizes import on_disk


class StoragePage(QWidget):
    """Settings page of files, with a row per folder.

    Signals:
        diagnostics_requested: The user wants to open the diagnostics.
        export_requested: The user wants to export settings.
        import_requested: The user wants to import settings.
    """

    diagnostics_requested = Signal()
    export_requested = Signal()
    import_requested = Signal()

    def __init__(self, folders: Mapping[str, Path], keys: QWidget, appearance: Appearance) -> None:
        """Create the page.

        Args:
            folders: Listed folders by name.
            keys: Editors of this page's settings.
            appearance: Theme and sizes.
        """
        super().__init__()
        self.tasks = Tasks(self)
        self._folders = dict(folders)
        self.size_labels: dict[Path, QLabel] = {}
        scale = appearance.scale
        self._grid = QGridLayout(self)
        self._grid.setVerticalSpacing(scale.px(0.5))
        self._grid.setHorizontalSpacing(scale.px(0.8))
        self._grid.setColumnStretch(1, 1)
        promise = QLabel(
            self.tr(
                "Medusa Chat sends nothing by itself: no statistics, no error reports, no search "
                "for updates. It asks Hugging Face when you search for or download a model."
            )
        )
        promise.setWordWrap(True)
        self._grid.addWidget(promise, 0, 0, 1, 4)
        self._grid.addWidget(keys, 1, 0, 1, 4)
        for name, folder in self._folders.items():
            self._add(name, folder)
        self._add_buttons()
        self._grid.setRowStretch(self._grid.rowCount(), 1)

    def measure(self) -> None:
        """Measure the folders in the background and show their sizes."""
        if not self.tasks.is_running:
            self.tasks.start(self._measure())

    async def _measure(self) -> None:
        for folder, label in self.size_labels.items():
            label.setText(on_disk(await asyncio.to_thread(size_of, folder)))

    def _add(self, name: str, folder: Path) -> None:
        row = self._grid.rowCount()
        line = QLineEdit(str(folder))
        line.setReadOnly(True)
        line.setAccessibleName(name)
        line.setCursorPosition(0)
        size = self.size_labels[folder] = QLabel("…")
        size.setObjectName("notice")
        button = QPushButton(self.tr("Open folder"))
        button.setAccessibleName(self.tr("Open folder: {0}").format(name))
        button.clicked.connect(lambda: show_in_files(folder))
        self._grid.addWidget(QLabel(name), row, 0)
        self._grid.addWidget(line, row, 1)
        self._grid.addWidget(size, row, 2)
        self._grid.addWidget(button, row, 3)

    def _add_buttons(self) -> None:
        """Add the buttons for export, import and diagnostics."""
        row = FlowLayout(self.fontMetrics().height() // 2)
        for text, requested in (
            (self.tr("Export settings…"), self.export_requested),
            (self.tr("Import settings…"), self.import_requested),
            (self.tr("Diagnostics and report…"), self.diagnostics_requested),
        ):
            button = QPushButton(text)
            button.clicked.connect(requested)
            row.addWidget(button)
        self._grid.addLayout(row, self._grid.rowCount(), 0, 1, 4)


def size_of(folder: Path) -> int:
    """Return the total bytes of files in a folder; unreadable ones are skipped."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if not path.is_symlink() and path.is_file():
                total += path.stat().st_size
    return total
