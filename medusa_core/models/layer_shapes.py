"""What a session holds of each layer: keys and values of every token, a state, both, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RowShape:
    """Keys and values of every token.

    Attributes:
        num_kv_heads: Heads of keys, and of values.
        head_dim: Numbers of each.
    """

    num_kv_heads: int
    head_dim: int


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Nothing of its own: queries attend to the rows of an earlier layer.

    Attributes:
        layer: Which.
    """

    layer: int


@dataclass(frozen=True, slots=True)
class StateShape:
    """A state, which each token changes, and the last inputs of a convolution before it.

    Consecutive heads share a key head. A short convolution alone has no heads.

    Attributes:
        num_heads: Heads of the state.
        key_dim: Rows of a head's state.
        value_dim: Its columns.
        num_key_heads: Heads of keys.
        channels: Numbers of an input of the convolution.
        conv_width: Inputs that the convolution reads for one output.
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
        """Numbers of the state."""
        return self.num_heads * self.key_dim * self.value_dim

    @property
    def tail_size(self) -> int:
        """Numbers of the last inputs."""
        return (self.conv_width - 1) * self.channels

    @property
    def step_size(self) -> int:
        """Numbers that say how one token changes the state: key, update and decay."""
        return self.num_key_heads * self.key_dim + self.num_heads * (self.value_dim + 1)


@dataclass(frozen=True, slots=True)
class HybridShape:
    """Attention and a state side by side."""

    rows: RowShape
    state: StateShape


@dataclass(frozen=True, slots=True)
class NoShape:
    """A layer that mixes no tokens."""


LayerShape = RowShape | SharedRows | StateShape | HybridShape | NoShape


def rows_of(shape: LayerShape) -> RowShape | None:
    """The keys and values that a layer holds, if any."""
    if isinstance(shape, HybridShape):
        return shape.rows
    return shape if isinstance(shape, RowShape) else None


def num_holding(layers: Sequence[LayerShape]) -> int:
    """Layers up to the last that holds something: behind it rows serve themselves alone."""
    holding = (at for at, shape in enumerate(layers) if not isinstance(shape, SharedRows))
    return 1 + max(holding, default=-1)


def rows_read(layers: Sequence[LayerShape], index: int) -> tuple[int, RowShape] | None:
    """The layer whose keys and values a layer attends to, and what they are; None for none."""
    shape = layers[index]
    owner = shape.layer if isinstance(shape, SharedRows) else index
    rows = rows_of(layers[owner])
    return None if rows is None else (owner, rows)


def recurrent_part(shape: LayerShape) -> StateShape | None:
    """The state that a layer holds, if any."""
    if isinstance(shape, HybridShape):
        return shape.state
    return shape if isinstance(shape, StateShape) else None
