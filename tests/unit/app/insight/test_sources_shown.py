"""Each source of drafts has its colour, mark, name and explanation wherever drafts are shown."""

from collections import Counter
from itertools import combinations

import pytest
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.chat.strip.acceptance import AcceptanceRate
from app.chat.strip.strip_painting import HeadBars
from app.insight.layout import Node, NodeState, TreeLayout
from app.insight.token_card import card_of
from app.insight.tree_legend import TreeLegend, step_samples
from app.insight.tree_style import badge_width, badges_of, paint_badge
from app.theme.appearance import Appearance, ThemeChoice
from app.theme.legend import Mark
from app.theme.marks import mark_style
from medusa_core.messages import TARGET, TokenSource
from tests.support.window.engine_events import LEGEND, OF_HEADS, RULES, SOURCES
from tests.support.window.traces import made_track, trace

THEMES = pytest.mark.parametrize("choice", [ThemeChoice.LIGHT, ThemeChoice.DARK])


@pytest.fixture
def shown(appearance: Appearance, choice: ThemeChoice) -> Appearance:
    appearance.use(choice)
    appearance.legend.learn(SOURCES, RULES, {})
    return appearance


def colours_of(image: QImage) -> Counter[str]:
    places = ((x, y) for x in range(image.width()) for y in range(image.height()))
    return Counter(image.pixelColor(x, y).name() for x, y in places)


def tree_of(*names: str, state: NodeState = NodeState.ACCEPTED) -> TreeLayout:
    """Return a chain with a draft of each source."""
    sources = (TokenSource(name, 1) for name in names)
    nodes = (Node(n, n - 1, n, 0, "a", state, source, 0.5) for n, source in enumerate(sources))
    return TreeLayout(tuple(nodes), 1, len(names))


def picture(widget: QWidget) -> QImage:
    return widget.grab().toImage()


@THEMES
def test_the_tree_and_its_legend_show_each_source(shown: Appearance, qtbot: QtBot) -> None:
    legend = TreeLegend(step_samples, shown)
    qtbot.addWidget(legend)
    legend.learn(tree_of(*(info.name for info in SOURCES)))
    for info in SOURCES:
        (badge,) = badges_of(TokenSource(info.name, 1), LEGEND)
        assert badge.name == (f"{info.badge}1" if info.is_numbered else info.badge)
        image = QImage(60, 20, QImage.Format.Format_RGB32)
        painter = QPainter(image)
        paint_badge(painter, image.rect().toRectF(), badge, shown)
        painter.end()
        colour = shown.theme.mark(info.colours[0])
        assert colours_of(image)[QColor(colour.line).name()] >= 60, info.name
        assert badge_width(badge, shown) > shown.scale.px(0.4), info.name
        assert f"{badge.name}: {info.explanation}" in legend.accessibleDescription()


def test_the_legend_omits_sources_that_cannot_draft_for_the_model(
    appearance: Appearance, qtbot: QtBot
) -> None:
    for info in SOURCES:
        others = frozenset(other.name for other in SOURCES) - {info.name}
        appearance.legend.learn(SOURCES, RULES, {}, others)
        legend = TreeLegend(step_samples, appearance)
        qtbot.addWidget(legend)
        legend.learn(tree_of(*(one.name for one in SOURCES)))
        assert info.explanation not in legend.accessibleDescription()
        assert "accepted" in legend.accessibleDescription()
        assert appearance.legend.info(info.name) == info  # an earlier model's answers show it still


def test_the_legend_explains_only_what_has_occurred(appearance: Appearance, qtbot: QtBot) -> None:
    one, other, *_ = SOURCES
    legend = TreeLegend(step_samples, appearance)
    qtbot.addWidget(legend)
    assert legend.accessibleDescription() == ""
    legend.learn(tree_of(one.name))
    first = legend.accessibleDescription()
    assert one.explanation in first
    assert other.explanation not in first
    assert "accepted" in first
    assert "chance" in first
    assert "forbidden" not in first
    legend.learn(tree_of(other.name, state=NodeState.FORBIDDEN))
    for words in (one.explanation, other.explanation, "accepted", "forbidden by the grammar"):
        assert words in legend.accessibleDescription(), "what was explained stays"
    legend.clear()
    assert legend.accessibleDescription() == ""


@THEMES
def test_the_strip_shows_each_source(shown: Appearance, qtbot: QtBot) -> None:
    for info in SOURCES:
        bars = HeadBars(shown)
        qtbot.addWidget(bars)
        mark = Mark(info.name, 1 if info.is_numbered else 0)
        bars.show_rates((AcceptanceRate(mark, LEGEND.name(mark), 3, 4),))
        bars.resize(bars.sizeHint())
        assert bars.accessibleDescription() == f"{LEGEND.name(mark)}: 75%"
        assert info.label in LEGEND.name(mark)
        line = QColor(shown.theme.mark(info.colours[0]).line).name()
        assert colours_of(picture(bars))[line] > 40, info.name


def test_the_card_names_each_source() -> None:
    for info in SOURCES:
        track, step = made_track(1), trace()
        proposed = (TARGET, *[TokenSource(info.name, 1)] * (len(step.sources) - 1))
        track.add(step._replace(sources=proposed))
        lines = dict(card_of(track, track.first_token(1), LEGEND))
        assert lines["From"].startswith(info.label)


@THEMES
def test_the_text_underlines_each_source_in_its_own_way(shown: Appearance) -> None:
    style = mark_style(shown.theme, shown.scale, LEGEND)
    for info in SOURCES:
        mark = Mark(info.name, 1)
        assert style.underline(mark) == shown.theme.mark(info.colours[0]).line, info.name


def test_no_two_sources_look_alike_except_heads_that_are_never_loaded_together() -> None:
    for one, other in combinations(SOURCES, 2):
        assert one.badge != other.badge
        assert one.label != other.label
        if (one.colours[0], one.line) == (other.colours[0], other.line):
            assert {one.name, other.name} <= OF_HEADS
