"""Tree tables: the most frequently accepted rank paths, stored with the heads."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath

from torch import Tensor

from medusa_core.runtime.tree.search import SearchPath
from medusa_core.runtime.tree.tables import temperature_bucket
from medusa_core.training.accuracy import head_accuracies

log = logging.getLogger(__name__)

FILE = "medusa_trees.json"
FORMAT_VERSION = 1


@dataclass(frozen=True, slots=True)
class TreesRecipe:
    """Settings of the tree tables.

    Attributes:
        num_ranks: Number of top tokens of each head that trees may use.
        tree_rows: Sizes (nodes) of the trees in the tables.
        default_rows: Size of the tree without calibration.
        text: Description of the measured texts.
    """

    num_ranks: int = 10
    tree_rows: tuple[int, ...] = (4, 8, 16, 24, 32, 48, 64)
    default_rows: int = 16
    text: str = "own answers"


def path_counts(ranks: Tensor, num_ranks: int) -> Counter[SearchPath]:
    """Count how often each rank path was the true one, over all positions.

    Heads aren't independent: if the first is right, the next is right more often. Counting whole
    paths captures that; products of head accuracies don't.
    """
    counts: Counter[SearchPath] = Counter()
    for row in ranks.tolist():
        path: SearchPath = ()
        for rank in row:
            if not 0 <= rank < num_ranks:
                break
            path = (*path, rank)
            counts[path] += 1
    return counts


def best_trees(
    counts: Counter[SearchPath], tree_rows: Sequence[int]
) -> dict[int, list[SearchPath]]:
    """Return the most frequent paths for each number of rows (the root is a row).

    A path is never more frequent than its parent, so the first n by count form a tree.
    """
    ordered = sorted(counts, key=lambda path: (-counts[path], len(path), path))
    return {
        rows: sorted(ordered[: rows - 1], key=lambda path: (len(path), path)) for rows in tree_rows
    }


def path_length(
    counts: Counter[SearchPath], paths: Sequence[SearchPath], num_positions: int
) -> float:
    """Return the expected tokens per step of a tree, including the bonus token."""
    return 1.0 + sum(counts[path] for path in paths) / max(1, num_positions)


def write_trees(folder: FilePath, ranks: Mapping[float, Tensor], recipe: TreesRecipe) -> None:
    """Write `medusa_trees.json`: accuracies for each temperature, and trees for greedy answers.

    Args:
        folder: Folder of the heads.
        ranks: Ranks by temperature, from `true_ranks`; 0 (greedy) is required.
        recipe: Settings.
    """
    greedy, num_positions = ranks[0.0], len(ranks[0.0])
    counts = path_counts(greedy, recipe.num_ranks)
    trees = best_trees(counts, recipe.tree_rows)
    tables = {t: head_accuracies(found, recipe.num_ranks) for t, found in ranks.items()}
    document = {
        "format_version": FORMAT_VERSION,
        "measured": {"num_positions": num_positions, "rule": "greedy", "text": recipe.text},
        "head_accuracies": _rounded(tables[0.0]),
        "drawn_accuracies": {
            str(temperature_bucket(t)): _rounded(table) for t, table in tables.items() if t
        },
        "trees": {str(rows): [list(path) for path in paths] for rows, paths in trees.items()},
        "default_rows": recipe.default_rows,
    }
    # one tree per line, for readable diffs
    text = json.dumps(document).replace('], "', '],\n "').replace('}, "', '},\n "')
    (folder / FILE).write_text(text + "\n", encoding="utf-8")
    for temperature, table in tables.items():
        for head, row in enumerate(table):
            log.info(
                "at %.1f, head %d: top 1 %.3f, 5 %.3f", temperature, head, row[0], sum(row[:5])
            )
    for rows, paths in trees.items():
        length = path_length(counts, paths, num_positions)
        log.info("tree of %d rows: %.2f tokens per step", rows, length)


def _rounded(table: Sequence[Sequence[float]]) -> list[list[float]]:
    """Round a table for JSON."""
    return [[round(value, 5) for value in row] for row in table]
