"""What passes have moved and computed where not all lies on the device."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sums over all passes since a runner was made.

    Seconds of moving are those in which somebody moved, beside computing or not; what computing
    waited for is counted once more as `waited_s`.

    Attributes:
        weights_bytes: Of layers that came to the device.
        weights_s: Seconds that this took.
        rows_read_bytes: Of cached rows that came.
        rows_read_s: Likewise.
        rows_written_bytes: Of cached rows that went below.
        rows_written_s: Likewise.
        states_bytes: Of activations that went below or came back.
        states_s: Likewise.
        waited_s: Seconds in which nothing was computed, for what was on its way.
        computed_s: Seconds of passes, but for what they waited for and for activations.
        num_passes: Passes.
        num_layers: Layers that were computed, once for each batch of a pass.
        num_rows: Rows that were computed, once for each layer.
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
        """What has come on top."""
        pairs = ((getattr(self, one.name), getattr(before, one.name)) for one in fields(self))
        return Traffic(*(now - then for now, then in pairs))
