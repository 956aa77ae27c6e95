"""Card of an error with its hint and actions."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.theme.appearance import Appearance
from app.widgets.flow_layout import FlowLayout


class ErrorCard(QFrame):
    """Shows an error message, a hint and actions.

    Attributes:
        message: The error message.
        hint: What the user can do about it.

    Signals:
        retry_requested: The user wants to retry.
        acted: One of the actions was chosen.
        dismissed: The user closed the card.
    """

    retry_requested = Signal()
    acted = Signal()
    dismissed = Signal()

    def __init__(
        self,
        message: str,
        hint: str,
        appearance: Appearance,
        *,
        can_retry: bool = False,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("errorCard")
        self.setAccessibleName(self.tr("Error: {0} {1}").format(message, hint).strip())
        self.message = message
        self.hint = hint
        self._appearance = appearance
        self._icon = QLabel()
        self._close = QToolButton()
        self._close.setAccessibleName(self.tr("Dismiss"))
        self._close.setToolTip(self.tr("Dismiss"))
        self._close.clicked.connect(self.dismissed)
        self._row = QHBoxLayout(self)
        self._actions = FlowLayout(appearance.scale.px(0.5))
        self._build(can_retry)
        self.restyle()

    def add_action(self, label: str, act: Callable[[], object]) -> None:
        """Append a button for an action."""
        button = QPushButton(label)
        button.clicked.connect(self.acted)
        button.clicked.connect(lambda: act())
        self._actions.addWidget(button)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        scale, theme = self._appearance.scale, self._appearance.theme
        self._row.setContentsMargins(scale.px(0.9), scale.px(0.7), scale.px(0.6), scale.px(0.7))
        self._row.setSpacing(scale.px(0.8))
        side = scale.px(1.4)
        icon = self._appearance.icon("warning", theme.danger, 1.4)
        self._icon.setPixmap(icon.pixmap(QSize(side, side), self.devicePixelRatioF()))
        self._close.setIcon(self._appearance.icon("close", theme.muted, 1.0))
        self._close.setIconSize(QSize(scale.px(1.0), scale.px(1.0)))

    def _build(self, can_retry: bool) -> None:
        row = self._row
        row.addWidget(self._icon, 0, Qt.AlignmentFlag.AlignTop)
        words = QVBoxLayout()
        words.addWidget(_wrapped(self.message, "errorTitle"))
        if self.hint:
            words.addWidget(_wrapped(self.hint, "errorHint"))
        words.addLayout(self._actions)
        if can_retry:
            retry = QPushButton(self.tr("Try again"))
            retry.clicked.connect(self.retry_requested)
            self._actions.addWidget(retry)
        row.addLayout(words, 1)
        row.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)


def _wrapped(text: str, name: str) -> QLabel:
    label = QLabel(text)
    label.setObjectName(name)
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setWordWrap(True)
    label.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
    label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return label
