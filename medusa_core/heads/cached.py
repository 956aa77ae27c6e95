"""What heads with keys and values of their own have in common: room for these, and threads."""

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
    """See the module.

    Attributes:
        caches: Room for their caches, once it is reserved.
    """

    def __init__(self, layers: ModelConfig, precision: Precision) -> None:
        """Begin without room.

        Args:
            layers: Sizes of the layers that keep keys and values, as of a target with so many.
            precision: Where and in which dtype they run.
        """
        self.caches: CachePool | None = None
        self._layer_sizes, self._precision = layers, precision

    @property
    @abstractmethod
    def linears(self) -> Sequence[QuantLinear]:
        """Their own matrices."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that they hold, what the target lends them and their caches left out."""

    def share_workers(self, workers: Workers) -> None:
        """Let the target's threads compute the heads, too."""
        share_threads(self.linears, workers)

    def reserve(self, num_rows: int) -> None:
        """Reserve room for so many rows of all conversations together.

        Raises:
            OutOfMemoryError: The device has no room.
        """
        precision = self._precision
        self.caches = CachePool(self._layer_sizes, precision.cache, precision.device, num_rows)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> KvCache:
        """An empty cache of their own."""
        return TensorCache(self._layer_sizes, self._precision, capacity, memory=memory)
