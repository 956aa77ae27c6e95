"""A settings page created from declarations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QLabel, QWidget

from app.settings.declaration import SettingsPage
from app.settings.editors import Editor, editor_of, value_text
from app.settings.preferences import DECLARATIONS
from app.settings.store import SettingsStore
from app.theme.appearance import Appearance


class KeysPage(QWidget):
    """One row per setting: name, editor, and description.

    Attributes:
        editors: Editors by name of the setting.
    """

    def __init__(
        self,
        page: SettingsPage,
        store: SettingsStore,
        appearance: Appearance,
        own: Mapping[str, Editor] | None = None,
    ) -> None:
        """Create the page.

        Args:
            page: Page whose settings are shown.
            store: Store of the settings.
            appearance: Theme and sizes.
            own: Custom editors by name of the setting.
        """
        super().__init__()
        self._store = store
        self.editors: dict[str, Editor] = {}
        scale = appearance.scale
        self.grid = QGridLayout(self)
        self.grid.setVerticalSpacing(scale.px(0.4))
        self.grid.setHorizontalSpacing(scale.px(1.2))
        self.grid.setColumnStretch(1, 1)
        for declared in DECLARATIONS.values():
            if declared.page is page:
                editor = (own or {}).get(declared.name) or editor_of(
                    declared, partial(self._choose, declared.name)
                )
                editor.show(getattr(store.values, declared.name))
                self.editors[declared.name] = editor
                self.add_row(
                    value_text(declared.label), editor.widget, value_text(declared.sentence)
                )
        store.changed.connect(self._follow)

    def add_row(self, label: str, widget: QWidget, sentence: str) -> None:
        """Append a row."""
        row = self.grid.rowCount()
        name = QLabel(label)
        name.setBuddy(widget)
        self.grid.addWidget(name, row, 0, Qt.AlignmentFlag.AlignLeft)
        self.grid.addWidget(widget, row, 1, Qt.AlignmentFlag.AlignVCenter)
        note = QLabel(sentence)
        note.setObjectName("notice")
        note.setWordWrap(True)
        self.grid.addWidget(note, row + 1, 1)

    def end(self) -> None:
        """Add stretch below the rows, which keeps them at the top."""
        self.grid.setRowStretch(self.grid.rowCount(), 1)

    def _choose(self, name: str, value: Any) -> None:
        self._store.set(**{name: value})

    def _follow(self, name: str) -> None:
        if name in self.editors:
            self.editors[name].show(getattr(self._store.values, name))
