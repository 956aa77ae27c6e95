"""Trees grown for one step from any list of sources: the most valuable ones, whoever grows them."""

import math
import random
from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise

import pytest

from medusa_core.messages import CHAIN, GROWTHS
from medusa_core.runtime.tree.search import (
    expected_length,
    grow,
)
from medusa_core.runtime.tree.shape import TreeShape
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.grown import form_of
from medusa_core.speculation.drafters.growth import (
    CompiledGrowth,
    Grown,
    GrowthInPython,
    make_growth,
    min_values,
)
from medusa_core.speculation.drafters.source import Source
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import (
    MAX_LEVELS,
    MAX_TREE_NODES,
    RATIO_DEPTHS,
    RATIO_RANGES,
    NodeRank,
)
from tests.support.engine.drafts import Path_, Scripted, heads_of, suffixes_of
from tests.support.engine.grown_paths import NAMES, paths_of

SIZES = [(heads, ranks) for heads in (1, 2, 5) for ranks in (1, 3, 8)]


def by_all(
    sources: Sequence[Source], weights: Sequence[float], num_rows: int, budget: RowBudget
) -> Grown:
    """Grow the tree compiled and in Python, and check that both are equal."""
    in_python = GrowthInPython(budget, weights).grow(sources, num_rows)
    library = native_library()
    if library is not None and budget.most <= MAX_TREE_NODES:
        compiled = CompiledGrowth(library, budget, weights)
        for _ in range(2):  # nothing is left of an earlier step
            assert compiled.grow(sources, num_rows) == in_python
    return in_python


def grown(
    sources: Sequence[Source],
    weights: Sequence[float],
    num_rows: int,
    prices: Sequence[float] = (),
) -> Grown:
    return by_all(sources, weights, num_rows, RowBudget(num_rows, array("f", prices)))


def chances_of(rng: random.Random, num_heads: int, num_ranks: int) -> list[list[float]]:
    """Return probabilities of drafts as float32 numbers."""
    drawn = (
        sorted((rng.random() for _ in range(num_ranks)), reverse=True) for _ in range(num_heads)
    )
    return [array("f", [chance / num_ranks for chance in row]).tolist() for row in drawn]


def ranks_of(chances: list[list[float]]) -> Scripted:
    """Return a source that drafts 0, 1, … at every depth."""
    return Scripted(
        lambda path: dict(enumerate(chances[len(path)])) if len(path) < len(chances) else {}, True
    )


def shape_of(tree: Grown) -> TreeShape:
    return form_of(tree.form, NAMES).shape


@pytest.mark.parametrize(("num_heads", "num_ranks"), SIZES)
def test_a_grown_tree_has_the_highest_value_of_its_size(num_heads: int, num_ranks: int) -> None:
    rng = random.Random(10 * num_heads + num_ranks)
    for num_rows in (1, 2, 3, 8, 33):
        chances = chances_of(rng, num_heads, num_ranks)
        tree = grown([ranks_of(chances)], [1.0], num_rows)
        best = grow(chances, num_rows - 1)
        assert shape_of(tree) == TreeShape.from_paths([path for path, _ in best])
        worth = expected_length(shape_of(tree).paths[1:], chances)
        assert worth == pytest.approx(1 + sum(value for _, value in best), rel=1e-5)
        assert tree.expected_accepted == pytest.approx(worth - 1, rel=1e-5)


@pytest.mark.parametrize("nothing", [0.0, math.nan])
def test_worthless_candidates_get_no_row(nothing: float) -> None:
    assert shape_of(grown([ranks_of([[nothing] * 3] * 2)], [1.0], 9)).num_nodes == 1
    some = ranks_of([[0.5, nothing, nothing], [nothing] * 3])
    assert shape_of(grown([some], [1.0], 9)).paths == ((), (0,))


def test_of_equal_candidates_the_earlier_is_taken() -> None:
    tree = grown([Scripted(lambda path: dict.fromkeys((7, 8, 9, 6), 0.25))], [1.0], 3)
    assert list(tree.token_ids) == [7, 8]
    first, second = (Scripted(lambda path, t=t: {t: 0.5}) for t in (4, 5))  # type: ignore[misc]
    assert list(grown([first, second], [1.0, 1.0], 2).token_ids) == [4]


def test_beyond_the_compiled_limit_trees_are_grown_in_python() -> None:
    source = ranks_of(chances_of(random.Random(3), 4, 32))
    assert isinstance(make_growth(RowBudget(MAX_TREE_NODES + 1), [1.0]), GrowthInPython)
    wide = by_all([source], [1.0], MAX_TREE_NODES, RowBudget(MAX_TREE_NODES))
    assert shape_of(wide).num_nodes == MAX_TREE_NODES
    assert wide == by_all([source], [1.0], MAX_TREE_NODES, RowBudget(MAX_TREE_NODES + 1))


def test_a_tree_is_no_deeper_than_its_levels() -> None:
    tree = grown([Scripted(lambda path: {1: 1.0})], [1.0], 60)
    assert len(tree.token_ids) == MAX_LEVELS


def test_a_source_is_queried_once_per_open_path_and_never_for_unprofitable_ones() -> None:
    source = Scripted(lambda path: {1: 0.6, 2: 0.3})
    grown([source], [1.0], 4)
    assert len(source.requested) == len(set(source.requested)) * 3  # Python once, compiled twice
    assert (2, 2) not in source.requested
    dear = Scripted(lambda path: {1: 0.6, 2: 0.3})
    grown([dear], [1.0], 4, [0.0, 0.5, 1.0, 1.5])
    assert set(dear.requested) == {(), (1,)}


# Several sources ----------------------------------------------------------------------------------


def worths_of(sources: Sequence[Scripted], weights: Sequence[float]) -> dict[Path_, float]:
    """Return all paths of positive value, by exhaustive search."""
    worths: dict[Path_, float] = {(): 1.0}
    for path in (waiting := [()]):  # grows meanwhile
        output = [
            {t: array("f", [c])[0] for t, c in source.says(path).items()} for source in sources
        ]
        whole = sum(weight for weight, one in zip(weights, output, strict=True) if one)
        for token in {token for one in output for token in one}:
            pairs = list(zip(weights, output, strict=True))
            mixed = sum(weight * one.get(token, 0.0) for weight, one in pairs) / (whole or 1.0)
            alone = max((one.get(token, 0.0) for weight, one in pairs if not weight), default=0.0)
            if worths[path] * max(mixed, alone) > 1e-3:
                worths[*path, token] = worths[path] * max(mixed, alone)
                waiting.append((*path, token))  # type: ignore[arg-type]
    del worths[()]
    return worths


@pytest.mark.parametrize("weights", [(1.0, 1.0, 0.0), (1.0, 3.0, 0.0), (1.0, 0.0, 0.0)])
@pytest.mark.parametrize("num_rows", [1, 2, 3, 8, 24])
def test_a_tree_holds_the_most_valuable_of_all_sources(
    num_rows: int, weights: tuple[float, ...]
) -> None:
    rng = random.Random(num_rows)
    seen = set()
    for _ in range(60):
        sources = [
            heads_of(rng, rng.randrange(4), 3, 7),
            heads_of(rng, rng.randrange(3), 2, 7),
            suffixes_of(rng, 7),
        ]
        tree = grown(sources, weights, num_rows)
        nodes, worths = paths_of(tree), worths_of(sources, weights)
        least = min((worths.get(path, 0.0) for path in nodes), default=1.0)
        if least > 1e-3:
            assert len(nodes) == min(num_rows - 1, len(worths))
            left = [worth for path, worth in worths.items() if path not in nodes]
            assert not nodes or not left or least >= max(left) * 0.99999
        for path, proposers in nodes.items():
            output = [path[-1] in source.says(path[:-1]) for source in sources]
            assert proposers == tuple(n for n, s in zip(NAMES, output, strict=True) if s)
            seen.add(proposers)
        known = [(), *nodes]
        for children in shape_of(tree).children:
            row = [worths.get(known[child], 0.0) for child in children]
            assert all(left >= right * 0.99999 for left, right in pairwise(row))
        if least > 1e-3:
            assert tree.expected_accepted == pytest.approx(
                sum(worths[path] for path in nodes), rel=1e-5
            )
    if num_rows == 24:
        assert {("first",), ("third",), ("first", "third"), NAMES} <= seen


def test_every_draft_has_a_probability() -> None:
    first = Scripted(lambda path: {} if path else {5: 0.75, 6: 0.25})
    second = Scripted(lambda path: {} if path else {5: 0.25})
    pointing = Scripted(lambda path: {6: 0.5} if path in ((), (6,)) else {})
    tree = grown([first, second, pointing], [1.0, 1.0, 0.0], 9)
    by_path = dict(zip(paths_of(tree), memoryview(tree.chances).cast("f").tolist(), strict=True))
    assert by_path == {(5,): 0.5, (6,): 0.5, (6, 6): 0.5}


def test_a_silent_source_has_no_share_in_the_mixture() -> None:
    first = Scripted(lambda path: {5: 0.5} if len(path) < 2 else {})
    second = Scripted(lambda path: {} if path else {6: 0.5})
    tree = grown([first, second], [1.0, 1.0], 9)
    assert paths_of(tree).keys() == {(5,), (6,), (5, 5), (6, 5)}
    assert tree.expected_accepted == pytest.approx(0.25 + 0.25 + 0.125 + 0.125)


# What rows cost -----------------------------------------------------------------------------------


@pytest.mark.parametrize("num_rows", [1, 2, 5, 12])
def test_no_other_number_of_best_rows_has_a_higher_value(num_rows: int) -> None:
    rng = random.Random(num_rows)
    counts = set()
    for _ in range(120):
        sources, weights = [heads_of(rng, rng.randrange(4), 3, 7), suffixes_of(rng, 7)], (1.0, 0.0)
        steps = (rng.choice((0.0, 0.02, 0.1, 0.3)) for _ in range(num_rows - 1))
        prices = array("f", accumulate(steps, initial=0.0))
        tree = grown(sources, weights, num_rows, prices)
        free = [grown(sources, weights, rows).expected_accepted for rows in range(1, num_rows + 1)]
        best = max(worth - price for worth, price in zip(free, prices, strict=True))
        count = 1 + len(tree.token_ids)
        assert tree.expected_accepted - prices[count - 1] == pytest.approx(best, abs=1e-6)
        counts.add(count)
        # Near the end of the context there is less room.
        by_all(sources, weights, max(1, num_rows - 2), RowBudget(num_rows, prices))
    assert len(counts) > 1 or num_rows == 1


def test_free_rows_are_all_used() -> None:
    source = ranks_of([[0.5, 0.3, 1e-20]])
    for prices, tokens in (([], [0, 1, 2]), ([0, 0.1, 0.5, 0.5], [0]), ([0, 2, 2.1, 2.2], [])):
        tree = grown([source], [1.0], 4, prices)
        assert list(tree.token_ids) == tokens
        assert tree.expected_accepted == pytest.approx(sum([0.5, 0.3, 1e-20][: len(tokens)]))


@pytest.mark.parametrize(
    ("chances", "prices", "num_taken"),
    [
        ([0.5, 0.25], [0.0, 0.5], 0),
        ([0.5, 0.25], [0.0, 0.25, 0.5], 1),
        ([0.75, 0.25], [0.0, 0.75, 1.0], 0),
        ([0.4, 0.35], [0.0, 0.5, 0.55], 2),  # together they pay
    ],
)
def test_a_row_is_used_if_its_value_exceeds_its_cost(
    chances: list[float], prices: list[float], num_taken: int
) -> None:
    assert len(grown([ranks_of([chances])], [1.0], len(prices), prices).token_ids) == num_taken


def test_the_minimum_value_is_the_least_mean_cost_of_further_rows() -> None:
    rng = random.Random(4)
    for _ in range(500):
        steps = [rng.choice((0.0, rng.random())) for _ in range(rng.randrange(12))]
        prices = list(accumulate(steps, initial=0.0))
        for count, floor in enumerate(min_values(prices), start=1):
            shares = [
                (further - prices[before - 1]) / rows
                for before in range(count, len(prices))
                for rows, further in enumerate(prices[before:], start=1)
            ]
            assert floor == pytest.approx(min(shares, default=math.inf), abs=1e-6)
    assert len(min_values([])) == 0


def test_a_shape_is_built_of_its_nodes_child_counts() -> None:
    shape = TreeShape.from_children([2, 2, 1, 0, 1, 0, 0])
    paths = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 1, 0)]
    assert shape == TreeShape.from_paths(paths)
    assert TreeShape.from_children([0]) == TreeShape.root_only()


# Chains, trust, and what asking costs -------------------------------------------------------------


def some_sources(rng: random.Random) -> list[Scripted]:
    return [heads_of(rng, rng.randrange(1, 4), 3, 7), heads_of(rng, 3, 2, 7), suffixes_of(rng, 7)]


WEIGHTS = (1.0, 1.0, 0.0)


@pytest.mark.parametrize("num_rows", [1, 2, 5, 12])
def test_a_chain_continues_with_the_most_valuable_candidate(num_rows: int) -> None:
    rng = random.Random(num_rows)
    depths = set()
    for _ in range(40):
        sources = some_sources(rng)
        budget = RowBudget(num_rows, growth=CHAIN)
        chain = by_all(sources, WEIGHTS, num_rows, budget)
        shape = shape_of(chain)
        assert shape == TreeShape.chain(shape.num_nodes)
        path: Path_ = ()
        for token_id in chain.token_ids:
            below = {
                other[len(path)]: worth
                for other, worth in worths_of(sources, WEIGHTS).items()
                if len(other) == len(path) + 1 and other[: len(path)] == path
            }
            if below:
                assert below[token_id] >= max(below.values()) * 0.99999
            path = (*path, token_id)
        depths.add(shape.num_nodes)
    assert max(depths) > 2 or num_rows < 4


def test_a_chain_ends_at_an_unprofitable_row() -> None:
    source = Scripted(lambda path: {1: 0.8, 2: 0.6})
    prices = array("f", [0.0, 0.5, 1.0, 1.5, 2.0])
    chain = by_all([source], [1.0], 5, RowBudget(5, prices, growth=CHAIN))
    assert list(chain.token_ids) == [1, 1, 1]  # 0.8 ** 4 is less than a half
    tree = by_all([source], [1.0], 5, RowBudget(5, prices))
    assert list(tree.token_ids) == [1, 2, 1, 1]
    assert tree.expected_accepted > chain.expected_accepted


def trust_of(values: dict[tuple[int, int], float], num_sources: int) -> "array[float]":
    """Multipliers by source and kind, at every depth and in every range."""
    size = RATIO_DEPTHS * (len(RATIO_RANGES) + 1)
    cells = (
        values.get((source, kind), 1.0) for source in range(num_sources + 1) for kind in NodeRank
    )
    return array("f", [value for value in cells for _ in range(size)])


def test_siblings_that_are_never_accepted_get_no_rows() -> None:
    source = Scripted(lambda path: {1: 0.5, 2: 0.45, 3: 0.05})
    prices = array("f", [0.0, 0.1, 0.2, 0.3, 0.4])
    free = by_all([source], [1.0], 5, RowBudget(5, prices))
    assert shape_of(free) != TreeShape.chain(shape_of(free).num_nodes)
    trust = trust_of({(0, NodeRank.SECOND): 0.1, (0, NodeRank.LOWER): 0.1}, 1)
    found = by_all([source], [1.0], 5, RowBudget(5, prices, acceptance_ratios=trust))
    assert list(found.token_ids) == [1, 1, 1]
    assert found.expected_accepted == pytest.approx(0.5 + 0.25 + 0.125)
    # What it said is told as it said it.
    assert memoryview(found.chances).cast("f").tolist() == [0.5] * 3


def test_calibration_is_separate_per_combination_of_sources() -> None:
    first = Scripted(lambda path: {} if path else {5: 0.5, 6: 0.5})
    second = Scripted(lambda path: {} if path else {6: 0.5, 7: 0.5})
    both, kinds = [first, second], (NodeRank.GREEDY, NodeRank.SECOND, NodeRank.LOWER)
    for source, token_id in ((0, 5), (1, 7), (2, 6)):
        others = {(other, kind): 0.1 for other in range(3) for kind in kinds if other != source}
        budget = RowBudget(2, acceptance_ratios=trust_of(others, 2))
        assert list(by_all(both, [1.0, 1.0], 2, budget).token_ids) == [token_id]


@pytest.mark.parametrize("growth", GROWTHS)
def test_compiled_and_python_growth_agree_on_calibration_and_queries(growth: str) -> None:
    rng = random.Random(len(growth))
    shapes = set()
    for turn in range(150):
        num_rows = rng.choice((2, 5, 12, 24))
        steps = (rng.choice((0.0, 0.02, 0.1)) for _ in range(num_rows - 1))
        size = (len(WEIGHTS) + 1) * len(NodeRank) * RATIO_DEPTHS * (len(RATIO_RANGES) + 1)
        scales = (1, 0.1, 0.05) * MAX_LEVELS
        asking = [rng.choice((0.0, rng.random() * scale)) for scale in scales]
        budget = RowBudget(
            num_rows,
            array("f", accumulate(steps, initial=0.0)) if turn % 3 else array("f"),
            growth=growth,
            acceptance_ratios=array(
                "f", [rng.choice((0.0, 0.3, 1.0, 1.7, math.nan)) for _ in range(size)]
            ),
            draft_costs=array("f", asking),
        )
        shapes.add(shape_of(by_all(some_sources(rng), WEIGHTS, num_rows, budget)))
    assert len(shapes) > 3


def test_a_path_is_queried_if_its_next_token_is_worth_it() -> None:
    source = Scripted(lambda path: {1: 0.6, 2: 0.3} if len(path) < 3 else {})
    dear, cheap = [0.5, 0.4, 0.4], [0.5, 0.1, 0.4]
    for asking, asked in (
        (dear * 32, {()}),
        (cheap * 32, {(), (1,), (1, 1), (1, 1, 1)}),
        (cheap * 2 + dear * 30, {(), (1,)}),
        ([0.5, 0.1, 0.14] * 32, {(), (1,), (2,), (1, 1), (1, 1, 1)}),
    ):
        source.requested.clear()
        by_all([source], [1.0], 24, RowBudget(24, draft_costs=array("f", asking)))
        assert set(source.requested) == asked
