"""Each source of drafts has its colour, mark, name and explanation wherever drafts are shown."""

from collections import Counter

import pytest
from PySide6.QtGui import QColor, QImage, QPainter
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.chat.strip.acceptance import AcceptanceRate
from app.chat.strip.strip_painting import HeadBars
from app.insight.token_card import card_of
from app.insight.tree_legend import TreeLegend, step_samples
from app.insight.tree_style import badge_width, badges_of, paint_badge
from app.theme.appearance import Appearance, ThemeChoice
from app.theme.legend import Mark
from app.theme.marks import mark_style
from medusa_core.messages import TARGET, SourceInfo, TokenSource
from medusa_core.speculation.drafters.source import source_registry
from tests.app.engine_says import LEGEND, RULES, SOURCES
from tests.app.insight.traces import made_track, trace

EACH = pytest.mark.parametrize("info", SOURCES, ids=lambda info: info.name)
THEMES = pytest.mark.parametrize("choice", [ThemeChoice.LIGHT, ThemeChoice.DARK])


@pytest.fixture
def shown(appearance: Appearance, choice: ThemeChoice) -> Appearance:
    appearance.choose(choice)
    appearance.legend.learn(SOURCES, RULES, {})
    return appearance


def colours_of(image: QImage) -> Counter[str]:
    places = ((x, y) for x in range(image.width()) for y in range(image.height()))
    return Counter(image.pixelColor(x, y).name() for x, y in places)


def picture(widget: QWidget) -> QImage:
    return widget.grab().toImage()


@THEMES
@EACH
def test_the_tree_and_its_legend_show_each_source(
    info: SourceInfo, shown: Appearance, qtbot: QtBot
) -> None:
    (badge,) = badges_of(TokenSource(info.name, 1), LEGEND)
    assert badge.name == (f"{info.badge}1" if info.is_numbered else info.badge)
    image = QImage(60, 20, QImage.Format.Format_RGB32)
    painter = QPainter(image)
    paint_badge(painter, image.rect().toRectF(), badge, shown)
    painter.end()
    colour = shown.theme.mark(info.colours[0])
    assert colours_of(image)[QColor(colour.line).name()] >= 60
    assert badge_width(badge, shown) > shown.scale.px(0.4)
    legend = TreeLegend(step_samples, shown)
    qtbot.addWidget(legend)
    assert f"{badge.name}: {info.explanation}" in legend.accessibleDescription()


@EACH
def test_the_legend_leaves_out_what_cannot_draft_for_the_model(
    info: SourceInfo, appearance: Appearance, qtbot: QtBot
) -> None:
    others = frozenset(other.name for other in SOURCES) - {info.name}
    appearance.legend.learn(SOURCES, RULES, {}, others)
    legend = TreeLegend(step_samples, appearance)
    qtbot.addWidget(legend)
    assert info.explanation not in legend.accessibleDescription()
    assert "accepted" in legend.accessibleDescription()
    assert appearance.legend.info(info.name) == info  # an earlier model's answers show it still


@THEMES
@EACH
def test_the_strip_shows_each_source(info: SourceInfo, shown: Appearance, qtbot: QtBot) -> None:
    bars = HeadBars(shown)
    qtbot.addWidget(bars)
    mark = Mark(info.name, 1 if info.is_numbered else 0)
    bars.show_rates((AcceptanceRate(mark, LEGEND.name(mark), 3, 4),))
    bars.resize(bars.sizeHint())
    assert bars.accessibleDescription() == f"{LEGEND.name(mark)}: 75%"
    assert info.label in LEGEND.name(mark)
    line = QColor(shown.theme.mark(info.colours[0]).line).name()
    assert colours_of(picture(bars))[line] > 40


@EACH
def test_the_card_names_each_source(info: SourceInfo) -> None:
    track, step = made_track(1), trace()
    proposed = (TARGET, *[TokenSource(info.name, 1)] * (len(step.sources) - 1))
    track.add(step._replace(sources=proposed))
    first = track.first_token(1)
    lines = dict(card_of(track, first, LEGEND))
    assert lines["From"].startswith(info.label)


@THEMES
@EACH
def test_the_text_underlines_each_source_in_its_own_way(
    info: SourceInfo, shown: Appearance
) -> None:
    style = mark_style(shown.theme, shown.scale, LEGEND)
    assert style.underline(Mark(info.name, 1)) == shown.theme.mark(info.colours[0]).line
    alike = [
        other.name
        for other in SOURCES
        if (other.colours[0], other.line) == (info.colours[0], info.line) and other != info
    ]
    of_heads = {spec.name for spec in source_registry().specs if spec.of_heads}
    assert {info.name, *alike} <= of_heads or not alike
    assert len({one.badge for one in SOURCES}) == len({one.label for one in SOURCES})
    assert len({one.badge for one in SOURCES}) == len(SOURCES)
