"""Button that copies and confirms it."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QSize, Qt, QTimer
from PySide6.QtWidgets import QToolButton, QWidget

from app.i18n.words import QT_TRANSLATE_NOOP
from app.theme.appearance import Appearance

COPIED = QT_TRANSLATE_NOOP("Chat", "Copied")
_SHOWN_MS = 1_500


class CopyButton(QToolButton):
    """Button that copies; afterwards it shows "Copied" for a moment."""

    def __init__(
        self, tooltip: str, appearance: Appearance, text: str = "", parent: QWidget | None = None
    ) -> None:
        """Make a button.

        Args:
            tooltip: Tooltip that names what is copied.
            appearance: Theme and sizes.
            text: Label beside the icon; may be empty.
            parent: Parent widget.
        """
        super().__init__(parent)
        self._appearance = appearance
        self._usual = text
        self.setProperty("class", "action")
        self.setToolTip(tooltip)
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self._end = QTimer(self)
        self._end.setSingleShot(True)
        self._end.setInterval(_SHOWN_MS)
        self._end.timeout.connect(self._show_usual)
        self.clicked.connect(self.announce_copied)
        self._show_usual()

    def announce_copied(self) -> None:
        """Show "Copied" for a moment."""
        self.setText(QCoreApplication.translate("Chat", COPIED))
        self.setAccessibleName(QCoreApplication.translate("Chat", COPIED))
        self._end.start()
        self.restyle()

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        side = self._appearance.scale.px(1.0)
        icon = "check" if self._end.isActive() else "copy"
        self.setIcon(self._appearance.icon(icon, self._appearance.theme.muted, 1.0))
        self.setIconSize(QSize(side, side))

    def _show_usual(self) -> None:
        self.setText(self._usual)
        self.setAccessibleName(self.tr("Copy"))
        self.restyle()
        self.adjustSize()
