"""Rows of a forward pass: token ids, positions, and the attention mask among them.

One copy of integers brings all of it to the device, where the mask is built: each copy would make
a step wait for the device, and a mask is larger than the bits that define it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.runtime.tree.shape import TreeShape

# CUDA attention kernels read masks in vectors of 16 bytes, and torch copies a mask whose rows don't
# begin at multiples of eight elements; this serves elements of one byte or more.
MASK_MULTIPLE = 16
_WORD_BITS = 32


@dataclass(frozen=True, slots=True)
class RowLayout:
    """Positions and mask of rows, which don't depend on their tokens.

    Attributes:
        offsets: Position of each row relative to the number of committed rows.
        visible: Bit mask of each row: bit j is set if it attends to row j. None for a causal mask.
    """

    offsets: Sequence[int]
    visible: Sequence[int] | None

    @classmethod
    def of_tree(cls, shape: TreeShape) -> RowLayout:
        """Return the layout of a token tree: a node attends to itself and its ancestors."""
        return cls(shape.depths, lines_of(shape))

    @classmethod
    def of_chain(cls, num_rows: int) -> RowLayout:
        """Return the layout of consecutive tokens."""
        return cls(range(num_rows), None)


class SomeRows(NamedTuple):
    """Rows of one sequence, on the host.

    Attributes:
        token_ids: Token ids.
        layout: Positions and mask.
        length: Number of committed rows before them.
        decided: All of them will be committed, such as those of a prompt.
    """

    token_ids: Sequence[int]
    layout: RowLayout
    length: int
    decided: bool = False


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of all sequences of a pass, on the device.

    Attributes:
        token_ids: [n], int64
        positions: [n], int64
        vectors: Embeddings of the tokens if the table isn't on the device; else None. [n, hidden]
        visible: Mask of each sequence, or None for a single row. [n, n], bool
    """

    token_ids: Tensor
    positions: Tensor
    vectors: Tensor | None
    visible: tuple[Tensor | None, ...]


def lines_of(shape: TreeShape) -> list[int]:
    """Return each node's bit mask of itself and its ancestors."""
    lines: list[int] = []
    for node, parent in enumerate(shape.parents):
        lines.append((lines[parent] if parent >= 0 else 0) | 1 << node)
    return lines


def place_rows(
    parts: Sequence[SomeRows], device: torch.device, vectors: Tensor | None = None
) -> Rows:
    """Copy rows to a device in one transfer.

    Args:
        parts: Rows of each sequence.
        device: Device that computes.
        vectors: Embeddings of their tokens, if the table isn't on the device. [n, hidden]
    """
    token_ids = [token_id for part in parts for token_id in part.token_ids]
    positions = [part.length + offset for part in parts for offset in part.layout.offsets]
    words = [_numbers_of(part) for part in parts]
    numbers = [*token_ids, *positions, *(word for some in words for word in some)]
    uploaded, placed = _upload(torch.tensor(numbers), vectors, device)
    count, at = len(token_ids), 2 * len(token_ids)
    visible: list[Tensor | None] = []
    for part, some in zip(parts, words, strict=True):
        num_rows = len(part.token_ids)
        if num_rows == 1:
            visible.append(None)
        elif some:
            visible.append(seen_by(uploaded[at : at + len(some)].view(num_rows, -1)))
        else:
            visible.append(torch.ones(num_rows, num_rows, dtype=torch.bool, device=device).tril_())
        at += len(some)
    return Rows(uploaded[:count], uploaded[count : 2 * count], placed, tuple(visible))


def _numbers_of(part: SomeRows) -> list[int]:
    """Return the mask as words; empty for a causal mask."""
    lines = part.layout.visible
    return [] if lines is None or len(lines) == 1 else words_of(lines, len(lines))


def words_of(visible: Sequence[int], num_rows: int) -> list[int]:
    """Split bit masks of `num_rows` columns into words of 32 bits, row by row."""
    low = (1 << _WORD_BITS) - 1
    starts = range(0, num_rows, _WORD_BITS)
    return [bits >> start & low for bits in visible for start in starts]


def seen_by(words: Tensor) -> Tensor:
    """Unpack the words of `words_of`. [n, words], int64 → [n, n], bool"""
    count = len(words)
    bits = torch.arange(_WORD_BITS, device=words.device)
    return (words.unsqueeze(2) >> bits & 1).bool().flatten(1)[:, :count]


def num_words(num_rows: int) -> int:
    """Number of words of a row's mask."""
    return -(-num_rows // _WORD_BITS)


def additive_mask(visible: Tensor, length: int, group: int, dtype: torch.dtype) -> Tensor:
    """Return the additive mask of rows after a prefix to which all of them attend.

    Args:
        visible: Mask among the rows. [n, n], bool
        length: Number of rows of the prefix.
        group: Query heads per KV head; the mask is repeated for each.
        dtype: Dtype of attention scores.

    Returns:
        [group · n, length + n]; rows begin at multiples of `MASK_MULTIPLE` elements.
    """
    count = len(visible)
    width = length + count
    mask = torch.zeros(group, count, padded_width(width), dtype=dtype, device=visible.device)
    mask[:, :, length:width].masked_fill_(~visible, float("-inf"))
    return mask.view(group * count, -1)[:, :width]


def padded_width(width: int) -> int:
    """Return the stride of a mask's rows."""
    return -(-width // MASK_MULTIPLE) * MASK_MULTIPLE


def _upload(
    numbers: Tensor, vectors: Tensor | None, device: torch.device
) -> tuple[Tensor, Tensor | None]:
    """Copy integers, and embeddings if there are any, in one transfer."""
    if vectors is None or device.type == "cpu":
        return numbers.to(device), vectors
    both = torch.cat([numbers.view(torch.uint8), vectors.flatten().view(torch.uint8)]).to(device)
    uploaded = both[: numbers.nbytes].view(torch.int64)
    return uploaded, both[numbers.nbytes :].view(vectors.dtype).view(vectors.shape)
