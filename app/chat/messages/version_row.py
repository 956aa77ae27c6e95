"""Selector of a message's versions: ‹ 2/3 ›."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QHBoxLayout, QLabel, QToolButton, QWidget

from app.theme.appearance import Appearance


class VersionRow(QWidget):
    """Selects among a message's versions; hidden if there is only one.

    Signals:
        chosen: The user selected another version (its index).
    """

    chosen = Signal(int)

    def __init__(self, what: str, appearance: Appearance, parent: QWidget | None = None) -> None:
        """Make a row.

        Args:
            what: Kind of the message, such as "answer".
            appearance: Theme and sizes.
            parent: Parent widget.
        """
        super().__init__(parent)
        self._appearance = appearance
        self._what = what
        self._place = 0
        self.previous_button = self._button(
            self.tr("Previous version of this {0}").format(what), -1
        )
        self.next_button = self._button(self.tr("Next version of this {0}").format(what), 1)
        self._label = QLabel(self)
        self._label.setProperty("class", "figure")
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for widget in (self.previous_button, self._label, self.next_button):
            row.addWidget(widget)
        self.hide()
        self.restyle()

    @property
    def text(self) -> str:
        """The shown text, such as "2/3"; empty if there is only one version."""
        return self._label.text()

    def show_version(self, place: int, num_versions: int) -> None:
        """Show the index of the current version, counted from 0."""
        self._place = place
        many = num_versions > 1
        self._label.setText(f"{place + 1}/{num_versions}" if many else "")
        self._label.setAccessibleName(
            self.tr("Version {0} of {1} of this {2}").format(place + 1, num_versions, self._what)
        )
        self.previous_button.setEnabled(place > 0)
        self.next_button.setEnabled(place + 1 < num_versions)
        self.setVisible(many)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        side = self._appearance.scale.px(1.0)
        for button, icon in ((self.previous_button, "previous"), (self.next_button, "next")):
            button.setIcon(self._appearance.icon(icon, self._appearance.theme.muted, 1.0))
            button.setIconSize(QSize(side, side))

    def _button(self, name: str, step: int) -> QToolButton:
        button = QToolButton(self)
        button.setProperty("class", "action")
        button.setAccessibleName(name)
        button.setToolTip(name)
        button.clicked.connect(lambda: self.chosen.emit(self._place + step))
        return button
