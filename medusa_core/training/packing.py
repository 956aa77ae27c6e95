"""Documents to rows of equal length; no token sees a document other than its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

PADDING, PROMPT, ANSWER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """Token ids of one document and the kind of each (PROMPT or ANSWER)."""

    ids: npt.NDArray[np.uint16]
    kinds: npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows ready for training.

    Attributes:
        ids: tokens, uint16 [R, L + 1]; inputs are [:, :-1], targets [:, 1:].
        kinds: kind of each token as a target, uint8 [R, L + 1].
        document_ids: number of the document within the row, int16 [R, L + 1].
    """

    ids: npt.NDArray[np.uint16]
    kinds: npt.NDArray[np.uint8]
    document_ids: npt.NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.ids)

    def save(self, path: Path) -> None:
        """Write to one `.npz` file."""
        np.savez(path, ids=self.ids, kinds=self.kinds, document_ids=self.document_ids)

    @classmethod
    def load(cls, path: Path) -> PackedRows:
        """Read what `save` wrote."""
        with np.load(path) as data:
            return cls(data["ids"], data["kinds"], data["document_ids"])


@dataclass(frozen=True, slots=True)
class Batch:
    """One batch.

    Attributes:
        input_ids: int64 [B, L].
        target_ids: int64 [B, L].
        weights: loss weight of each target, float32 [B, L]; 0 where the input token belongs
            to another document than the target.
        document_ids: int16 [B, L], of the inputs.
    """

    input_ids: Tensor
    target_ids: Tensor
    weights: Tensor
    document_ids: Tensor


def pack_stream(documents: Sequence[EncodedDocument], row_length: int) -> PackedRows:
    """Join all documents and cut the stream into rows; long documents span several rows."""
    ids = np.concatenate([d.ids for d in documents])
    kinds = np.concatenate([d.kinds for d in documents])
    numbers = np.repeat(np.arange(len(documents)), [len(d.ids) for d in documents])
    width = row_length + 1
    num_rows = len(ids) // width
    by_row = numbers[: num_rows * width].reshape(num_rows, width)
    return PackedRows(
        ids[: num_rows * width].reshape(num_rows, width),
        kinds[: num_rows * width].reshape(num_rows, width),
        (by_row - by_row[:, :1]).astype(np.int16),
    )


def pack_whole(documents: Sequence[EncodedDocument], row_length: int) -> PackedRows:
    """Pack whole documents into rows, the first row of the last few with room taking each.

    Documents longer than a row are left out. Rows end in padding.
    """
    width = row_length + 1
    open_rows: list[list[EncodedDocument]] = []
    closed: list[list[EncodedDocument]] = []
    for document in documents:
        if len(document.ids) > width:
            continue
        row = next((r for r in open_rows if _used(r) + len(document.ids) <= width), None)
        if row is None:
            row = []
            open_rows.append(row)
            if len(open_rows) > 16:
                closed.append(open_rows.pop(0))
        row.append(document)
    return _stack(closed + open_rows, width)


def _used(row: Sequence[EncodedDocument]) -> int:
    return sum(len(document.ids) for document in row)


def _stack(rows: Sequence[Sequence[EncodedDocument]], width: int) -> PackedRows:
    ids = np.zeros((len(rows), width), dtype=np.uint16)
    kinds = np.full((len(rows), width), PADDING, dtype=np.uint8)
    numbers = np.full((len(rows), width), -1, dtype=np.int16)
    for index, row in enumerate(rows):
        start = 0
        for number, document in enumerate(row):
            stop = start + len(document.ids)
            ids[index, start:stop] = document.ids
            kinds[index, start:stop] = document.kinds
            numbers[index, start:stop] = number
            start = stop
    return PackedRows(ids, kinds, numbers)


def make_batch(rows: PackedRows, indices: npt.NDArray[np.int64], prompt_weight: float) -> Batch:
    """Gather rows into tensors.

    Args:
        rows: packed rows.
        indices: row numbers [B].
        prompt_weight: loss weight of prompt tokens; answers weigh 1.
    """
    ids = torch.from_numpy(rows.ids[indices].astype(np.int64))
    numbers = torch.from_numpy(rows.document_ids[indices])
    kinds = rows.kinds[indices]
    table = np.array([0.0, prompt_weight, 1.0], dtype=np.float32)
    weights = torch.from_numpy(table[kinds[:, 1:]])
    weights = weights * (numbers[:, 1:] == numbers[:, :-1])
    return Batch(ids[:, :-1], ids[:, 1:], weights, numbers[:, :-1].contiguous())


def batch_at(rows: PackedRows, step: int, num_rows: int, prompt_weight: float, seed: int) -> Batch:
    """The batch of one step: a seeded order of all rows per epoch, so that a run can resume."""
    steps_per_epoch = max(1, len(rows) // num_rows)
    epoch, place = divmod(step, steps_per_epoch)
    order = np.random.default_rng([seed, epoch]).permutation(len(rows))
    indices = order[place * num_rows : (place + 1) * num_rows].astype(np.int64)
    return make_batch(rows, indices, prompt_weight)


def document_mask(document_ids: Tensor) -> Tensor:
    """Which positions each position may see: earlier ones of its own document.

    Args:
        document_ids: [B, L].

    Returns:
        bool [B, 1, L, L], True where row i may see column j.
    """
    length = document_ids.shape[1]
    same = document_ids[:, :, None] == document_ids[:, None, :]
    causal = torch.ones(length, length, dtype=torch.bool, device=document_ids.device).tril()
    return (same & causal)[:, None]


def document_runs(document_ids: Tensor) -> list[int]:
    """Lengths of the documents, row after row; those of [B, L] numbers add up to B x L.

    Args:
        document_ids: [B, L]; a document's positions are neighbours.
    """
    rows = torch.arange(len(document_ids), device=document_ids.device)[:, None]
    both = torch.stack((rows.expand_as(document_ids), document_ids.long()), dim=-1).flatten(0, 1)
    lengths: list[int] = torch.unique_consecutive(both, return_counts=True, dim=0)[1].tolist()
    return lengths
