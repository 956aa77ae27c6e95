"""Error cards between the conversation and the composer."""

from __future__ import annotations

from enum import Enum

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.chat.error_card import ErrorCard
from app.i18n.engine_texts import engine_text
from app.theme.appearance import Appearance
from app.widgets.announce import announce
from medusa_core.messages import Failed

MOST_EM = 16  # more than so high is scrolled


class ErrorTopic(Enum):
    """Topic of an error; when the topic works again, its errors are removed."""

    MODEL = "model"
    ANSWER = "answer"
    ATTACHMENT = "attachment"
    OTHER = "other"


class ErrorBoard(QScrollArea):
    """Shows error cards, newest last.

    Attributes:
        cards: The shown cards.

    Signals:
        retry_requested: The user wants to retry the failed action.
        failure_shown: A card (an `ErrorCard`) was shown for a failure (a `Failed`).
    """

    retry_requested = Signal()
    failure_shown = Signal(object, object)

    def __init__(self, appearance: Appearance, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("errorBoard")
        self.setAccessibleName(self.tr("Errors"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.cards: list[ErrorCard] = []
        self._topics: dict[ErrorCard, ErrorTopic] = {}
        self._appearance = appearance
        column = QWidget()
        column.setObjectName("errorColumn")
        self._column = QVBoxLayout(column)
        self._column.setContentsMargins(0, 0, 0, 0)
        self.setWidget(column)
        column.installEventFilter(self)
        bar = self.verticalScrollBar()
        bar.rangeChanged.connect(lambda _least, most: bar.setValue(most))  # to the newest
        self.hide()

    def show_error(
        self,
        message: str,
        hint: str,
        *,
        topic: ErrorTopic = ErrorTopic.OTHER,
        can_retry: bool = False,
    ) -> ErrorCard:
        """Show an error, and announce it to screen readers; returns its card.

        A repeated error replaces its earlier card.
        """
        message, hint = engine_text(message), engine_text(hint)
        for same in [one for one in self.cards if (one.message, one.hint) == (message, hint)]:
            self._remove(same)
        card = ErrorCard(message, hint, self._appearance, can_retry=can_retry)
        card.dismissed.connect(lambda: self._remove(card))
        card.retry_requested.connect(lambda: self._retry(card))
        card.acted.connect(lambda: self._remove(card))
        self.cards.append(card)
        self._topics[card] = topic
        self._column.addWidget(card)
        self.show()
        self._fit()
        announce(card, card.accessibleName(), is_urgent=True)
        return card

    def show_failure(self, failed: Failed, topic: ErrorTopic, *, can_retry: bool = False) -> None:
        """Show a failure of the engine; receivers of `failure_shown` may add actions."""
        card = self.show_error(failed.message, failed.hint, topic=topic, can_retry=can_retry)
        self.failure_shown.emit(card, failed)

    def dismiss(self, topic: ErrorTopic) -> None:
        """Remove the errors of a topic once it works again."""
        for card in [one for one in self.cards if self._topics[one] is topic]:
            self._remove(card)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        self._column.setSpacing(self._appearance.scale.px(0.4))
        for card in self.cards:
            card.restyle()
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a card has got another button
            self._fit()
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        """Fit the height to the cards, but leave room for the conversation."""
        width = self.viewport().width()
        # −1 while no card is laid out yet
        wanted = max(0, self._column.totalHeightForWidth(width)) if self.cards else 0
        self.setFixedHeight(min(wanted, self._appearance.scale.px(MOST_EM)))

    def _retry(self, card: ErrorCard) -> None:
        self._remove(card)
        self.retry_requested.emit()

    def _remove(self, card: ErrorCard) -> None:
        self.cards.remove(card)
        del self._topics[card]
        self._column.removeWidget(card)
        card.hide()
        card.deleteLater()
        self.setVisible(bool(self.cards))
        self._fit()
