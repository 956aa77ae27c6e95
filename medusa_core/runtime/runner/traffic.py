"""Counters of data moved between tiers."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sums over all passes since a runner was made.

    Seconds of a transfer include those in parallel with computing; seconds that computing waited
    for transfers are also counted as `waited_s`.

    Attributes:
        weights_bytes: Bytes of layers that were read.
        weights_s: Seconds of reading them.
        rows_read_bytes: Bytes of KV rows that were read.
        rows_read_s: Seconds of reading them.
        rows_written_bytes: Bytes of KV rows that were written.
        rows_written_s: Seconds of writing them.
        states_bytes: Bytes of activations that were written or read.
        states_s: Seconds of moving them.
        waited_s: Seconds in which computing waited for transfers.
        computed_s: Seconds of passes, without `waited_s` and `states_s`.
        num_passes: Number of passes.
        num_layers: Number of layers computed, counting each batch.
        num_rows: Number of rows in all passes.
    """

    weights_bytes: int = 0
    weights_s: float = 0.0
    rows_read_bytes: int = 0
    rows_read_s: float = 0.0
    rows_written_bytes: int = 0
    rows_written_s: float = 0.0
    states_bytes: int = 0
    states_s: float = 0.0
    waited_s: float = 0.0
    computed_s: float = 0.0
    num_passes: int = 0
    num_layers: int = 0
    num_rows: int = 0

    def since(self, before: Traffic) -> Traffic:
        """Return the difference to earlier counters."""
        pairs = ((getattr(self, one.name), getattr(before, one.name)) for one in fields(self))
        return Traffic(*(current - then for current, then in pairs))
