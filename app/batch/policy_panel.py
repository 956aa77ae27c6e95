"""Scrollable panel of a batch's policy and rates."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QVBoxLayout, QWidget

from app.batch.part_rates import PartRates
from app.batch.policy_picture import PolicyPicture
from app.batch.policy_words import answers_part
from app.theme.appearance import Appearance
from medusa_core.api import BatchProgress

_LEAST_EM = 6


class PolicyPanel(QScrollArea):
    """Panel as high as its content, if there is room; hidden without a policy.

    Attributes:
        picture: Tier of each part.
        rates: Measured and forecast rate of each part.
    """

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self.picture = PolicyPicture(appearance)
        self.rates = PartRates(appearance)
        self._content = QWidget()
        self._column = QVBoxLayout(self._content)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(self.picture)
        self._column.addWidget(self.rates)
        self.setWidget(self._content)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setAccessibleName(self.tr("Where everything lies, and how fast it is"))
        self.hide()

    def show_progress(self, progress: BatchProgress) -> None:
        """Show the state of a batch."""
        is_known = progress.policy is not None
        whole = answers_part(progress.forecast_tokens_per_s, progress.mean_tokens_per_s)
        self.picture.show_policy(progress.policy, progress.sizes)
        self.rates.show_parts((whole, *progress.parts) if is_known else ())
        self.setVisible(is_known)

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        self.picture.restyle()
        self.rates.restyle()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        answer = super().eventFilter(watched, event)
        if event.type() is QEvent.Type.LayoutRequest:  # other words may take other lines
            self._fit()
        return answer

    def _fit(self) -> None:
        width = self.viewport().width()
        height = max(0, self._column.totalHeightForWidth(width))
        self.setMinimumHeight(min(height, self._appearance.scale.px(_LEAST_EM)))
        self.setMaximumHeight(height)
        self.setMinimumWidth(self._content.minimumSizeHint().width())
