"""Base class of heads with a KV cache of their own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor

from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import share_threads
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.system.native.pool import Workers


class CachedHeads(ABC):
    """Heads with a KV cache.

    Attributes:
        caches: Memory for the caches; None until `reserve`.
    """

    def __init__(self, layers: ModelConfig, precision: Precision) -> None:
        """Prepare without allocating caches.

        Args:
            layers: Sizes of the layers that cache keys and values.
            precision: Dtypes and device.
        """
        self.caches: CachePool | None = None
        self._layer_sizes, self._precision = layers, precision

    @property
    @abstractmethod
    def linears(self) -> Sequence[QuantLinear]:
        """Linear layers of the heads, without those shared with the target."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the weights of the heads, without shared weights and caches."""

    def share_workers(self, workers: Workers) -> None:
        """Let the target's worker threads compute the heads, too."""
        share_threads(self.linears, workers)

    def reserve(self, num_rows: int) -> None:
        """Allocate KV memory for all conversations together.

        Args:
            num_rows: Rows (tokens) that fit.

        Raises:
            OutOfMemoryError: The device has no room.
        """
        precision = self._precision
        self.caches = CachePool(self._layer_sizes, precision.cache, precision.device, num_rows)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> KvCache:
        """Return an empty cache."""
        return TensorCache(self._layer_sizes, self._precision, capacity, memory=memory)
