"""Step costs of this machine, and the tree that they recommend."""

import pytest

from medusa_core.engine.calibration import ROW_COUNTS, best_rows, measure_draft_s, measure_step_s
from medusa_core.target import Target


def test_every_row_count_and_the_draft_are_timed(tiny: Target) -> None:
    assert tuple(measure_step_s(tiny)) == ROW_COUNTS
    assert all(seconds > 0 for seconds in measure_step_s(tiny).values())
    assert measure_draft_s(tiny) > 0


@pytest.mark.parametrize(
    ("step_s", "draft_s", "rows"),
    [
        ({1: 1.0, 4: 1.0, 8: 9.0}, 0.0, 4),  # rows are free until they aren't
        ({1: 1.0, 4: 8.0, 8: 16.0}, 0.0, 1),  # no tree pays for itself
        ({1: 1.0, 4: 1.0, 8: 1.0}, 9.0, 1),  # nor does the draft
        ({1: 1.0, 4: 1.0, 8: 1.0, 16: 9.0}, 0.1, 8),
    ],
)
def test_the_fastest_tree_is_chosen(
    tiny: Target, step_s: dict[int, float], draft_s: float, rows: int
) -> None:
    assert best_rows(tiny, step_s, draft_s) == rows


def test_of_trees_as_fast_as_each_other_the_larger_is_chosen(tiny: Target) -> None:
    assert tiny.trees is not None
    small, large = (tiny.trees.expected_length(tiny.trees.tree(rows)) for rows in (4, 8))
    same_speed = {1: 9.0, 4: small, 8: large}
    assert best_rows(tiny, same_speed, 0.0) == 8
    assert best_rows(tiny, same_speed | {8: large * 1.02}, 0.0) == 8
    assert best_rows(tiny, same_speed | {8: large * 1.06}, 0.0) == 4
