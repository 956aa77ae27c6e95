"""Cached rows that lie below the device, visited in the order in which a pass needs them.

begin(units)      all caches have reserved; reading begins
enter(units[0])   the caches' `write`, `read` and `from_layer` know the rows of that layer
leave()           what was written is kept
enter(units[1])   …
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor

from medusa_core.errors import EngineError
from medusa_core.runtime.kv.offloaded.rows import HomeRows
from medusa_core.runtime.kv.offloaded.unit import RowUnit


class RowVisits(ABC):
    """See the module."""

    @property
    def waited_s(self) -> float:
        """Seconds that a pass has waited for rows so far."""
        return 0.0

    @property
    def nbytes(self) -> int:
        """Bytes of the device's memory that rows come through."""
        return 0

    @property
    def host_bytes(self) -> int:
        """Bytes of the computer's memory, where the device has its own."""
        return 0

    @property
    def read_bytes(self) -> int:
        """Bytes that came so far."""
        return 0

    @property
    def read_s(self) -> float:
        """Seconds in which something was on its way, beside computing or not."""
        return 0.0

    @property
    def copied_s(self) -> float:
        """Seconds in which what came from a disk was laid out as attention takes it."""
        return 0.0

    @property
    def written_bytes(self) -> int:
        """Bytes that went below so far, at commits, too."""
        return 0

    @property
    def written_s(self) -> float:
        """Seconds that took."""
        return 0.0

    @abstractmethod
    def begin(self, units: Sequence[RowUnit]) -> None:
        """A pass begins; what one that failed has left is forgotten.

        Args:
            units: All that it will enter, in that order.
        """

    @abstractmethod
    def enter(self, unit: RowUnit) -> None:
        """The pass comes to a unit, and has left the one before.

        Args:
            unit: The next one that `begin` was told.

        Raises:
            TierError: It can't be read. Another try, or another pass, reads it again.
        """

    @abstractmethod
    def leave(self) -> None:
        """The pass leaves its unit: rows that it wrote are kept.

        Raises:
            TierError: They can't be written. The pass has failed; its caches are as before.
        """


class HostVisits(RowVisits):
    """Visits in the computer's memory."""

    @abstractmethod
    def ahead(self, place: int) -> Sequence[Tensor] | None:
        """A unit that will be entered: of each cache what holds its committed rows already.

        Args:
            place: Which of the units that `begin` was told.

        Returns:
            Views, each [2, kv heads, slots, width]; None where they aren't there yet.
        """


def rows_of_unit(unit: RowUnit) -> list[HomeRows]:
    """The rows of its caches, which have reserved some, in the home of its layer."""
    found = [kv.offloaded for kv in unit.caches]
    if None in found:
        raise EngineError("Cached rows are visited that no pass has reserved.")
    return [rows.holding(unit.layer) for rows in found if rows is not None]
