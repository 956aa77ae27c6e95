"""Cached rows that lie below the device, brought in the order in which a pass needs them."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.runtime.kv.offloaded.store import RowStore
from medusa_core.runtime.kv.offloaded.unit import RowUnit


class RowVisits:
    """Brings units to a ring of buffers on the device, some ahead of the one in use.

    rows.begin(units)      all caches have reserved; reading begins
    rows.enter(units[0])   its caches' `write`, `read` and `from_layer` know the rows of that layer
    rows.leave()           what was written is stored
    rows.enter(units[1])   …

    Attributes:
        waited_s: Seconds that `enter` has waited for the disk so far.
        read_bytes: Bytes that were read so far.
        read_s: Seconds in which the thread was reading.
        copied_s: Seconds in which it laid out what it had read, as attention wants it.
        written_bytes: Bytes of whole blocks that were written so far, at commits, too.
        written_s: Seconds that took.
    """

    waited_s: float
    read_bytes: int
    read_s: float
    copied_s: float
    written_bytes: int
    written_s: float

    def __init__(self, store: RowStore) -> None:
        """Begin a thread that reads.

        Args:
            store: Where the rows lie.
        """
        raise NotImplementedError

    @property
    def nbytes(self) -> int:
        """Bytes of the ring, with what is read before it is laid out."""
        raise NotImplementedError

    def begin(self, units: Sequence[RowUnit]) -> None:
        """A pass begins; what one that failed has left is forgotten.

        Args:
            units: All that it will enter, in that order.
        """
        raise NotImplementedError

    def enter(self, unit: RowUnit) -> None:
        """The pass comes to a unit, and has left the one before.

        Args:
            unit: The next one that `begin` was told.

        Raises:
            TierError: It can't be read. Another pass reads it again.
        """
        raise NotImplementedError

    def leave(self) -> None:
        """The pass leaves its unit: rows that it wrote are stored.

        Raises:
            TierError: They can't be written; the pass has failed, its caches are as before.
        """
        raise NotImplementedError
