"""Where the nodes of a tree lie, and what it would give."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.insight.layout import NodeState, layout_of_plan, layout_of_step
from app.insight.plan_bar import forecast
from app.insight.tree_captions import describe_tree, shape_of
from app.insight.tree_items import describe
from medusa_core.messages import (
    BestNode,
    DroppedToken,
    Planned,
    TokenSource,
)
from tests.support.chats.made_traces import PARENTS, trace
from tests.support.window.engine_events import LEGEND
from tests.support.window.traces import chain, with_pruned


def test_a_step_classifies_every_node() -> None:
    layout = layout_of_step(trace(1, (0, 1)))
    assert [node.state for node in layout.nodes] == [
        NodeState.ROOT,
        NodeState.ACCEPTED,
        NodeState.PASSED,
        NodeState.MISMATCH,
        NodeState.PASSED,
        NodeState.UNREACHED,
        NodeState.GHOST,
    ]
    ghost = layout.nodes[-1]
    assert (ghost.parent, ghost.depth, ghost.text) == (1, 2, "‹F0 9F›")
    assert ghost.probability is None, "nobody drafted it"
    assert ghost.judged == pytest.approx(0.5)
    assert layout.nodes[1].text == "␣cat"
    assert layout.nodes[1].probability == pytest.approx(0.25)
    assert layout.nodes[0].probability is None
    # The model's choice and its five likeliest others; what wasn't reached wasn't asked for.
    judged = [node.judged for node in layout.nodes]
    assert judged == [None, 0.5, 0.125, 0.125, 0.125, None, 0.5]


def test_nodes_pruned_by_the_grammar_are_placed_under_their_parents() -> None:
    step = trace(1, (0, 1))._replace(forbidden=(DroppedToken(0, 6, 0.5), DroppedToken(3, 2, 0.25)))
    layout = layout_of_step(step)
    assert layout.nodes[6].state is NodeState.GHOST, "the bonus token keeps its place"
    first, second = layout.nodes[7:]
    assert {first.state, second.state} == {NodeState.FORBIDDEN}
    assert (first.parent, first.depth, first.text, first.probability) == (0, 1, "⏎", 0.5)
    assert (second.parent, second.depth, second.text) == (3, 3, "␣sat")
    assert not first.is_verified
    places = {(node.depth, node.row) for node in layout.nodes}
    assert len(places) == len(layout.nodes)
    assert describe(second, LEGEND) == "␣sat: forbidden by the grammar, 25.0 %"


def test_candidates_without_a_row_are_placed_under_their_parents() -> None:
    step = with_pruned(trace(1, (0, 1)), DroppedToken(0, 6, 0.5), DroppedToken(1, 2, 0.25))
    layout = layout_of_step(step)
    first, second = layout.nodes[7:]
    assert {first.state, second.state} == {NodeState.PRUNED}
    assert (first.parent, first.depth, first.text, first.probability) == (0, 1, "⏎", 0.5)
    assert not first.is_verified
    assert layout.num_of(NodeState.PRUNED) == 2
    assert describe(second, LEGEND) == (
        "␣sat: offered, but not verified, 25.0 %; the model gave it 12.5 %"
    )
    assert describe_tree(layout, LEGEND) == (
        "tree of 5; 1 of 5 draft tokens accepted: cat; then the model's own: ‹F0 9F›; "
        "likely draft tokens without a row: 2"
    )
    many = [DroppedToken(chance % 4, 10 + chance, chance / 20) for chance in range(15, 0, -1)]
    step = with_pruned(trace(1, (0, 1)), *many)
    likeliest = [(guess.node, guess.token_id) for guess in step.pruned]
    drawn = [(node.parent, node.text) for node in layout_of_step(step).nodes[7:]]
    assert len(drawn) == 8
    assert max(Counter(parent for parent, _ in drawn).values()) == 3
    first = [f"‹special {token}›" for parent, token in likeliest if parent == 0][:3]
    assert [text for parent, text in drawn if parent == 0] == first


@pytest.mark.parametrize("path", [(0,), (0, 1), (0, 1, 2, 3)])
def test_a_chain_is_one_row_whatever_was_accepted(path: tuple[int, ...]) -> None:
    step = with_pruned(chain(path), DroppedToken(0, 6, 0.5), DroppedToken(1, 5, 0.25))
    layout = layout_of_step(step)
    assert layout.is_chain
    assert [(node.depth, node.row) for node in layout.nodes[:4]] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    ghost = layout.nodes[4]
    assert (ghost.state, ghost.depth) == (NodeState.GHOST, len(path))
    assert ghost.row == (0 if len(path) == 4 else 1), "below what it was chosen instead of"
    assert shape_of(layout) == "chain of 3"
    assert not layout_of_step(trace(1, (0, 1))).is_chain
    assert shape_of(layout_of_step(trace(0))) == "no drafts"


def test_a_block_occupies_the_positions_drafted_in_one_pass() -> None:
    drawn = with_pruned(chain(drafter="eagle"), DroppedToken(3, 6, 0.5))
    assert layout_of_step(drawn).blocks == ()
    (block,) = layout_of_step(drawn, block_sources=("eagle", "hydra")).blocks
    assert block == ("eagle", 1, 4), "the last place had no row"
    joined = drawn._replace(sources=(*drawn.sources[:3], TokenSource("suffix", 3)))
    (block,) = layout_of_step(joined, block_sources=("eagle",)).blocks
    assert block == ("eagle", 1, 2)
    assert "EAGLE: places 1 to 2 from one pass" in describe_tree(
        layout_of_step(joined, block_sources=("eagle",)), LEGEND
    )


def test_the_end_token_of_an_answer_is_labelled() -> None:
    texts = [node.text for node in layout_of_step(trace(1, (0, 1)), {7: "", 2: ""}).nodes]
    assert texts[-1] == "‹end›"
    assert texts[2] == "‹end›"
    assert texts[1] == "␣cat"


@given(st.integers(1, 20).flatmap(lambda n: st.tuples(*[st.integers(0, i) for i in range(n)])))
def test_no_two_nodes_overlap_and_children_are_to_the_right(
    parents: tuple[int, ...],
) -> None:
    nodes = tuple(BestNode(parent, 1, 0, 0.5) for parent in parents)
    layout = layout_of_plan(nodes, len(nodes) + 1, "medusa")
    places = {(node.depth, node.row) for node in layout.nodes}
    assert len(places) == len(layout.nodes)
    for depth in range(layout.num_columns):
        rows = sorted(node.row for node in layout.nodes if node.depth == depth)
        assert all(b - a >= 1 for a, b in pairwise(rows))
        column = sorted((n for n in layout.nodes if n.depth == depth), key=lambda n: n.row)
        above = [layout.nodes[n.parent].row for n in column if n.depth]
        assert above == sorted(above), "lines cross"
    assert all(0 <= node.row < layout.num_rows for node in layout.nodes)
    for node in layout.nodes[1:]:
        assert node.depth == layout.nodes[node.parent].depth + 1


def test_a_tree_has_no_more_rows_than_its_fullest_column() -> None:
    parents = (0, 0, 1, 1, 2, 3, 3)  # two below the root, two and one below them, two below one
    nodes = tuple(BestNode(parent, 1, 0, 0.5) for parent in parents)
    layout = layout_of_plan(nodes, len(nodes) + 1, "medusa")
    assert [node.row for node in layout.nodes] == [0, 0, 2, 0, 1, 2, 0, 1]
    assert layout.num_rows == 3


@pytest.mark.parametrize("path", [(0,), (0, 2), (0, 1), (0, 1, 4), (0, 1, 3), (0, 1, 3, 5)])
def test_the_accepted_path_is_one_straight_line_at_the_top(path: tuple[int, ...]) -> None:
    layout = layout_of_step(trace(1, path))
    rows = {layout.nodes[node].row for node in (*path, len(PARENTS))}
    assert rows == {0.0}


def test_a_planned_tree_has_the_requested_rows() -> None:
    best = (BestNode(0, 1, 0, 0.7), BestNode(1, 2, 0, 0.4), BestNode(0, 1, 1, 0.1))
    assert len(layout_of_plan(best, 1, "medusa").nodes) == 1
    layout = layout_of_plan(best, 3, "medusa")
    assert [node.probability for node in layout.nodes] == [1.0, 0.7, 0.4]
    assert len(layout_of_plan(best, 64, "medusa").nodes) == 4


def test_a_forecast_is_the_sum_of_probabilities_over_the_measured_time() -> None:
    best = (BestNode(0, 1, 0, 0.5), BestNode(1, 2, 0, 0.25))
    planned = Planned("", "", 0.0, 0, ((0.5,), (0.5,)), 2, "medusa", best, (0.0015, 0.0035))
    assert forecast(planned, 0.001, 1).factor == pytest.approx(1)
    two = forecast(planned, 0.001, 2)
    assert (two.tokens, two.tokens_per_s) == (pytest.approx(1.5), pytest.approx(1000))
    assert forecast(planned, 0.001, 3).factor == pytest.approx(1.75 / 3.5)
