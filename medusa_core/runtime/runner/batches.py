"""Batches of a pass: a loaded layer computes one after the other before the next is loaded.

Source: Sheng et al., "FlexGen" (2023), section 4.1, the block schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Batch(NamedTuple):
    """Consecutive sequences of a pass that are computed at once.

    Attributes:
        sequences: Range of sequences.
        rows: Range of their rows in the pass.
    """

    sequences: slice
    rows: slice

    @property
    def num_rows(self) -> int:
        """Number of rows of all its sequences."""
        return int(self.rows.stop - self.rows.start)


def batches_of(counts: Sequence[int], most_sequences: int, most_rows: int) -> list[Batch]:
    """Divide a pass into batches of whole sequences.

    Args:
        counts: Number of rows of each sequence.
        most_sequences: Most sequences of a batch; 0 for any number.
        most_rows: Most rows of a batch, unless a single sequence has more.
    """
    batches: list[Batch] = []
    first = start = end = 0
    for place, count in enumerate(counts):
        is_full = most_sequences and place - first == most_sequences
        if place > first and (is_full or end + count - start > most_rows):
            batches.append(Batch(slice(first, place), slice(start, end)))
            first, start = place, end
        end += count
    return [*batches, Batch(slice(first, len(counts)), slice(start, end))]


def whole_pass(counts: Sequence[int]) -> Batch:
    """Return a batch of all sequences."""
    return Batch(slice(0, len(counts)), slice(0, sum(counts)))
