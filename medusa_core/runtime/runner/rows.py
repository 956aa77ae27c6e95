"""The rows of one forward pass: their tokens, their places, and which of them see which.

All of it reaches the device in one copy of whole numbers, and the mask is made there: a step waits
for the device as rarely as possible, and no mask is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.runtime.tree.shape import TreeShape

# Attention kernels of CUDA read masks 16 bytes at a time; the narrowest numbers have two bytes, and
# torch copies masks whose rows don't begin at multiples of eight.
MASK_MULTIPLE = 16
_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class RowLayout:
    """What is known of rows before their tokens.

    Attributes:
        offsets: Position of each row behind the committed ones.
        sees: Of each row a number whose bit j says that it sees row j; None where each row sees
            all before it.
    """

    offsets: Sequence[int]
    sees: Sequence[int] | None

    @classmethod
    def of_tree(cls, shape: TreeShape) -> RowLayout:
        """A token tree's: a node sees itself and its ancestors."""
        return cls(shape.depths, lines_of(shape))

    @classmethod
    def of_chain(cls, num_rows: int) -> RowLayout:
        """Consecutive tokens'."""
        return cls(range(num_rows), None)


class SomeRows(NamedTuple):
    """Rows of one sequence before they are placed.

    Attributes:
        token_ids: Their tokens.
        layout: Their places.
        length: Committed rows before them.
        decided: All of them will be committed.
    """

    token_ids: Sequence[int]
    layout: RowLayout
    length: int
    decided: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of one pass where it is computed.

    Attributes:
        token_ids: [n], int64
        positions: [n], int64
        vectors: Their token vectors, where those lie elsewhere; else None. [n, hidden]
        sees: Of each sequence which of its rows sees which, or None for a single row. [n, n], bool
    """

    token_ids: Tensor
    positions: Tensor
    vectors: Tensor | None
    sees: tuple[Tensor | None, ...]


def lines_of(shape: TreeShape) -> list[int]:
    """Of each node a number whose bits say which nodes it sees: itself and its ancestors."""
    lines: list[int] = []
    for node, parent in enumerate(shape.parents):
        lines.append((lines[parent] if parent >= 0 else 0) | 1 << node)
    return lines


def place_rows(
    parts: Sequence[SomeRows], device: torch.device, vectors: Tensor | None = None
) -> Rows:
    """Bring rows to a device by one copy.

    Args:
        parts: Those of each sequence.
        device: Where they are computed.
        vectors: Their token vectors, where those don't lie on the device.
    """
    token_ids = [token_id for part in parts for token_id in part.token_ids]
    positions = [part.length + offset for part in parts for offset in part.layout.offsets]
    words = [_numbers_of(part) for part in parts]
    numbers = [*token_ids, *positions, *(word for some in words for word in some)]
    uploaded, placed = _upload(torch.tensor(numbers), vectors, device)
    count, at = len(token_ids), 2 * len(token_ids)
    sees: list[Tensor | None] = []
    for part, some in zip(parts, words, strict=True):
        num_rows = len(part.token_ids)
        if num_rows == 1:
            sees.append(None)
        elif some:
            sees.append(seen_by(uploaded[at : at + len(some)].view(num_rows, -1)))
        else:
            sees.append(torch.ones(num_rows, num_rows, dtype=torch.bool, device=device).tril_())
        at += len(some)
    return Rows(uploaded[:count], uploaded[count : 2 * count], placed, tuple(sees))


def _numbers_of(part: SomeRows) -> list[int]:
    """The words that say what rows see; none where that is known without."""
    lines = part.layout.sees
    return [] if lines is None or len(lines) == 1 else words_of(lines, len(lines))


def words_of(sees: Sequence[int], num_rows: int) -> list[int]:
    """The bits of all rows in words of 32, those of a row together, for `num_rows` columns."""
    low = (1 << _WORD_BITS) - 1
    starts = range(0, num_rows, _WORD_BITS)
    return [bits >> start & low for bits in sees for start in starts]


def seen_by(words: Tensor) -> Tensor:
    """Which row sees which, from `words_of`. [n, words], int64 → [n, n], bool"""
    count = len(words)
    bits = torch.arange(_WORD_BITS, device=words.device)
    return (words.unsqueeze(2) >> bits & 1).bool().flatten(1)[:, :count]


def num_words(num_rows: int) -> int:
    """Words of a row among so many."""
    return -(-num_rows // _WORD_BITS)


def additive_mask(sees: Tensor, length: int, group: int, dtype: torch.dtype) -> Tensor:
    """The mask of rows behind a prefix that all of them see.

    Args:
        sees: Which row sees which. [n, n], bool
        length: Rows of the prefix.
        group: Query heads that share keys; the mask is repeated for each.
        dtype: Of the attention scores.

    Returns:
        [group · n, length + n]; its rows begin at multiples of `MASK_MULTIPLE`.
    """
    count = len(sees)
    width = length + count
    mask = torch.zeros(group, count, padded_width(width), dtype=dtype, device=sees.device)
    mask[:, :, length:width].masked_fill_(~sees, float("-inf"))
    return mask.view(group * count, -1)[:, :width]


def padded_width(width: int) -> int:
    """Numbers from the beginning of a mask's row to that of the next."""
    return -(-width // MASK_MULTIPLE) * MASK_MULTIPLE


def _upload(
    numbers: Tensor, vectors: Tensor | None, device: torch.device
) -> tuple[Tensor, Tensor | None]:
    """Whole numbers, and token vectors if need be, by one copy."""
    if vectors is None or device.type == "cpu":
        return numbers.to(device), vectors
    both = torch.cat([numbers.view(torch.uint8), vectors.flatten().view(torch.uint8)]).to(device)
    uploaded = both[: numbers.nbytes].view(torch.int64)
    return uploaded, both[numbers.nbytes :].view(vectors.dtype).view(vectors.shape)
