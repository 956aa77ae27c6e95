"""Probabilities of chosen tokens from rows of logits, by the compiled step where possible."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from ctypes import addressof, c_float
from typing import Protocol

import torch
from torch import Tensor

from medusa_core.messages import NUM_ALTERNATIVES
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import LANES

_BYTES = 4


class ScoreReader(Protocol):
    """Computes probabilities from logits; used by one thread."""

    def probabilities(self, scores: Tensor, rows: array[int], places: Sequence[int]) -> bytes:
        """Compute the softmax probabilities of some entries.

        Args:
            scores: Logits. [rows, columns]
            rows: Row of each entry; entries of a row are consecutive.
            places: Column of each entry.

        Returns:
            A float32 per entry.
        """

    def choices(self, scores: Tensor, rows: Sequence[int], choices: Sequence[int]) -> bytes:
        """Compute the probabilities of chosen tokens and of their best alternatives, for a trace.

        Args:
            scores: Logits. [n, vocabulary]
            rows: Rows of `scores` at which a token was chosen.
            choices: Token ids chosen at these rows.

        Returns:
            A float32 per choice; then five per choice for its best alternatives; then five int32
            per choice with their token ids.
        """


def reader_of(scores: Tensor) -> ScoreReader:
    """Return the fastest reader for logits of this dtype and device."""
    library = native_library()
    fits = scores.dtype == torch.float32 and scores.is_cpu and scores.shape[1] >= LANES
    return TorchSummary() if library is None or not fits else Summary(library)


class Summary:
    """Reads float32 logits on the CPU by the compiled step."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._probabilities, self._read_choices = library.probabilities, library.read_choices
        self._num_floats = 0
        self._address = 0
        self._make_room(256)

    def probabilities(self, scores: Tensor, rows: array[int], places: Sequence[int]) -> bytes:
        """Compute the softmax probabilities of some entries. float32"""
        scores = scores.contiguous()
        count = len(places)
        if count > self._num_floats:
            self._make_room(count)
        columns = array("i", places)
        self._probabilities(
            scores.data_ptr(),
            scores.shape[1],
            rows.buffer_info()[0],
            columns.buffer_info()[0],
            count,
            self._address,
        )
        return self._view[: _BYTES * count].tobytes()

    def choices(self, scores: Tensor, rows: Sequence[int], choices: Sequence[int]) -> bytes:
        """Compute the probabilities of chosen tokens and their best alternatives."""
        scores = scores.contiguous()
        count = len(rows)
        size = count * (1 + 2 * NUM_ALTERNATIVES)
        if size > self._num_floats:
            self._make_room(size)
        places = array("i", (*rows, *choices))
        self._read_choices(
            scores.data_ptr(),
            scores.shape[1],
            places.buffer_info()[0],
            count,
            self._address,
        )
        return self._view[: _BYTES * size].tobytes()

    def _make_room(self, num_floats: int) -> None:
        """Allocate the output buffer."""
        self._num_floats = num_floats
        self._room = (c_float * num_floats)()
        self._address = addressof(self._room)
        self._view = memoryview(self._room).cast("B")


class TorchSummary:
    """Reads logits of any dtype and device by torch, after one copy to the CPU."""

    def probabilities(self, scores: Tensor, rows: array[int], places: Sequence[int]) -> bytes:
        """Compute the softmax probabilities of some entries. float32"""
        chances = torch.softmax(scores.cpu(), dim=-1, dtype=torch.float32)
        return array("f", chances[rows.tolist(), places].tolist()).tobytes()

    def choices(self, scores: Tensor, rows: Sequence[int], choices: Sequence[int]) -> bytes:
        """Compute the probabilities of chosen tokens and their best alternatives."""
        chances = torch.softmax(scores.cpu()[list(rows)], dim=-1, dtype=torch.float32)
        wanted = torch.tensor(choices).unsqueeze(1)
        chosen = chances.gather(1, wanted)
        best = chances.scatter(1, wanted, -1.0).topk(NUM_ALTERNATIVES, dim=-1)
        packed = array("f", torch.cat([chosen.flatten(), best.values.flatten()]).tolist())
        return packed.tobytes() + array("i", best.indices.flatten().tolist()).tobytes()
