"""Legend of a tree: samples of boxes, badges and numbers with their meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QCoreApplication, QLineF, QRectF, QSize
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QWidget

from app.i18n.setting_texts import setting_text
from app.i18n.words import QT_TRANSLATE_NOOP
from app.insight.layout import NodeState, TreeLayout
from app.insight.tree_style import Badge, badge_width, look_of, paint_badge
from app.theme.appearance import Appearance
from app.theme.legend import (
    Legend,
    Mark,
)
from app.widgets.flow_layout import FlowLayout
from medusa_core.messages import SourceInfo

LegendSample = NodeState | Badge | str
_STEP: tuple[tuple[LegendSample, str], ...] = (
    (NodeState.ACCEPTED, QT_TRANSLATE_NOOP("Insight", "accepted")),
    (NodeState.GHOST, QT_TRANSLATE_NOOP("Insight", "what the model chose itself")),
    (
        NodeState.MISMATCH,
        QT_TRANSLATE_NOOP("Insight", "the best draft token there, but not chosen"),
    ),
    (NodeState.PASSED, QT_TRANSLATE_NOOP("Insight", "not chosen")),
    (NodeState.UNREACHED, QT_TRANSLATE_NOOP("Insight", "after a rejected draft token")),
    (NodeState.PRUNED, QT_TRANSLATE_NOOP("Insight", "offered, not worth a row")),
    (NodeState.FORBIDDEN, QT_TRANSLATE_NOOP("Insight", "forbidden by the grammar")),
)
_CHANCE = (
    "44%",
    QT_TRANSLATE_NOOP("Insight", "chance that the drafter gave it; paler: less"),
)
_NOT_DRAFTED = frozenset((NodeState.ROOT, NodeState.GHOST))
Samples = tuple[tuple[LegendSample, str], ...]


def step_samples(legend: Legend) -> Samples:
    """Return the legend entries for the tree of a decoding step."""
    badges = (_badge(info, legend) for info in legend.sources)
    shown = (
        (sample, QCoreApplication.translate("Insight", words))
        for sample, words in (*_STEP, _CHANCE)
    )
    *states, chance = shown
    return (*states, *badges, chance)


def plan_samples(legend: Legend) -> Samples:
    """Return the legend entries for a planned tree, each a swatch and its meaning."""
    numbered = (_badge(info, legend) for info in legend.sources if info.is_numbered)
    return (
        (
            NodeState.PLANNED,
            QCoreApplication.translate("Insight", "a row of the tree, for a draft token"),
        ),
        *numbered,
        (
            "44%",
            QCoreApplication.translate(
                "Insight", "chance that it and all before it are right; paler: less"
            ),
        ),
    )


def _badge(info: SourceInfo, legend: Legend) -> tuple[Badge, str]:
    mark = Mark(info.name, 1)
    return Badge(legend.badge(mark), mark), setting_text(info.explanation)


class TreeLegend(QWidget):
    """Legend of what has occurred in the trees that were drawn.

    Args:
        samples: Makes the samples from the names of drafters.
    """

    def __init__(self, samples: Callable[[Legend], Samples], appearance: Appearance) -> None:
        super().__init__()
        self._appearance = appearance
        self._samples = samples
        self._occurred: frozenset[NodeState | str] = frozenset()
        self._flow = FlowLayout(appearance.scale.px(0.9), self)
        self.setAccessibleName(self.tr("Legend"))
        self.refill()

    def learn(self, layout: TreeLayout) -> None:
        """Add what occurs in a tree."""
        occurs: set[NodeState | str] = {node.state for node in layout.nodes}
        occurs |= {name for node in layout.nodes for name in node.source.proposers}
        if not occurs <= self._occurred:
            self._occurred |= occurs
            self.refill()

    def clear(self) -> None:
        """Remove all samples."""
        self._occurred = frozenset()
        self.refill()

    def refill(self) -> None:
        """Rebuild the samples after the names of drafters changed."""
        while (item := self._flow.takeAt(0)) is not None:
            if (entry := item.widget()) is not None:
                entry.hide()
                entry.deleteLater()
        samples = tuple(
            (sample, meaning)
            for sample, meaning in self._samples(self._appearance.legend)
            if self._has_occurred(sample)
        )
        for sample, meaning in samples:
            self._flow.addWidget(self._entry(sample, meaning))
        self.setAccessibleDescription("; ".join(_describe(samples)))

    def restyle(self) -> None:
        """Apply the theme's sizes and colours."""
        self._flow.setSpacing(self._appearance.scale.px(0.9))
        for swatch in self.findChildren(_Swatch):
            swatch.updateGeometry()
            swatch.update()

    def _has_occurred(self, sample: LegendSample) -> bool:
        """Whether a drawn tree contains what this legend entry explains."""
        if isinstance(sample, Badge):
            return sample.mark.source in self._occurred
        if isinstance(sample, NodeState):
            return sample in self._occurred
        return bool(self._occurred - _NOT_DRAFTED)  # a number, which any drafted token may have

    def _entry(self, sample: LegendSample, meaning: str) -> QWidget:
        entry = QWidget()
        row = QHBoxLayout(entry)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(self._appearance.scale.px(0.35))
        words = QLabel(meaning)
        words.setObjectName("insightNote")
        if isinstance(sample, str):
            swatch = QLabel(sample)
            swatch.setObjectName("legendNumber")
            row.addWidget(swatch)
        else:
            row.addWidget(_Swatch(sample, self._appearance))
        row.addWidget(words)
        return entry


class _Swatch(QWidget):
    """Small box or badge, as in the tree."""

    def __init__(self, sample: NodeState | Badge, appearance: Appearance) -> None:
        super().__init__()
        self._sample = sample
        self._appearance = appearance

    def sizeHint(self) -> QSize:
        scale = self._appearance.scale
        if isinstance(self._sample, Badge):
            return QSize(int(badge_width(self._sample, self._appearance)) + 1, scale.px(1.1))
        return QSize(scale.px(1.8), scale.px(1.0))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        place = QRectF(self.rect())
        if isinstance(self._sample, Badge):
            paint_badge(painter, place, self._sample, self._appearance)
        else:
            look = look_of(self._sample, 1.0, self._appearance.theme)
            painter.setPen(look.frame)
            painter.setBrush(look.fill)
            painter.drawRoundedRect(place.adjusted(2, 2, -2, -2), 3, 3)
            if self._sample is NodeState.FORBIDDEN:  # as its words are struck through
                middle = place.center().y()
                painter.setPen(look.ink)
                painter.drawLine(QLineF(place.left() + 6, middle, place.right() - 6, middle))
        painter.end()


def _describe(samples: Samples) -> Iterator[str]:
    """Describe the legend for screen readers."""
    for sample, meaning in samples:
        name = sample.name if isinstance(sample, Badge) else sample
        yield meaning if isinstance(name, NodeState) else f"{name}: {meaning}"
