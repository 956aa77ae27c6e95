"""Token trees: shape, mask, positions, pruning, and the search for the best one."""

import itertools
import json
import random
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from medusa_core.errors import HeadsError, RequestError
from medusa_core.runtime.runner.rows import (
    RowLayout,
    SomeRows,
    additive_mask,
    place_rows,
)
from medusa_core.runtime.tree.search import (
    best_paths,
    expected_length,
)
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.tables import (
    TreePresets,
    read_tree_table,
)
from tests.benchmarks.dense_trees import (
    best_dense,
    dense_paths,
)
from tests.support.engine.fakes import random_shape
from tests.support.engine.tree_paths import mask_of, path_to

CPU = torch.device("cpu")
PATHS = [(1,), (0,), (0, 1), (0, 0), (1, 0), (0, 0, 0)]
shapes = st.builds(
    lambda seed, num_nodes: random_shape(random.Random(seed), num_nodes),
    st.integers(0, 10**6),
    st.integers(1, 40),
)


def test_nodes_are_sorted_by_length_then_rank_with_parents_first() -> None:
    shape = TreeShape.from_paths(PATHS)
    assert shape.paths == ((), (0,), (1,), (0, 0), (0, 1), (1, 0), (0, 0, 0))
    assert shape.parents == (-1, 0, 0, 1, 1, 2, 3)
    assert shape.children == ((1, 2), (3, 4), (5,), (6,), (), (), ())
    assert shape.depths == (0, 1, 1, 2, 2, 2, 3)
    assert shape.num_ranks == (2, 2, 1)
    assert shape.max_depth == 3


def test_a_drafts_rank_is_its_position_among_all_drafts() -> None:
    shape = TreeShape.from_paths([(0,), (2,), (0, 1), (2, 0), (0, 1, 3)])
    for num_ranks in (4, 10, 4):
        ranks = (0, 2, num_ranks + 1, num_ranks, 2 * num_ranks + 3)
        assert shape.places_among(num_ranks) == ranks


@pytest.mark.parametrize(
    "paths", [[(0, 0)], [(0,), (1, 0)], [(0,), (0, 0, 0)], [()], [(0,), (-1,)]]
)
def test_from_paths_refuses_orphans_and_senseless_paths(paths: list[tuple[int, ...]]) -> None:
    with pytest.raises(RequestError):
        TreeShape.from_paths(paths)


def test_pruning_drops_ranks_that_the_heads_lack_with_their_subtrees() -> None:
    shape = TreeShape.from_paths(PATHS)
    assert shape.pruned(2, 10).paths == ((), (0,), (1,), (0, 0), (0, 1), (1, 0))
    assert shape.pruned(3, 1).paths == ((), (0,), (0, 0), (0, 0, 0))
    assert shape.pruned(0, 10) == TreeShape.root_only()


@given(shape=shapes, num_rows=st.integers(-1, 50))
def test_the_first_rows_of_a_tree_are_a_tree(shape: TreeShape, num_rows: int) -> None:
    cut = shape.first_rows(num_rows)
    assert cut.num_nodes == min(max(1, num_rows), shape.num_nodes)
    assert cut == TreeShape.from_paths(cut.paths[1:])


@given(shape=shapes)
def test_paths_and_parents_are_consistent(shape: TreeShape) -> None:
    for node in range(shape.num_nodes):
        above = path_to(shape, node)
        assert [shape.paths[one] for one in above] == [
            shape.paths[node][:length] for length in range(shape.depths[node] + 1)
        ]
        assert list(above) == sorted(above)


@given(shape=shapes, other=shapes)
def test_a_merged_tree_shares_the_root(shape: TreeShape, other: TreeShape) -> None:
    both, shift = shape.merged_at_root(other), shape.num_nodes - 1
    assert both.first_rows(shape.num_nodes) == shape
    for node in range(1, other.num_nodes):
        below_root = path_to(other, node)[1:]
        assert path_to(both, node + shift) == (0, *(one + shift for one in below_root))


def test_child_with_finds_a_token_only_among_the_children() -> None:
    tree = TokenTree(TreeShape.from_paths(PATHS), (9, 5, 6, 7, 8, 5, 9))
    assert tree.child_with(0, 6) == 2
    assert tree.child_with(1, 8) == 4
    assert tree.child_with(2, 5) == 5
    assert tree.child_with(0, 7) is None
    assert tree.child_with(6, 9) is None


@given(shape=shapes, length=st.integers(0, 40))
@settings(deadline=None)
def test_the_mask_shows_the_prefix_and_the_ancestors_to_every_query_head(
    shape: TreeShape, length: int
) -> None:
    count = shape.num_nodes
    rows = place_rows([SomeRows(range(count), RowLayout.of_tree(shape), length)], CPU)
    assert rows.token_ids.tolist() == list(range(count))
    assert rows.positions.tolist() == [length + depth for depth in shape.depths]
    (seen,) = rows.visible
    if count == 1:
        assert seen is None
        return
    assert seen is not None
    assert seen.tolist() == mask_of(shape)
    sees = torch.cat([torch.ones(count, length).bool(), seen], dim=1)
    expected = torch.zeros(sees.shape).masked_fill_(~sees, float("-inf"))
    mask = additive_mask(seen, length, 2, torch.float32)
    assert torch.equal(mask, expected.repeat(2, 1))


@pytest.mark.parametrize("count", [31, 32, 33, 64, 65, 100])
def test_trees_of_more_rows_than_a_words_bits_see_their_ancestors(count: int) -> None:
    parents = (-1, *((7 * node) % node for node in range(1, count)))
    shape = TreeShape(tuple((0,) * node for node in range(count)), parents)
    rows = place_rows([SomeRows(range(count), RowLayout.of_tree(shape), 5)], CPU)
    (seen,) = rows.visible
    assert seen is not None
    assert seen.tolist() == mask_of(shape)


def test_chains_see_all_earlier_nodes() -> None:
    (sees,) = place_rows([SomeRows(range(4), RowLayout.of_chain(4), 2)], CPU).visible
    assert sees is not None
    mask = additive_mask(sees, 2, 1, torch.float32)
    assert torch.equal(mask == 0, torch.ones(4, 6).tril(diagonal=2).bool())


# The best tree ------------------------------------------------------------------------------------

accuracy_rows = st.lists(
    st.lists(st.floats(0.01, 0.6), min_size=1, max_size=3).map(lambda r: sorted(r, reverse=True)),
    min_size=1,
    max_size=3,
)


def brute_force(accuracies: list[list[float]], num_nodes: int) -> float:
    """The best expected length over all trees of that size, by trying them all."""
    deep = range(1, len(accuracies) + 1)
    everything = [
        path
        for depth in deep
        for path in itertools.product(*(range(len(row)) for row in accuracies[:depth]))
    ]
    best = 1.0
    for chosen in itertools.combinations(everything, min(num_nodes, len(everything))):
        kept = {(), *chosen}
        if all(path[:-1] in kept for path in chosen):
            best = max(best, expected_length(chosen, accuracies))
    return best


@settings(max_examples=40, deadline=None)
@given(accuracies=accuracy_rows, num_nodes=st.integers(0, 4))
def test_best_paths_equal_the_best_of_all_trees(
    accuracies: list[list[float]], num_nodes: int
) -> None:
    paths = best_paths(accuracies, num_nodes)
    TreeShape.from_paths(paths)  # whole: no orphans
    assert expected_length(paths, accuracies) == pytest.approx(brute_force(accuracies, num_nodes))


def test_a_dense_tree_has_all_combinations_of_the_best_ranks() -> None:
    assert dense_paths((2, 3)) == [(0,), (1,), *((a, b) for a in range(2) for b in range(3))]
    assert dense_paths(()) == []


@settings(max_examples=40, deadline=None)
@given(accuracies=accuracy_rows, num_nodes=st.integers(0, 12))
def test_the_best_dense_tree_is_the_best_of_all_that_fit(
    accuracies: list[list[float]], num_nodes: int
) -> None:
    widths = best_dense(accuracies, num_nodes)
    found = expected_length(dense_paths(widths), accuracies)
    assert len(dense_paths(widths)) <= num_nodes
    for depth in range(1, len(accuracies) + 1):
        for other in itertools.product(*(range(1, len(row) + 1) for row in accuracies[:depth])):
            if len(dense_paths(other)) <= num_nodes:
                assert expected_length(dense_paths(other), accuracies) <= found + 1e-12
    sparse = best_paths(accuracies, num_nodes)
    assert expected_length(sparse, accuracies) >= found - 1e-9


@given(accuracies=accuracy_rows)
@settings(deadline=None)
def test_a_larger_best_tree_contains_the_smaller(accuracies: list[list[float]]) -> None:
    trees = [set(best_paths(accuracies, n)) for n in range(8)]
    assert all(small <= large for small, large in itertools.pairwise(trees))


def test_best_paths_handle_no_heads_and_worthless_ranks() -> None:
    assert best_paths([], 5) == []
    assert best_paths([[]], 5) == []
    assert best_paths([[0.5, 0.0, 0.0]], 5) == [(0,), (1,)]
    # A later rank that was counted better than an earlier one is held down to it.
    assert best_paths([[0.2, 0.9], [0.5]], 2) == [(0,), (1,)]


def test_expected_length_is_the_sum_of_path_probabilities() -> None:
    accuracies = [[0.5, 0.2], [0.4]]
    assert expected_length([(0,), (1,), (0, 0)], accuracies) == pytest.approx(1.9)
    assert expected_length([(0, 0, 0), (7,)], accuracies) == 1.0


def test_a_table_without_a_file_serves_any_number_of_heads(tmp_path: Path) -> None:
    for num_heads in (1, 5, 9):
        table = read_tree_table(tmp_path, num_heads)
        shape = table.tree(16)
        # A single head offers ten ranks and no more.
        assert shape.num_nodes == (11 if num_heads == 1 else 16)
        assert 1 <= shape.max_depth <= num_heads
        assert table.expected_length(shape) > 1.5


@pytest.mark.parametrize(
    "text",
    [
        '{"default_rows": 4}',
        '{"head_accuracies": 3, "default_rows": 4}',
        '{"head_accuracies": [[0.5, "x"]], "default_rows": 4}',
        '{"head_accuracies": [[1.5]], "default_rows": 4}',
        '{"head_accuracies": [[0.5]], "default_rows": "many"}',
    ],
)
def test_a_damaged_table_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "medusa_trees.json").write_text(text)
    with pytest.raises(HeadsError) as caught:
        read_tree_table(tmp_path, 2)
    assert caught.value.hint


def test_a_table_of_one_row_is_the_root() -> None:
    assert TreePresets(((0.5,),), 1).tree(1) == TreeShape.root_only()


def write_table(folder: Path, **more: object) -> Path:
    table = {"head_accuracies": [[0.6, 0.1], [0.5, 0.1]], "default_rows": 3, **more}
    (folder / "medusa_trees.json").write_text(json.dumps(table), encoding="utf-8")
    return folder


def test_a_measured_tree_takes_precedence_over_a_computed_one(tmp_path: Path) -> None:
    table = read_tree_table(write_table(tmp_path, trees={"3": [[0], [1]]}), num_heads=2)
    assert table.tree(3).paths == ((), (0,), (1,))
    # No tree of four rows was measured: the accuracies choose.
    assert table.tree(4).paths == ((), (0,), (1,), (0, 0))


def test_a_measured_tree_is_pruned_to_the_available_heads(tmp_path: Path) -> None:
    table = read_tree_table(write_table(tmp_path, trees={"3": [[0], [0, 0]]}), num_heads=1)
    assert table.tree(3).paths == ((), (0,))


@pytest.mark.parametrize(
    "more",
    [
        {"trees": [1]},
        {"trees": {"3": [[-1]]}},
        {"trees": {"x": [[0]]}},
        {"trees": {"3": 7}},
        {"head_accuracies": [[2.0]]},
        {"default_rows": "many"},
    ],
)
def test_a_damaged_value_in_a_table_is_refused(tmp_path: Path, more: dict[str, object]) -> None:
    with pytest.raises(HeadsError, match="damaged"):
        read_tree_table(write_table(tmp_path, **more), num_heads=2)
