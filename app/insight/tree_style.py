"""Style of nodes: colour by state, opacity by probability, a badge for the source."""

from __future__ import annotations

import math
from typing import NamedTuple

from PySide6.QtCore import QCoreApplication, QRectF, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QPainter, QPen

from app.i18n.numbers import Number
from app.insight.layout import Node, NodeState
from app.theme.appearance import Appearance
from app.theme.legend import (
    Legend,
    Mark,
    marks_of,
)
from app.theme.tokens import Theme
from medusa_core.messages import TokenSource

BADGE_SIZE = 0.78  # of the text's
_LEAST_OPACITY = 0.3  # unlikely nodes are there, too
_UNKNOWN_OPACITY = 0.55  # such as of what nobody says how likely it is


class Look(NamedTuple):
    """Colours of a node.

    Attributes:
        frame: Colour of its frame.
        line: Colour of the line from its parent.
        fill: Colour of its box.
        ink: Colour of its text.
    """

    frame: QPen
    line: QPen
    fill: QColor
    ink: QColor


def look_of(state: NodeState, probability: float | None, theme: Theme) -> Look:
    """Return the colours of a node by state and probability."""
    colour, width, pattern = _line_of(state, theme)
    frame, line = QPen(colour, width, pattern), QPen(colour, 1.4 * width, pattern)
    fill = QColor(_fill_of(state, theme))
    if state not in (NodeState.ROOT, NodeState.GHOST, NodeState.FORBIDDEN, NodeState.PRUNED):
        fill.setAlphaF(opacity_of(probability))
    is_muted = state in (
        NodeState.PASSED,
        NodeState.UNREACHED,
        NodeState.FORBIDDEN,
        NodeState.PRUNED,
    )
    return Look(frame, line, fill, QColor(theme.muted if is_muted else theme.text))


def opacity_of(probability: float | None) -> float:
    """Return the opacity for a probability; medium if unknown."""
    if probability is None:
        return _UNKNOWN_OPACITY
    return _LEAST_OPACITY + (1 - _LEAST_OPACITY) * math.sqrt(min(1.0, probability))


def _line_of(state: NodeState, theme: Theme) -> tuple[QColor, float, Qt.PenStyle]:
    solid, dashed, dotted = Qt.PenStyle.SolidLine, Qt.PenStyle.DashLine, Qt.PenStyle.DotLine
    looks = {
        NodeState.ROOT: (theme.muted, 1.4, solid),
        NodeState.ACCEPTED: (theme.agreed.line, 2.4, solid),
        NodeState.MISMATCH: (theme.danger, 1.6, dashed),
        NodeState.PASSED: (theme.muted, 1.0, solid),
        NodeState.UNREACHED: (theme.border, 1.0, solid),
        NodeState.GHOST: (theme.accent, 2.0, dotted),
        NodeState.FORBIDDEN: (theme.danger, 1.0, dotted),
        NodeState.PRUNED: (theme.muted, 1.0, dotted),
        NodeState.PLANNED: (theme.accent, 1.2, solid),
    }
    colour, width, pattern = looks[state]
    return QColor(colour), width, pattern


def _fill_of(state: NodeState, theme: Theme) -> str:
    fills = {
        NodeState.ROOT: theme.raised,
        NodeState.ACCEPTED: theme.agreed.tint,
        NodeState.MISMATCH: theme.danger_surface,
        NodeState.PASSED: theme.hover,
        NodeState.UNREACHED: theme.raised,
        NodeState.GHOST: theme.window,
        NodeState.FORBIDDEN: theme.window,
        NodeState.PRUNED: theme.window,
        NodeState.PLANNED: theme.selection,
    }
    return fills[state]


class Badge(NamedTuple):
    """Short name of a node's drafter.

    Attributes:
        name: Such as `h1` or `suffix`.
        mark: Mark of its tokens in the text.
    """

    name: str
    mark: Mark


def badges_of(source: TokenSource, legend: Legend) -> tuple[Badge, ...]:
    """Return the badges of a node's drafters; none for the target's own tokens."""
    return tuple(Badge(legend.badge(mark), mark) for mark in marks_of(source))


def words_of(node: Node) -> str:
    """Return the text of a node's box."""
    if node.state is not NodeState.GHOST:
        return node.text
    if node.judged is None:
        return QCoreApplication.translate("Insight", "model chose {0}").format(node.text)
    return QCoreApplication.translate("Insight", "model chose ({1:.0%}) {0}").format(
        node.text, Number(node.judged)
    )


def note_of(node: Node) -> str:
    """Return the drafter's probability as text; empty if unknown."""
    known = node.state is not NodeState.ROOT and node.probability is not None
    return f"{Number(node.probability or 0.0):.0%}" if known else ""


def paint_badge(painter: QPainter, place: QRectF, badge: Badge, appearance: Appearance) -> None:
    """Paint a badge like a marked token of the text."""
    colour = appearance.mark(badge.mark)
    painter.fillRect(place, QColor(colour.tint))
    under = QRectF(place.left(), place.bottom() - 2, place.width(), 2)
    painter.fillRect(under, QColor(colour.line))
    painter.setPen(QColor(appearance.theme.text))
    painter.setFont(appearance.scale.font(BADGE_SIZE))
    painter.drawText(place, Qt.AlignmentFlag.AlignCenter, badge.name)


def badge_width(badge: Badge, appearance: Appearance) -> float:
    """Return the width of a badge."""
    metrics = QFontMetricsF(appearance.scale.font(BADGE_SIZE))
    return metrics.horizontalAdvance(badge.name) + appearance.scale.px(0.4)
