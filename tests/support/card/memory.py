"""What tensors take of the fake card's memory."""

from __future__ import annotations

import weakref

import torch
from torch import Tensor


class CardMemory:
    """Memory counter that counts each storage once while a tensor of the card uses it.

    Attributes:
        total_bytes: All there is.
        taken_bytes: What is taken now.
        peak_bytes: The most that was taken.
    """

    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self.taken_bytes = 0
        self.peak_bytes = 0
        self._tensors: dict[int, int] = {}

    def hold(self, tensor: Tensor, real: Tensor) -> None:
        """Count a tensor until it is gone.

        Raises:
            torch.OutOfMemoryError: There is no room for it.
        """
        storage = real.untyped_storage()
        place, num_bytes = storage.data_ptr(), storage.nbytes()
        if not self._tensors.get(place):
            if self.taken_bytes + num_bytes > self.total_bytes:
                raise torch.OutOfMemoryError(
                    f"CUDA out of memory. Tried to allocate {num_bytes} bytes."
                )
            self.taken_bytes += num_bytes
            self.peak_bytes = max(self.peak_bytes, self.taken_bytes)
        self._tensors[place] = self._tensors.get(place, 0) + 1
        weakref.finalize(tensor, self._let_go, place, num_bytes).atexit = False

    def _let_go(self, place: int, num_bytes: int) -> None:
        self._tensors[place] -= 1
        if not self._tensors[place]:
            del self._tensors[place]
            self.taken_bytes -= num_bytes
