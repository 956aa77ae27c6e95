"""Prefetching of offloaded KV rows, in the order in which a pass reads them.

begin(order)        all caches have reserved rows; reading begins
acquire(order[0])   the caches' `write`, `read` and `from_layer` find the rows of that layer
release()           new rows are stored
acquire(order[1])   …
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from medusa_core.errors import EngineError
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.offloaded.offloaded_kv import OffloadedKv
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.size import region_bytes


class LayerKv(NamedTuple):
    """The KV rows of one layer for the sequences of one batch.

    Attributes:
        layer: Index of an offloaded layer.
        caches: Caches of the sequences, all with rows reserved for the current pass.
    """

    layer: int
    caches: tuple[KvCache, ...]

    @property
    def rows(self) -> list[OffloadedKv]:
        """The offloaded rows of each cache."""
        found = [kv.offloaded for kv in self.caches if kv.offloaded is not None]
        if len(found) < len(self.caches):
            raise EngineError("Cached rows are prefetched that no pass has reserved.")
        return found


class KvTransfers(NamedTuple):
    """Sums of transfers since the prefetcher was made.

    Attributes:
        read_bytes: Bytes that were read.
        read_s: Seconds of reading, in parallel with computing or not.
        written_bytes: Bytes that were written, at commits, too.
        written_s: Seconds of writing.
    """

    read_bytes: int = 0
    read_s: float = 0.0
    written_bytes: int = 0
    written_s: float = 0.0


class KvPrefetcher(ABC):
    """Makes offloaded KV rows available to a pass; see the module."""

    @property
    def transfers(self) -> KvTransfers:
        """Bytes and seconds of transfers so far."""
        return KvTransfers()

    @property
    def waited_s(self) -> float:
        """Seconds that passes have waited for rows so far."""
        return 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of buffers in device memory."""
        return 0

    @property
    def host_bytes(self) -> int:
        """Bytes of buffers in main memory, where the device has its own."""
        return 0

    @abstractmethod
    def begin(self, order: Sequence[LayerKv]) -> None:
        """Begin a pass; the state of one that failed is discarded.

        Args:
            order: All that the pass will acquire, in that order.
        """

    @abstractmethod
    def acquire(self, rows: LayerKv) -> None:
        """Wait for rows and bind them to their caches; the previous ones are released.

        Args:
            rows: Next item of the order.

        Raises:
            TierError: They can't be read. Another try, or another pass, reads them again.
        """

    @abstractmethod
    def release(self) -> None:
        """Store the rows that the pass has written in the acquired layer.

        Raises:
            TierError: They can't be written. The pass has failed; its caches are unchanged.
        """


class HostPrefetcher(KvPrefetcher):
    """Makes rows available in main memory."""

    @abstractmethod
    def prefetched(self, index: int) -> Sequence[Tensor] | None:
        """Return rows that aren't acquired yet, with the committed ones in place.

        Args:
            index: Index in the order of `begin`.

        Returns:
            A view for each cache, [2, kv heads, slots, width]; None if they aren't read yet.
        """


def buffer_bytes(order: Sequence[LayerKv], store: KvStore) -> int:
    """Bytes of a buffer that takes any item of an order, with rows up to the longest context."""
    sizes = (
        len(rows.caches) * region_bytes(store.row_bytes(rows.layer), store.num_rows)
        for rows in order
    )
    return max(sizes, default=0)


def not_announced() -> EngineError:
    """Return the error for rows that aren't next in the order of `begin`."""
    return EngineError("Internal error: a pass read KV rows that were not prefetched.")
