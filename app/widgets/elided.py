"""Widgets that elide texts without enough room."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QLabel,
    QSizePolicy,
    QStyle,
    QStyleOptionButton,
    QStyleOptionToolButton,
    QStylePainter,
    QToolButton,
    QWidget,
)

from app.widgets.choices import ChoiceBox
from app.widgets.typed import types_text

_LEAST_CHARS = 4
_END = Qt.TextElideMode.ElideRight


class ElidedLabel(QLabel):
    """Label of one line that elides its text."""

    def __init__(self, text: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        least = self.fontMetrics().averageCharWidth() * _LEAST_CHARS
        return QSize(min(least, super().sizeHint().width()), super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        area = self.contentsRect()
        text = self.fontMetrics().elidedText(self.text(), _END, area.width())
        painter.drawText(area, int(self.alignment()), text)
        painter.end()


class ElidedCheckBox(QCheckBox):
    """Check box that elides its text."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(text, parent)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        least = self.fontMetrics().averageCharWidth() * (_LEAST_CHARS + 4)
        return QSize(min(least, self.sizeHint().width()), super().minimumSizeHint().height())

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionButton()
        self.initStyleOption(option)
        area = self.style().subElementRect(QStyle.SubElement.SE_CheckBoxContents, option, self)
        shows_key = int(Qt.TextFlag.TextShowMnemonic)
        option.text = self.fontMetrics().elidedText(self.text(), _END, area.width(), shows_key)
        painter.drawControl(QStyle.ControlElement.CE_CheckBox, option)
        painter.end()


class ElidedButton(QToolButton):
    """Left-aligned button of a menu that elides its text."""

    def minimumSizeHint(self) -> QSize:
        least = self.fontMetrics().averageCharWidth() * (_LEAST_CHARS + 4)
        return QSize(least, super().minimumSizeHint().height())

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        width = metrics.horizontalAdvance(self.text()) + self._arrow_width + 2
        return QSize(width, super().sizeHint().height())

    @property
    def _arrow_width(self) -> int:
        return round(1.4 * self.fontMetrics().averageCharWidth()) + self.fontMetrics().height() // 2

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QStylePainter(self)
        option = QStyleOptionToolButton()
        self.initStyleOption(option)
        option.text = ""
        painter.drawComplexControl(QStyle.ComplexControl.CC_ToolButton, option)
        area = self.rect().adjusted(0, 0, -self._arrow_width, 0)
        text = self.fontMetrics().elidedText(self.text(), _END, area.width())
        painter.setPen(self.palette().color(self.foregroundRole()))
        side = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(area, int(side), text)
        painter.end()


class ElidedBox(ChoiceBox):
    """Combo box with a minimum width, which reacts to the wheel only with focus."""

    def __init__(self, num_chars: int, parent: QWidget | None = None) -> None:
        super().__init__(num_chars, parent)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if types_text(event) and event.key() != Qt.Key.Key_Space:
            event.ignore()  # what is typed is meant for the message, and chooses nothing here
        else:
            super().keyPressEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(event)
        else:
            event.ignore()  # whoever scrolls past it doesn't mean it
