"""Stacked bar of a device's memory, with a legend and a strip of layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QColor, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.models.layer_strip import LayerStrip
from app.theme.appearance import Appearance
from app.widgets.flow_layout import FlowLayout
from app.widgets.sizes import gib
from medusa_core.messages import MemoryPlan


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the bar.

    Attributes:
        name: Part of the memory.
        nbytes: Its size.
        colour: As "#rrggbb"; empty for free memory.
    """

    name: str
    nbytes: int
    colour: str


class MemoryBar(QWidget):
    """The bar and its legend.

    Attributes:
        segments: Parts from left to right.
        layers: Tier of each layer, if not all are on the device.
    """

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self._plan: MemoryPlan | None = None
        self._bar = _Bar(appearance)
        self._legend = FlowLayout(appearance.scale.px(0.5))
        self.segments: tuple[Segment, ...] = ()
        self.layers = LayerStrip(appearance)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self._bar)
        column.addLayout(self._legend)
        column.addWidget(self.layers)

    def show_plan(self, plan: MemoryPlan | None) -> None:
        """Show a memory plan; None shows an empty bar."""
        self._plan = plan
        self.segments = () if plan is None else self._segments_of(plan)
        total = 1 if plan is None else max(plan.total_bytes, plan.total_bytes - plan.free_bytes)
        limit = None if plan is None or plan.free_bytes >= 0 else plan.total_bytes
        self._bar.show_segments(self.segments, total, limit)
        self._fill_legend()
        self.layers.show_placement(None if plan is None else plan.placement)
        text = ", ".join(f"{s.name} {gib(s.nbytes)}" for s in self.segments)
        self.setAccessibleName(self.tr("Memory"))
        self.setAccessibleDescription(text)

    def restyle(self) -> None:
        """Apply the theme's colours."""
        self.show_plan(self._plan)

    def _segments_of(self, plan: MemoryPlan) -> tuple[Segment, ...]:
        theme = self._appearance.theme
        lines = [theme.series(number).line for number in range(1, 8)]
        drafts = [(self.tr("draft model"), plan.draft_model_bytes, lines[4])]
        drafts = drafts if plan.draft_model_bytes else []
        states = [(self.tr("states"), plan.state_bytes, lines[6])] if plan.state_bytes else []
        embedding = [(self.tr("embedding model"), plan.reserved_bytes, lines[5])]
        embedding = embedding if plan.reserved_bytes else []
        parts = (
            (self.tr("other programs"), plan.other_bytes, theme.target_bar),
            (self.tr("runtime"), plan.runtime_bytes, theme.muted),
            (self.tr("weights"), plan.weights_bytes, lines[0]),
            (self.tr("heads"), plan.heads_bytes - plan.draft_model_bytes, lines[1]),
            *drafts,
            *embedding,
            (self.tr("KV cache"), plan.kv_bytes - plan.state_bytes, lines[2]),
            *states,
            (self.tr("scratch"), plan.scratch_bytes, lines[3]),
            (self.tr("free"), max(0, plan.free_bytes), ""),
        )
        return tuple(Segment(*part) for part in parts)

    def _fill_legend(self) -> None:
        while (item := self._legend.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for segment in self.segments:
            colour = segment.colour or self._appearance.theme.window
            border = self._appearance.theme.muted
            # A square of the bar's colour; the words beside it say the same.
            label = QLabel(
                f'<span style="color:{colour}; background:{colour};">&#9632;&#9632;</span> '
                f"{segment.name} <span style='font-weight:600'>{gib(segment.nbytes)}</span>"
                if segment.colour
                else f'<span style="color:{border};">&#9633;</span> {segment.name} '
                f"<span style='font-weight:600'>{gib(segment.nbytes)}</span>"
            )
            label.setProperty("class", "figure")
            self._legend.addWidget(label)


class _Bar(QWidget):
    """The bar itself."""

    def __init__(self, appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self._segments: tuple[Segment, ...] = ()
        self._total = 1
        self._limit: int | None = None
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_segments(self, segments: Sequence[Segment], total: int, limit: int | None) -> None:
        """Show the parts of a total; `limit` marks the size of the device's memory."""
        self._segments, self._total, self._limit = tuple(segments), total, limit
        self.update()

    def sizeHint(self) -> QSize:
        return QSize(self._appearance.scale.px(20), self._appearance.scale.px(1.5))

    def paintEvent(self, _: QPaintEvent) -> None:
        theme = self._appearance.theme
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        left = 0.0
        for segment in self._segments:
            width = self.width() * segment.nbytes / self._total
            if segment.colour:
                painter.fillRect(QRectF(left, 0, width, self.height()), QColor(segment.colour))
            left += width
        painter.setPen(QPen(QColor(theme.border)))
        painter.drawRect(QRectF(0.5, 0.5, self.width() - 1, self.height() - 1))
        if self._limit is not None:
            painter.setPen(QPen(QColor(theme.danger), 3))
            x = self.width() * self._limit / self._total
            painter.drawLine(round(x), 0, round(x), self.height())
        painter.end()
