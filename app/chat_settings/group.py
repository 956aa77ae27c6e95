"""A collapsible group of settings."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QLabel, QToolButton, QVBoxLayout, QWidget

from app.theme.appearance import Appearance


class Group(QWidget):
    """A collapsible section with a heading.

    Attributes:
        heading: Button that expands and collapses the section.
        body: Content of the section.

    Signals:
        opened: The section was expanded or collapsed.
    """

    opened = Signal(bool)

    def __init__(
        self, title: str, appearance: Appearance, *, is_open: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self.heading = QToolButton()
        self.heading.setObjectName("groupHeading")
        self.heading.setText(title)
        self.heading.setAccessibleName(title)
        self.heading.setCheckable(True)
        self.heading.setChecked(is_open)
        self.heading.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.heading.toggled.connect(self._open)
        self.body = QWidget()
        self.column = QVBoxLayout(self.body)
        self._note = QLabel()
        self._note.setProperty("class", "muted")
        self._note.setWordWrap(True)
        self._note.hide()
        self.column.addWidget(self._note)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.setSpacing(0)
        outer.addWidget(self.heading)
        outer.addWidget(self.body)
        self.body.setVisible(is_open)
        self.restyle()

    @property
    def is_open(self) -> bool:
        """Whether the section is expanded."""
        return self.heading.isChecked()

    @property
    def note(self) -> str:
        """Note above the settings."""
        return self._note.text()

    def add(self, widget: QWidget) -> None:
        """Add a widget to the section."""
        self.column.addWidget(widget)

    def set_note(self, note: str) -> None:
        """Set the note above the settings, such as why some are disabled."""
        self._note.setText(note)
        self._note.setVisible(bool(note))

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        self.column.setContentsMargins(scale.px(0.3), 0, 0, scale.px(0.6))
        self.column.setSpacing(scale.px(0.3))
        name = "chevron" if self.is_open else "forward"
        icon = self._appearance.icon(name, self._appearance.theme.muted, 0.9)
        self.heading.setIcon(icon)
        self.heading.setIconSize(QSize(scale.px(0.9), scale.px(0.9)))

    def _open(self, is_open: bool) -> None:
        self.body.setVisible(is_open)
        self.restyle()
        self.opened.emit(is_open)
