"""Documents to rows of equal length; no token sees a document other than its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from medusa_core.training.documents import EncodedDocument, TokenIds
from medusa_core.training.order import sample_order

PADDING = 0  # beside the kinds of documents: PROMPT and ANSWER
OPEN_ROWS = 16  # that a document may still be put into


@dataclass(frozen=True, slots=True)
class PackedRows:
    """Rows ready for training.

    Attributes:
        ids: tokens, of the documents' dtype [R, L + 1]; inputs are [:, :-1], targets [:, 1:].
        kinds: kind of each token as a target, uint8 [R, L + 1].
        document_ids: number of the document within the row, int16 [R, L + 1].
    """

    ids: TokenIds
    kinds: npt.NDArray[np.uint8]
    document_ids: npt.NDArray[np.int16]

    def __len__(self) -> int:
        return len(self.ids)

    def documents(self, indices: Sequence[int]) -> Iterator[EncodedDocument]:
        """The documents, or parts of them, that lie in some rows; rows keep no seeds."""
        for row in indices:
            numbers = self.document_ids[row]
            for number in range(int(numbers.max()) + 1):
                inside = numbers == number
                yield EncodedDocument(self.ids[row][inside], self.kinds[row][inside])

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

    def to(self, device: str) -> Batch:
        """The same batch on another device."""
        return Batch(
            self.input_ids.to(device),
            self.target_ids.to(device),
            self.weights.to(device),
            self.document_ids.to(device),
        )


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
            if len(open_rows) > OPEN_ROWS:
                closed.append(open_rows.pop(0))
        row.append(document)
    return _stack(closed + open_rows, width)


def _used(row: Sequence[EncodedDocument]) -> int:
    return sum(len(document.ids) for document in row)


def _stack(rows: Sequence[Sequence[EncodedDocument]], width: int) -> PackedRows:
    dtype = np.result_type(*(document.ids for row in rows for document in row))
    ids: TokenIds = np.zeros((len(rows), width), dtype=dtype)
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
    """The batch of one step; see `sample_order`."""
    return make_batch(rows, sample_order(step, len(rows), num_rows, seed), prompt_weight)
