"""Button whose text is wrapped."""

from __future__ import annotations

from PySide6.QtCore import QRect, QSize, Qt
from PySide6.QtGui import QPaintEvent, QPalette
from PySide6.QtWidgets import (
    QPushButton,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStylePainter,
)

from app.widgets.qt_text import breakable

_FLAGS = Qt.AlignmentFlag.AlignVCenter | Qt.TextFlag.TextWordWrap
_LEAST_CHARS = 10  # of a line
_ANY_PX = 1 << 14


class WrappedButton(QPushButton):
    """Button that is as high as its text in the given width needs; Qt's own cuts a long text off.

    Args:
        text: The text.
        align: Horizontal alignment of its lines.
    """

    def __init__(self, text: str, align: Qt.AlignmentFlag = Qt.AlignmentFlag.AlignLeft) -> None:
        super().__init__(text)
        self._align = align
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    def hasHeightForWidth(self) -> bool:
        return True

    def heightForWidth(self, width: int) -> int:
        inside = self._inside(QRect(0, 0, width, _ANY_PX))
        metrics, text = self.fontMetrics(), breakable(self.text())
        text_height = metrics.boundingRect(
            0, 0, inside.width(), _ANY_PX, int(_FLAGS), text
        ).height()
        return max(super().sizeHint().height(), text_height + _ANY_PX - inside.height())

    def minimumSizeHint(self) -> QSize:
        width = self.fontMetrics().averageCharWidth() * _LEAST_CHARS
        return QSize(min(width, self.sizeHint().width()), super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.text = ""
        painter = QStylePainter(self)
        painter.drawControl(QStyle.ControlElement.CE_PushButton, option)
        align = QStyle.visualAlignment(self.layoutDirection(), self._align)
        painter.drawItemText(
            self._inside(self.rect()),
            int(_FLAGS | align),
            self.palette(),
            self.isEnabled(),
            breakable(self.text()),
            QPalette.ColorRole.ButtonText,
        )

    def _inside(self, rect: QRect) -> QRect:
        """Return where the text is in a button of a size."""
        option = QStyleOptionButton()
        self.initStyleOption(option)
        option.rect = rect
        return self.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, option, self)
