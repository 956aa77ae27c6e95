"""Tree tables: accuracies and trees measured for given heads, or typical ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any

from medusa_core.errors import HeadsError
from medusa_core.i18n import tr
from medusa_core.runtime.tree.search import (
    SearchPath,
    best_paths,
    expected_length,
)
from medusa_core.runtime.tree.shape import TreeShape
from medusa_core.system.files.json_file import read_json

Accuracies = tuple[tuple[float, ...], ...]

_FILE = "medusa_trees.json"
_MAX_RANKS = 64
MAX_TREE_ROWS = 1024  # beyond, a step costs more than it could ever give

# Accuracies published for Medusa-1 on Vicuna-7B (top 1 and top 5 per head, others interpolated),
# for heads without a table of their own.
_TYPICAL = (
    (0.56, 0.10, 0.06, 0.04, 0.02, 0.015, 0.012, 0.010, 0.008, 0.007),
    (0.32, 0.11, 0.06, 0.04, 0.03, 0.020, 0.016, 0.013, 0.011, 0.010),
    (0.20, 0.09, 0.06, 0.04, 0.03, 0.020, 0.017, 0.014, 0.012, 0.011),
    (0.15, 0.08, 0.05, 0.04, 0.02, 0.018, 0.015, 0.013, 0.012, 0.011),
    (0.12, 0.07, 0.05, 0.03, 0.02, 0.016, 0.014, 0.013, 0.012, 0.011),
)


@dataclass(frozen=True, slots=True)
class TreePresets:
    """Trees for a set of heads.

    Attributes:
        head_accuracies: Probability that rank 0, 1, ... of each head is right.
        default_rows: Rows of the tree to use while the costs of steps are unknown.
        measured: Trees by row count, chosen by the accuracy of whole paths; better than those by
            the heads' accuracies, as heads aren't independent.
        drawn: Accuracies under sampling, by bucket of temperatures.
    """

    head_accuracies: Accuracies
    default_rows: int
    measured: Mapping[int, tuple[SearchPath, ...]] = field(default_factory=dict)
    drawn: Mapping[float, Accuracies] = field(default_factory=dict)

    def at(self, bucket: float) -> TreePresets:
        """The table for a bucket of temperatures; 0 for deterministic rules."""
        accuracies = self.drawn.get(bucket)
        return self if accuracies is None else TreePresets(accuracies, self.default_rows)

    def tree(self, num_rows: int) -> TreeShape:
        """The best tree with this many rows, root included."""
        paths = self.measured.get(num_rows) or best_paths(self.head_accuracies, num_rows - 1)
        shape = TreeShape.from_paths(paths)
        return shape.pruned(len(self.head_accuracies), _MAX_RANKS)

    def expected_length(self, shape: TreeShape) -> float:
        """Expected tokens per step of a tree, bonus included."""
        return expected_length(shape.paths[1:], self.head_accuracies)


def temperature_bucket(temperature: float) -> float:
    """Bucket of a temperature: rounded to halves, at least a half."""
    return round(2 * max(temperature, 0.5)) / 2


def typical_table(num_heads: int) -> TreePresets:
    """The table of typical Medusa heads."""
    return TreePresets(_TYPICAL[:num_heads], 16)


def read_tree_table(heads_dir: FilePath, num_heads: int) -> TreePresets:
    """Read the heads' table; without one, that of typical Medusa heads.

    Raises:
        HeadsError: The table is damaged.
    """
    path = heads_dir / _FILE
    if not path.exists():
        return typical_table(num_heads)
    raw = read_json(path)
    try:
        accuracies = _accuracies(raw["head_accuracies"], num_heads)
        drawn = {
            float(temperature): _accuracies(table, num_heads)
            for temperature, table in raw.get("drawn_accuracies", {}).items()
        }
        default_rows = _num_rows(raw["default_rows"])
        measured = {_num_rows(rows): _paths(paths) for rows, paths in raw.get("trees", {}).items()}
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise HeadsError(
            tr("{0} is damaged: {1}.", path.name, repr(error)),
            "Download the heads again, or delete the file.",
        ) from error
    return TreePresets(accuracies, default_rows, measured, drawn)


def _accuracies(raw: Any, num_heads: int) -> Accuracies:
    """Parse the accuracies of at most `num_heads` heads."""
    return tuple(tuple(_probability(value) for value in row) for row in raw)[:num_heads]


def _paths(raw: Any) -> tuple[SearchPath, ...]:
    """Parse rank paths; raises `ValueError` if a rank is out of range."""
    paths = tuple(tuple(int(rank) for rank in path) for path in raw)
    if any(not 0 <= rank < _MAX_RANKS for path in paths for rank in path):
        raise ValueError("a rank of a tree is out of range")
    return paths


def _num_rows(raw: Any) -> int:
    """Parse a number of rows; raises `ValueError` if it is out of range."""
    rows = int(raw)
    if not 1 <= rows <= MAX_TREE_ROWS:
        raise ValueError(f"a tree of {rows} rows is out of range")
    return rows


def _probability(value: Any) -> float:
    """Parse a probability; raises `ValueError` outside 0 to 1."""
    number = float(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{number} is no probability")
    return number
