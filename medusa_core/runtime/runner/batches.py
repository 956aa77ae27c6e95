"""In which batches the sequences of a pass are computed: a loaded layer serves one after the other.

Source: Sheng et al., "FlexGen" (2023), section 4.1, the block schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Batch(NamedTuple):
    """Consecutive sequences of a pass, which are computed at once.

    Attributes:
        sequences: Which.
        rows: Their rows, among those of the pass.
    """

    sequences: slice
    rows: slice

    @property
    def num_rows(self) -> int:
        return int(self.rows.stop - self.rows.start)


def batches_of(counts: Sequence[int], most_sequences: int, most_rows: int) -> list[Batch]:
    """Divide a pass; a sequence stays whole.

    Args:
        counts: Of each sequence its rows.
        most_sequences: Of a batch; 0 for any number.
        most_rows: Of a batch of several sequences.
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
    """All of a pass as one batch."""
    return Batch(slice(0, len(counts)), slice(0, sum(counts)))
