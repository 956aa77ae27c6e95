"""Shapes of what a session caches per layer: KV rows, a recurrent state, both, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KvShape:
    """Shape of a KV cache row: the keys and values of one token in one layer.

    Attributes:
        num_kv_heads: Number of key heads, and of value heads.
        head_dim: Elements per head.
    """

    num_kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class SharedRows:
    """No KV rows: queries attend to the rows of an earlier layer.

    Attributes:
        layer: Index of that layer.
    """

    layer: int


@dataclass(frozen=True, slots=True)
class StateShape:
    """A recurrent state, and the last inputs of the convolution before it.

    Consecutive heads share a key head. A short convolution without a state has no heads.

    Attributes:
        num_heads: Number of state heads (value heads).
        key_dim: Rows of each head's state matrix.
        value_dim: Columns of each head's state matrix.
        num_key_heads: Number of key heads.
        channels: Channels of the convolution.
        conv_width: Kernel size of the convolution.
    """

    num_heads: int
    key_dim: int
    value_dim: int
    num_key_heads: int
    channels: int
    conv_width: int

    @property
    def conv_shape(self) -> tuple[int, int, int]:
        """Shape of the convolution's weight in a checkpoint."""
        return self.channels, 1, self.conv_width

    @property
    def state_size(self) -> int:
        """Elements of the state."""
        return self.num_heads * self.key_dim * self.value_dim

    @property
    def tail_size(self) -> int:
        """Elements of the cached inputs of the convolution."""
        return (self.conv_width - 1) * self.channels

    @property
    def step_size(self) -> int:
        """Elements of the key, update and decay by which one token changes the state."""
        return self.num_key_heads * self.key_dim + self.num_heads * (self.value_dim + 1)


@dataclass(frozen=True, slots=True)
class HybridShape:
    """Attention and a state side by side."""

    rows: KvShape
    state: StateShape


@dataclass(frozen=True, slots=True)
class NoShape:
    """A layer that mixes no tokens."""


LayerShape = KvShape | SharedRows | StateShape | HybridShape | NoShape


def rows_of(shape: LayerShape) -> KvShape | None:
    """Return the KV row shape of a layer; None if it caches none."""
    if isinstance(shape, HybridShape):
        return shape.rows
    return shape if isinstance(shape, KvShape) else None


def num_holding(layers: Sequence[LayerShape]) -> int:
    """Return the number of layers up to the last that doesn't share KV rows.

    Later layers cache nothing: rows that only fill the cache needn't pass through them.
    """
    holding = (at for at, shape in enumerate(layers) if not isinstance(shape, SharedRows))
    return 1 + max(holding, default=-1)


def rows_read(layers: Sequence[LayerShape], index: int) -> tuple[int, KvShape] | None:
    """Return the layer whose KV rows a layer attends to, and their shape; None for none."""
    shape = layers[index]
    owner = shape.layer if isinstance(shape, SharedRows) else index
    rows = rows_of(layers[owner])
    return None if rows is None else (owner, rows)


def recurrent_part(shape: LayerShape) -> StateShape | None:
    """The state that a layer holds, if any."""
    if isinstance(shape, HybridShape):
        return shape.state
    return shape if isinstance(shape, StateShape) else None
