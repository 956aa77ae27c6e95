"""Where weights, cache and activations of a batch lie, and in what blocks it is computed.

Source: Sheng et al., "FlexGen" (2023), section 4.3, table 1.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shares:
    """How much of something lies where; the three add up to 1.

    Attributes:
        device: In the memory of what computes.
        memory: In the computer's memory behind it.
        disk: On a disk.
    """

    device: float = 1.0
    memory: float = 0.0
    disk: float = 0.0

    @property
    def below(self) -> float:
        """What doesn't lie on the device."""
        return self.memory + self.disk


@dataclass(frozen=True, slots=True)
class Policy:
    """What a search finds, and what a batch carries out.

    Attributes:
        weights: Of the layers; whole layers lie somewhere.
        cache: Of keys and values; those of whole layers do.
        activations: Of what goes from one layer to the next; all of it lies in one place.
        batch: Sequences that are computed at once.
        num_batches: Batches that a loaded layer serves, one after the other.
        prompt_rows: Rows of prompts that one pass reads at most.
        cache_format: `q4`; empty for plain numbers.
        attended: Rows whose values attention takes, those of the largest weights; 0 for all.
        attention: Where attention to rows below the device is computed: `device`, to which they are
            brought ahead, or `memory`, where they lie.
    """

    weights: Shares = Shares()
    cache: Shares = Shares()
    activations: Shares = Shares()
    batch: int = 1
    num_batches: int = 1
    prompt_rows: int = 64
    cache_format: str = ""
    attended: int = 0
    attention: str = "device"

    @property
    def num_sequences(self) -> int:
        """Sequences of a block."""
        return self.batch * self.num_batches


@dataclass(frozen=True, slots=True)
class BlockBytes:
    """Bytes of what a policy places, wherever it lies.

    Attributes:
        weights: Of all layers.
        cache: Of the keys and values of a block.
        activations: Of a block, between two layers.
    """

    weights: int = 0
    cache: int = 0
    activations: int = 0


@dataclass(frozen=True, slots=True)
class PartRate:
    """What was expected of a part of the work, and what came of it.

    Attributes:
        name: One of `PARTS`.
        forecast: In its unit; None where nothing was expected.
        reached: Likewise; None while nothing is measured.
        unit: Such as `GB/s`, or `s` for what takes time.
        binds: The batch would be faster if this were.
    """

    name: str
    forecast: float | None
    reached: float | None
    unit: str
    binds: bool = False


PARTS = ("weights read", "cached rows read", "cached rows written", "computed", "waited")
