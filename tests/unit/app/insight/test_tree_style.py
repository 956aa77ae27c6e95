"""How the nodes of a tree look."""

import pytest
from PySide6.QtGui import QColor, QFontMetrics
from pytestqt.qtbot import QtBot

from app.insight.layout import NodeState, layout_of_step
from app.insight.tree_captions import BlockFrame
from app.insight.tree_items import NodeItem, place_of
from app.insight.tree_style import (
    Badge,
    badge_width,
    badges_of,
    look_of,
    note_of,
    words_of,
)
from app.insight.tree_table import TreeTable
from app.insight.tree_view import TreeView
from app.theme.appearance import Appearance, ThemeChoice
from app.theme.legend import Mark
from app.theme.tokens import DARK, LIGHT, Theme
from medusa_core.messages import DroppedToken, TokenSource
from tests.support.window.engine_events import LEGEND
from tests.support.window.traces import chain, trace


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_colours_and_lines_distinguish_the_states(theme: Theme) -> None:
    looks = {state: look_of(state, None, theme) for state in NodeState}
    lines = {(look.frame.color().name(), look.frame.style()) for look in looks.values()}
    states = set(NodeState) - {
        NodeState.PASSED
    }  # grey as what was decided before, which is the root
    assert len(lines) == len(states)
    assert looks[NodeState.PASSED].fill != looks[NodeState.ROOT].fill
    assert looks[NodeState.ACCEPTED].frame.color().name() == theme.agreed.line
    assert looks[NodeState.ACCEPTED].fill.name() == theme.agreed.tint
    assert looks[NodeState.MISMATCH].frame.color().name() == theme.danger
    for look in looks.values():
        assert look.line.color() == look.frame.color()
    assert looks[NodeState.ACCEPTED].line.widthF() == max(
        look.line.widthF() for look in looks.values()
    )


def test_likely_nodes_are_less_pale() -> None:
    fills = [
        look_of(NodeState.ACCEPTED, chance, LIGHT).fill.alphaF() for chance in (0.0, 0.1, 0.5, 1)
    ]
    assert fills == sorted(set(fills))
    assert fills[0] > 0.2
    assert fills[-1] == 1
    assert fills[1] < look_of(NodeState.ACCEPTED, None, LIGHT).fill.alphaF() < fills[2]


def test_badges_show_the_source_and_boxes_the_token() -> None:
    names = [
        [badge.name for badge in badges_of(TokenSource(drafter, head), LEGEND)]
        for drafter, head in (("medusa", 2), ("suffix", 3), ("medusa+suffix", 1), ("target", 0))
    ]
    assert names == [["h2"], ["suffix"], ["h1", "suffix"], []]
    layout = layout_of_step(trace(1, (0, 1)))
    assert words_of(layout.nodes[1]) == "␣cat"
    assert words_of(layout.nodes[-1]) == "model chose (50%) ‹F0 9F›"
    assert [note_of(layout.nodes[k]) for k in (0, 1, -1)] == ["", "25%", ""]


@pytest.mark.parametrize("name", ["", "<|begin_of_a_reasoning|>"])
def test_a_special_token_at_the_end_is_drawn_whole(
    appearance: Appearance, qtbot: QtBot, name: str
) -> None:
    view = TreeView(appearance)
    qtbot.addWidget(view)
    layout = layout_of_step(trace(1, (0, 1)), {7: name, 2: ""})
    view.show_layout(layout)
    ghost, end = layout.nodes[-1], layout.nodes[2]
    assert (ghost.state, end.text) == (NodeState.GHOST, "‹end›")
    metrics, space = QFontMetrics(appearance.scale.font(0.9)), appearance.scale.px(0.8)
    room = place_of(ghost, appearance).width() - space
    assert metrics.horizontalAdvance(words_of(ghost)) < room
    # Beside the longest badge and a chance of 100%.
    badge = badge_width(Badge("suffix", Mark("suffix", 1)), appearance)
    beside = badge + metrics.horizontalAdvance(" 100% ")
    assert metrics.horizontalAdvance(end.text) + beside < place_of(end, appearance).width() - space


@pytest.mark.parametrize("choice", [ThemeChoice.LIGHT, ThemeChoice.DARK])
def test_a_block_is_framed_in_the_colour_of_its_source(
    appearance: Appearance, choice: ThemeChoice, qtbot: QtBot
) -> None:
    appearance.use(choice)
    view = TreeView(appearance)
    qtbot.addWidget(view)
    view.resize(900, 200)
    sources = appearance.legend.block_sources
    assert set(sources) >= {"dflash", "dspark"}
    view.show_layout(layout_of_step(chain(drafter="dspark"), block_sources=sources))
    spoken = view.accessibleDescription()
    assert spoken.startswith("chain of 3; 1 of 3 draft tokens accepted: ")
    assert "; DSpark: places 1 to 3" in spoken
    (frame,) = (item for item in view.scene().items() if isinstance(item, BlockFrame))
    nodes = {i.node.index: i for i in view.scene().items() if isinstance(i, NodeItem)}
    held = [
        index
        for index, item in nodes.items()
        if frame.sceneBoundingRect().contains(item.sceneBoundingRect())
    ]
    assert sorted(held) == [1, 2, 3, 4], "the root isn't drawn by anybody"
    assert all(frame.zValue() < item.zValue() for item in nodes.values())
    picture = view.grab().toImage()
    line = QColor(appearance.mark(Mark("dspark", 1)).line)
    rows = (picture.height() // 2, picture.height() // 3)
    found = {picture.pixelColor(x, y).name() for y in rows for x in range(picture.width())}
    assert line.name() in found
    view.choose(2)
    assert "sat" in view.accessibleDescription()
    view.choose(-1)
    assert view.accessibleDescription().startswith("chain of 3")


def test_the_table_marks_nodes_that_the_grammar_forbade(qtbot: QtBot) -> None:
    table = TreeTable(LEGEND)
    qtbot.addWidget(table)
    step = trace(1, (0, 1))._replace(forbidden=(DroppedToken(0, 6, 0.5),))
    table.show_layout(layout_of_step(step))
    last = table.rowCount() - 1
    cells = [table.item(last, column) for column in range(table.columnCount())]
    texts = [cell.text() for cell in cells if cell is not None]
    assert texts == ["–", "1", "⏎", "–", "–", "50.0 %", "—", "forbidden by the grammar", "␣the"]
