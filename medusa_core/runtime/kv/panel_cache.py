"""The cache of the compiled step: keys and values as its attention multiplies them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import addressof

import torch
from torch import Tensor

from medusa_core.models.config import ModelConfig
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.system.native.lanes import LANES
from medusa_core.system.native.structs import CacheStruct


class PanelCache(KvCache):
    """Keys in panels of sixteen, of bfloat16 values in pairs; see `Cache` of cache.h.

    Attributes:
        address: What the library is given.
    """

    def __init__(
        self,
        library: ctypes.CDLL,
        config: ModelConfig,
        dtype: torch.dtype,
        capacity: int,
        memory: Tensor | None = None,
    ) -> None:
        """Take the memory.

        Args:
            library: What computes.
            config: Sizes of the target.
            dtype: Of keys and values: float32 or bfloat16.
            capacity: Slots; there may be a few more.
            memory: Where it lies, for whole panels; None takes memory of its own.
        """
        cpu = torch.device("cpu")
        super().__init__(config, dtype, cpu, _whole_panels(capacity), memory=memory)
        self._library = library
        self._struct = CacheStruct(
            words=self._parts[0].data_ptr(),
            capacity=self.capacity,
            layers=config.num_layers,
            kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            is_half=dtype == torch.bfloat16,
        )
        self.address = addressof(self._struct)

    def of_layer(self, layer: int) -> CacheStruct:
        """A layer of it as a cache of one layer; it lives until the cache is stretched."""
        one = CacheStruct.from_buffer_copy(self._struct)
        one.words, one.layers = self._parts[0][layer].data_ptr(), 1
        return one

    def stretch(self, memory: Tensor) -> None:
        super().stretch(memory)
        self._struct.words = self._parts[0].data_ptr()
        self._struct.capacity = self.capacity

    def from_layer(self, layer: int) -> CacheStruct:
        """What the library is given of the layers from one on."""
        at = self._parts[0][layer:].data_ptr()
        struct = CacheStruct.from_buffer_copy(self._struct)
        struct.words, struct.layers = at, self._struct.layers - layer
        return struct

    def committed(self) -> Tensor:
        layers, _, num_kv, slots, head_dim = self._parts[0].shape
        size = 2 if self._struct.is_half else 1
        keys = self._parts[0][:, 0].view(layers, num_kv, -1, head_dim // size, LANES, size)
        values = self._parts[0][:, 1].view(layers, num_kv, -1, head_dim, size)
        by_slot = (keys.transpose(3, 4), values.transpose(3, 4))
        rows = [part.reshape(layers, num_kv, slots, head_dim) for part in by_slot]
        return torch.stack(rows, dim=1)[:, :, :, : self.length].clone()

    def _first_rows(self, data: Tensor, length: int) -> Tensor:
        return data.flatten(3)[..., : _whole_panels(length) * data.shape[4]]

    def _move(self, slots: Sequence[int]) -> None:
        ids = (ctypes.c_int64 * len(slots))(*slots)
        self._library.keep_rows(self.address, self.length, addressof(ids), len(slots))


def _whole_panels(slots: int) -> int:
    return -(-slots // LANES) * LANES
