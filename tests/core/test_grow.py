"""Trees grown for one step: the most valuable ones, whoever grows them."""

import math
import random
from array import array

import pytest

from medusa_core.drafters.merge import NO_TRUST, Guesses, Known, merger, search
from medusa_core.tree.search import expected_length, grow
from medusa_core.tree.shape import TreeShape
from medusa_core.types import RowBudget

SIZES = [(heads, ranks) for heads in (1, 2, 5) for ranks in (1, 3, 8)]


def chances_of(rng: random.Random, num_heads: int, num_ranks: int) -> list[list[float]]:
    """What heads might give their guesses, as float32 has it."""
    drawn = (
        sorted((rng.random() for _ in range(num_ranks)), reverse=True) for _ in range(num_heads)
    )
    return [array("f", [chance / num_ranks for chance in row]).tolist() for row in drawn]


def flat(chances: list[list[float]]) -> "array[float]":
    return array("f", [chance for row in chances for chance in row])


def shape_of(children: bytes) -> TreeShape:
    return TreeShape.from_children(memoryview(children).cast("i").tolist())


def grown(chances: list[list[float]], num_rows: int, most: int = 40) -> list[TreeShape]:
    """The tree for the guesses 0, 1, ... of each head, by all who grow."""
    num_ranks = len(chances[0])
    guesses = Guesses(array("i", [*range(num_ranks)] * len(chances)), flat(chances), num_ranks)
    known = Known(guesses, array("i"), NO_TRUST)
    merged = [merge(known, num_rows) for merge in (merger(RowBudget(most)), search)]
    assert merged[0] == merged[1]
    return [shape_of(one.form[: len(one.form) // 2]) for one in merged]


@pytest.mark.parametrize(("num_heads", "num_ranks"), SIZES)
def test_a_grown_tree_is_worth_most_of_all_of_its_size(num_heads: int, num_ranks: int) -> None:
    rng = random.Random(10 * num_heads + num_ranks)
    for num_rows in (1, 2, 3, 8, 33):
        chances = chances_of(rng, num_heads, num_ranks)
        for shape in grown(chances, num_rows):
            best = grow(chances, num_rows - 1)
            assert shape == TreeShape.from_paths([path for path, _ in best])
            worth = expected_length(shape.paths[1:], chances)
            assert worth == pytest.approx(1 + sum(value for _, value in best), rel=1e-5)


@pytest.mark.parametrize("nothing", [0.0, math.nan])
def test_what_is_worth_nothing_takes_no_row(nothing: float) -> None:
    for shape in grown([[nothing] * 3] * 2, 9):
        assert shape.num_nodes == 1
    for shape in grown([[0.5, nothing, nothing], [nothing] * 3], 9):
        assert shape.paths == ((), (0,))


def test_of_equals_the_earlier_ranks_are_taken() -> None:
    guesses = Guesses(array("i", [7, 8, 9, 6]), array("f", [0.25] * 4), 4)
    for merge in (merger(RowBudget(9)), search):
        assert list(merge(Known(guesses, array("i"), NO_TRUST), 3).token_ids) == [7, 8]


def test_more_rows_than_are_grown_in_one_call_are_searched_for() -> None:
    chances = chances_of(random.Random(3), 4, 32)
    assert grown(chances, 1024, 1024)[0].num_nodes == 1024
    assert grown(chances, 1024, 1025)[0] == grown(chances, 1024, 1024)[0]


def test_a_shape_is_built_of_how_many_children_its_nodes_have() -> None:
    shape = TreeShape.from_children([2, 2, 1, 0, 1, 0, 0])
    paths = [(0,), (1,), (0, 0), (0, 1), (1, 0), (0, 1, 0)]
    assert shape == TreeShape.from_paths(paths)
    assert TreeShape.from_children([0]) == TreeShape.root_only()
