"""What a pass brings of cached rows at once."""

from __future__ import annotations

from typing import NamedTuple

from medusa_core.runtime.kv.cache import KvCache


class RowUnit(NamedTuple):
    """The cached rows of one layer of the sequences that are computed at once.

    Attributes:
        layer: A layer whose rows lie below the device.
        caches: Of the sequences; each has reserved the rows of the pass under way.
    """

    layer: int
    caches: tuple[KvCache, ...]
