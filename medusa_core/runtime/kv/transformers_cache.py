"""A transformers `Cache` whose keys and values are in a `TensorCache`.

So rows are committed, truncated and moved by the same code as elsewhere. transformers keeps the
states of recurrent layers and can't roll them back: after a truncation, a model that has such
layers reads the conversation again from its beginning.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from torch import Tensor
from transformers import Cache
from transformers.cache_utils import (
    CacheLayerMixin,
    DynamicLayer,
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
    LinearAttentionCacheLayerMixin,
    LinearAttentionLayer,
)

from medusa_core.errors import EngineError
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.through_transformers.sizes import empty_layers, sizes_of
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.tensor import TensorCache

_ROWS_AND_STATE = (
    LinearAttentionAndFullAttentionLayer,
    LinearAttentionAndSlidingWindowAttentionLayer,
)


def rows_config(config: ModelConfig) -> ModelConfig:
    """Return a config that has only the layers with keys and values, for a `TensorCache`."""
    layers = sizes_of(config).layers
    return replace(config, num_layers=len(layers), cached_layers=layers)


class RowsLayer(CacheLayerMixin):
    """A layer of a transformers cache whose keys and values are in a `TensorCache`.

    Attributes:
        rows: The cache, during a pass.
        index: Index of the layer in it.
    """

    is_sliding = False  # all rows are kept, and masks apply the window

    def __init__(self, index: int) -> None:
        CacheLayerMixin.__init__(self)
        self.is_initialized = True
        self.index = index
        self.rows: TransformersCache | None = None
        self._length = 0

    def begin(self, rows: TransformersCache, length: int) -> None:
        """Begin a pass that appends to a cache of `length` rows."""
        self.rows, self._length = rows, length

    def end(self) -> None:
        """End a pass; a reference cycle of cache and layer would delay freeing them."""
        self.rows, self._length = None, 0

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Do nothing: the memory is allocated."""

    def update(
        self, key_states: Tensor, value_states: Tensor, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Append rows and return all. [1, kv heads, n, head_dim] → [1, kv heads, s, head_dim]"""
        assert self.rows is not None  # in a pass
        start = self._length
        self._length += key_states.shape[2]
        return self.rows.put(self.index, start, key_states, value_states)

    def get_seq_length(self) -> int:
        """Number of rows so far; part of transformers' interface."""
        return self._length

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """Number of keys and offset of a mask; part of transformers' interface."""
        return self._length + query_length, 0

    def get_max_length(self) -> int:
        """−1 for no limit; part of transformers' interface."""
        return -1


class RowsAndStateLayer(LinearAttentionLayer, RowsLayer):  # type: ignore[override]  # as theirs
    """A layer with attention and a recurrent mixer in parallel."""

    is_compileable = False

    def __init__(self, index: int, number_of_states: int) -> None:
        RowsLayer.__init__(self, index)
        LinearAttentionLayer.__init__(self, number_of_states=number_of_states)

    def lazy_initialization(self, *args: Any, **kwargs: Any) -> None:
        """Initialize the recurrent state alone: keys and values are allocated."""
        if not args:
            LinearAttentionLayer.lazy_initialization(self, **kwargs)


class TransformersCache(TensorCache):
    """Keys, values and states of one session of a model that transformers runs."""

    def __init__(
        self,
        config: ModelConfig,
        theirs: Any,
        precision: Precision,
        capacity: int,
        memory: Tensor | None = None,
        is_plain: bool = False,
    ) -> None:
        """Allocate the cache.

        Args:
            config: Sizes of the model.
            theirs: Its transformers configuration.
            precision: Dtypes and device.
            capacity: Number of slots.
            memory: Memory from a `CachePool`; None allocates it.
            is_plain: The model can't verify trees: passes have one speculative row.
        """
        super().__init__(rows_config(config), precision, capacity, memory=memory)
        self._theirs, self._is_plain = theirs, is_plain
        self._layers = _layers_of(theirs)
        self._has_states = any(
            isinstance(layer, LinearAttentionCacheLayerMixin) for layer in self._layers
        )
        self._num_pending = 0
        self._is_measured = False

    @contextmanager
    def reading(self, first: int = 0) -> Iterator[Cache]:
        """Return the transformers cache for one pass.

        Args:
            first: Offset of its first row among the reserved ones.
        """
        rows = [layer for layer in self._layers if isinstance(layer, RowsLayer)]
        for layer in rows:
            layer.begin(self, self.length + first)
        try:
            yield Cache(layers=list(self._layers))
        finally:
            for layer in rows:
                layer.end()

    @property
    def recurrent_states(self) -> list[Tensor]:
        """States of recurrent layers."""
        return [
            state
            for layer in self._layers
            if isinstance(layer, LinearAttentionCacheLayerMixin)
            for state in layer.recurrent_states.values()
            if state is not None
        ]

    def put(self, index: int, start: int, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Store a layer's rows from a slot on; see `RowsLayer.update`."""
        part, place = self._places[index]
        whole, end = self._parts[part][place], start + keys.shape[2]
        # Both sides have the larger of two widths if keys and values differ in it.
        own = [
            whole[side, : new.shape[1], :end, : new.shape[3]]
            for side, new in enumerate((keys, values))
        ]
        for mine, new in zip(own, (keys, values), strict=True):
            mine[:, start:].copy_(new[0])
        return own[0].unsqueeze(0), own[1].unsqueeze(0)

    @property
    def most_rows(self) -> int:
        """Largest tree of a pass: one row if the model can't verify trees."""
        return 1 if self._is_plain else self.capacity

    def reserve(self, num_rows: int, decided: bool = False) -> None:
        """Reserve rows; raises `EngineError` if states hold rows that weren't committed."""
        if self._has_states and self._num_pending and not self._is_measured:
            raise EngineError(
                "The last pass changed states that can't be taken back.",
                "Ask again: the conversation is read anew.",
            )
        super().reserve(num_rows, decided)
        self._num_pending = num_rows

    def commit(self, slots: Sequence[int]) -> None:
        """Keep rows; with recurrent states all of a pass."""
        if self._has_states and len(slots) != self._num_pending and not self._is_measured:
            raise EngineError(
                "A model with states that can't be taken back keeps all rows of a pass or none.",
                "Choose the drafter 'none'.",
            )
        super().commit(slots)
        self._num_pending = 0

    def truncate(self, length: int) -> None:
        """Drop rows from `length` on; all rows if states would have to be rolled back."""
        keeps_any = self._is_measured and length > 0  # rows of `fill` needn't be right
        if self._has_states and not keeps_any and (self._num_pending or length < self.length):
            self._forget()
            length = 0
        super().truncate(length)
        self._num_pending = 0

    def num_reusable(self, num_rows: int) -> int:
        """See `KvCache`; with recurrent states, all rows or none."""
        num_rows = super().num_reusable(num_rows)
        is_whole = num_rows == self.length and not self._num_pending and not self._is_measured
        return num_rows if is_whole or not self._has_states else 0

    def copy_prefix(self, other: KvCache, num_rows: int) -> None:
        """Copy rows and states of another cache."""
        assert isinstance(other, TransformersCache)  # of one runner
        super().copy_prefix(other, num_rows)
        if num_rows and self._has_states:
            self._layers = copy.deepcopy(other._layers)

    def fill(self, length: int) -> None:
        """Commit rows of zeros with new states, for measurements."""
        super().fill(length)
        self._forget()
        self._is_measured = True

    def take_over(self, other: KvCache) -> None:
        """Take another cache's rows and states."""
        assert isinstance(other, TransformersCache)  # of one runner
        super().take_over(other)
        self._layers = copy.deepcopy(other._layers)
        self._num_pending, self._is_measured = other._num_pending, other._is_measured

    def _forget(self) -> None:
        """Reset all recurrent states."""
        self._layers = _layers_of(self._theirs)
        self._is_measured = False


def _layers_of(theirs: Any) -> list[Any]:
    """Make the cache layers that transformers would, with `RowsLayer` for keys and values."""
    layers: list[Any] = []
    num_rows = 0
    for layer in empty_layers(theirs):
        if isinstance(layer, _ROWS_AND_STATE):
            layers.append(RowsAndStateLayer(num_rows, layer.number_of_states))
        elif isinstance(layer, DynamicLayer):
            layers.append(RowsLayer(num_rows))
        else:
            layers.append(layer)
            continue
        num_rows += 1
    return layers
