"""The offload policy of a batch: places of weights, KV cache and activations, and batch sizes.

Source: Sheng et al., "FlexGen" (2023), section 4.3, table 1.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shares:
    """Fractions of data on the device, in memory and on disk; they add up to 1.

    Attributes:
        device: Fraction on the compute device.
        memory: Fraction in host memory.
        disk: Fraction on disk.
    """

    device: float = 1.0
    memory: float = 0.0
    disk: float = 0.0

    @property
    def below(self) -> float:
        """Fraction that is offloaded."""
        return self.memory + self.disk


@dataclass(frozen=True, slots=True)
class Policy:
    """An offload policy, as FlexGen's search finds it.

    Attributes:
        weights: Places of the layers' weights, by whole layers.
        cache: Places of the KV cache, by whole layers.
        activations: Place of the activations between layers; all are in one place.
        batch: Sequences per batch.
        num_batches: Batches that a loaded layer computes, one after the other.
        prompt_rows: Most prompt rows of one pass.
        cache_format: Format of the KV cache: `q4`; empty for the compute dtype.
        attended: Number of KV rows with the largest attention weights whose values are used; 0 for
            all.
        attention: Where attention to offloaded KV rows is computed: on the `device`, to which they
            are prefetched, or in `memory`.
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
        """Sequences of all batches."""
        return self.batch * self.num_batches


@dataclass(frozen=True, slots=True)
class BlockBytes:
    """Bytes of the data that a policy places.

    Attributes:
        weights: Bytes of all layers.
        cache: Bytes of the KV cache of all batches.
        activations: Bytes of the activations of all batches between two layers.
    """

    weights: int = 0
    cache: int = 0
    activations: int = 0


@dataclass(frozen=True, slots=True)
class PartRate:
    """Forecast and measured rate of a part of the work.

    Attributes:
        name: One of `PARTS`.
        forecast: Forecast rate; None for none.
        reached: Measured rate; None before the measurement.
        unit: Unit, such as `GB/s`, or `s` for a time.
        binds: Whether this part limits the speed of the batch.
    """

    name: str
    forecast: float | None
    reached: float | None
    unit: str
    binds: bool = False


PARTS = ("weights read", "cached rows read", "cached rows written", "computed", "waited")
