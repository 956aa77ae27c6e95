"""Ready trees: measured for given heads, or a general one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from medusa_core.errors import HeadsError
from medusa_core.models.config import read_json
from medusa_core.tree.search import best_paths, expected_length
from medusa_core.tree.shape import TreeShape

_FILE = "medusa_trees.json"

# Accuracies published for Medusa-1 on Vicuna-7B (top 1 and top 5 per head, interpolated between):
# what to expect of heads that come without a table of their own.
_TYPICAL = (
    (0.56, 0.10, 0.06, 0.04, 0.02, 0.015, 0.012, 0.010, 0.008, 0.007),
    (0.32, 0.11, 0.06, 0.04, 0.03, 0.020, 0.016, 0.013, 0.011, 0.010),
    (0.20, 0.09, 0.06, 0.04, 0.03, 0.020, 0.017, 0.014, 0.012, 0.011),
    (0.15, 0.08, 0.05, 0.04, 0.02, 0.018, 0.015, 0.013, 0.012, 0.011),
    (0.12, 0.07, 0.05, 0.03, 0.02, 0.016, 0.014, 0.013, 0.012, 0.011),
)


@dataclass(frozen=True, slots=True)
class TreeTable:
    """Trees for a set of heads.

    Attributes:
        head_accuracies: Per head, the probability that rank 0, 1, ... is right.
        default_rows: Rows of the tree to use where step costs are unknown.
    """

    head_accuracies: tuple[tuple[float, ...], ...]
    default_rows: int

    def tree(self, num_rows: int) -> TreeShape:
        """The best tree with this many rows, root included."""
        return TreeShape.from_paths(best_paths(self.head_accuracies, num_rows - 1))

    def expected_length(self, shape: TreeShape) -> float:
        """Expected tokens per step of a tree, bonus included."""
        return expected_length(shape.paths[1:], self.head_accuracies)


def read_tree_table(heads_dir: Path, num_heads: int) -> TreeTable:
    """The table that lies beside the heads, else what is typical of Medusa heads.

    Raises:
        HeadsError: The table is damaged.
    """
    path = heads_dir / _FILE
    if not path.exists():
        return TreeTable(_TYPICAL[:num_heads], 16)
    raw = read_json(path)
    try:
        accuracies = tuple(
            tuple(_probability(value) for value in row) for row in raw["head_accuracies"]
        )
        default_rows = int(raw["default_rows"])
    except (KeyError, TypeError, ValueError) as error:
        raise HeadsError(
            f"{path.name} is damaged: {error!r}.", "Download the heads again, or delete the file."
        ) from error
    return TreeTable(accuracies[:num_heads], max(1, default_rows))


def _probability(value: Any) -> float:
    number = float(value)
    if not 0 <= number <= 1:
        raise ValueError(f"{number} is no probability")
    return number
