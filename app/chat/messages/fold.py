"""Line that expands to a text."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtWidgets import QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.chat.messages.text_view import TextView
from app.theme.appearance import Appearance


class Fold(QWidget):
    """A button that shows and hides a text below it.

    Attributes:
        button: Expands and collapses the text.
        view: View of the text.
    """

    def __init__(
        self, view: TextView, appearance: Appearance, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._appearance = appearance
        self.view = view
        self.view.hide()
        self.button = QToolButton()
        self.button.setProperty("class", "action")
        self.button.setCheckable(True)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.toggled.connect(self._open)
        # A long title is cut off; else it would widen the column of messages.
        self.button.setMinimumWidth(1)
        self.button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self.button)
        self._inside = QVBoxLayout()
        self._inside.addWidget(self.view)
        self._column.addLayout(self._inside)

    def show_title(self, text: str, tip: str) -> None:
        """Set the text of the line, and its tooltip."""
        self.button.setText(text.replace("&", "&&"))  # a single one marks a shortcut
        self.button.setAccessibleName(text)
        self.button.setToolTip(tip)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale = self._appearance.scale
        side = scale.px(0.9)
        self.button.setIconSize(QSize(side, side))
        # Set apart from the answer that follows.
        self._inside.setContentsMargins(scale.px(1.7), 0, 0, scale.px(0.6))
        self._show_icon()
        self.view.set_font(self._appearance.scale.font())

    def _open(self, is_open: bool) -> None:
        self._show_icon()
        self.view.setVisible(is_open)

    def _show_icon(self) -> None:
        icon = "down" if self.button.isChecked() else "next"
        self.button.setIcon(self._appearance.icon(icon, self._appearance.theme.muted, 0.9))
