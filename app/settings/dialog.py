"""The settings dialog; changes take effect immediately."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QListWidget,
    QScrollArea,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.settings.editors import value_text
from app.theme.appearance import Appearance
from app.widgets.closing import close_by_key


class SettingsDialog(QDialog):
    """Settings pages with a list of their names.

    Attributes:
        names: List of page names.
        pages: Pages in the order of the list.
    """

    def __init__(
        self,
        pages: Sequence[tuple[str, QWidget]],
        appearance: Appearance,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("settings")
        scale = appearance.scale
        self.names = QListWidget()
        self.names.setObjectName("settingsPages")
        self.names.setAccessibleName(self.tr("Pages"))
        self.pages = QStackedWidget()
        self._keys = [name for name, _ in pages]
        for name, page in pages:
            self.names.addItem(value_text(name))
            area = QScrollArea()
            area.setWidgetResizable(True)
            area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
            area.setWidget(page)
            self.pages.addWidget(area)
        row = QHBoxLayout()
        row.addWidget(self.names)
        row.addWidget(self.pages, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.button(QDialogButtonBox.StandardButton.Close).setText(self.tr("Close"))
        buttons.rejected.connect(self.reject)
        column = QVBoxLayout(self)
        column.addLayout(row, 1)
        column.addWidget(buttons)
        self.names.currentRowChanged.connect(self.pages.setCurrentIndex)
        self.names.setCurrentRow(0)
        self.names.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.names.setFixedWidth(self.names.sizeHintForColumn(0) + scale.px(1.4))
        close_by_key(self)
        self.resize(scale.px(56), scale.px(36))

    def open_page(self, name: str) -> None:
        """Show a page by its English name."""
        self.names.setCurrentRow(self._keys.index(name))
