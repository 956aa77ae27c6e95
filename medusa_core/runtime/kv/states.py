"""The states of a session's recurrent layers, and how tokens are rolled back.

A pass doesn't change the states. It writes one step for each of its rows: key, update and decay of
the state, and the input of the convolution. The steps of the accepted path are applied when the
next pass begins, to all layers at once. So rejected rows leave no trace, and a truncation within
the last commit is free. A truncation further back restores the latest checkpoint.

`models.recurrence` defines how a step changes a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import EngineError
from medusa_core.i18n import tr
from medusa_core.models.layer_shapes import StateShape
from medusa_core.runtime.backends.caches import LayerState, RecurrentSteps
from medusa_core.runtime.backends.recurrence import folded_state
from medusa_core.runtime.kv.size import STEP_ROWS


class _Snapshot(NamedTuple):
    """Recurrent states of all layers at one sequence length.

    Attributes:
        state: [layers, heads, key_dim, value_dim]
        tail: Last inputs of the convolution. [layers, conv_width − 1, channels]
    """

    state: Tensor
    tail: Tensor


class RecurrentStates:
    """Recurrent states of a cache.

    Attributes:
        num_pending: Last committed rows whose steps aren't applied yet.
    """

    def __init__(self, shape: StateShape, num_layers: int, num_checkpoints: int, memory: Tensor):
        """Lay out the memory; states are zero.

        Args:
            shape: Shape of each layer's state.
            num_layers: Number of recurrent layers.
            num_checkpoints: Number of earlier states that are kept.
            memory: Flat tensor of the size that `size.state_bytes` gives, float32 or float64.
        """
        self._shape, self._num_layers = shape, num_layers
        at = 0

        def carve(*sizes: int) -> Tensor:
            """Take a tensor of these sizes from the memory."""
            nonlocal at
            tensor = memory[at : at + torch.Size(sizes).numel()].view(sizes)
            at += tensor.numel()
            return tensor

        def snapshot() -> _Snapshot:
            """Take a state of all layers from the memory."""
            return _Snapshot(
                carve(num_layers, shape.num_heads, shape.key_dim, shape.value_dim),
                carve(num_layers, shape.conv_width - 1, shape.channels),
            )

        self._memory = memory
        self._current = snapshot()
        self._steps = RecurrentSteps(
            carve(num_layers, STEP_ROWS, shape.num_key_heads, shape.key_dim),
            carve(num_layers, STEP_ROWS, shape.num_heads, shape.value_dim),
            carve(num_layers, STEP_ROWS, shape.num_heads),
            carve(num_layers, STEP_ROWS, shape.channels),
        )
        self._checkpoints = [snapshot() for _ in range(num_checkpoints)]
        self._lengths: dict[int, int] = {}  # of used checkpoints, by their index
        self.num_pending = 0
        self._is_decided = self._is_torn = False
        self.clear()

    @property
    def max_checkpoints(self) -> int:
        """Number of checkpoints that are kept."""
        return len(self._checkpoints)

    @property
    def current(self) -> LayerState:
        """States of all layers, without pending steps. [layers, …]"""
        return LayerState(*self._current)

    @property
    def steps(self) -> RecurrentSteps:
        """Steps of the last pass. [layers, STEP_ROWS, …]"""
        return self._steps

    def clear(self) -> None:
        """Reset the states and drop all checkpoints."""
        self._current.state.zero_()
        self._current.tail.zero_()
        self._lengths.clear()
        self.num_pending = 0
        self._is_decided = self._is_torn = False

    def begin(self, num_rows: int, decided: bool) -> None:
        """Apply committed steps before a pass.

        Args:
            num_rows: Rows of the pass.
            decided: All of them will be committed, so that all steps but the last are applied at
                once.

        Raises:
            EngineError: More speculative rows than steps can be kept.
        """
        if num_rows > STEP_ROWS and not decided:
            raise EngineError(tr("{0} rows of a tree are more than {1}.", num_rows, STEP_ROWS))
        self.apply_pending()
        self._is_decided = self._is_torn = decided

    def apply_pending(self) -> None:
        """Apply the steps of committed rows to the states."""
        count, self.num_pending = self.num_pending, 0
        if count:
            _apply(self._current, RecurrentSteps(*(part[:, :count] for part in self._steps)))

    def layer(self, place: int) -> LayerState:
        """State of one layer before the pass."""
        return LayerState(self._current.state[place], self._current.tail[place])

    def put(self, place: int, steps: RecurrentSteps) -> None:
        """Keep one layer's steps of a pass; of decided rows only the last."""
        for kept, new in zip(self._steps, steps, strict=True):
            kept[place, : len(new)].copy_(new)

    def put_state(self, place: int, state: LayerState) -> None:
        """Keep one layer's state after all decided rows but the last."""
        self._current.state[place].copy_(state.state)
        self._current.tail[place].copy_(state.tail)

    def commit(self, slots: Sequence[int]) -> None:
        """Keep the steps of some rows of the pass, in order."""
        if self._is_decided:
            self.num_pending, self._is_decided, self._is_torn = 1, False, False
        else:
            self.gather(slots)
            self.num_pending = len(slots)

    def gather(self, slots: Sequence[int]) -> None:
        """Move the steps of some rows to the front, over the others."""
        if slots and slots[-1] != len(slots) - 1:
            rows = torch.tensor(slots, device=self._memory.device)
            for part in self._steps:
                part[:, : len(slots)] = part.index_select(1, rows)

    def truncate(self, length: int, committed: int) -> int:
        """Roll back to a length, or to the latest checkpoint before it.

        Args:
            length: Wanted number of rows.
            committed: Current number of rows.

        Returns:
            New number of rows.
        """
        base = committed - self.num_pending
        for place, saved_length in list(self._lengths.items()):
            if saved_length > length:
                del self._lengths[place]
        if length >= base and not self._is_torn:
            self.num_pending = length - base
            return length
        if not self._lengths:
            self.clear()
            return 0
        place = max(self._lengths, key=self._lengths.__getitem__)
        self._copy(self._checkpoints[place], self._current)
        self.num_pending, self._is_torn, self._is_decided = 0, False, False
        return self._lengths[place]

    def restorable_length(self, length: int, committed: int) -> int:
        """Return what `truncate` would return."""
        if length >= committed - self.num_pending and not self._is_torn:
            return length
        return max((one for one in self._lengths.values() if one <= length), default=0)

    def checkpoint(self, committed: int) -> None:
        """Save the states. The second shortest checkpoint is replaced if all are in use.

        The shortest one is kept because most other prompts share it: it ends the system prompt.
        """
        length = committed - self.num_pending
        if length == 0 or length in self._lengths.values():
            return
        free = [place for place in range(len(self._checkpoints)) if place not in self._lengths]
        by_length = sorted(self._lengths, key=self._lengths.__getitem__)
        place = free[0] if free else by_length[min(1, len(by_length) - 1)]
        self._lengths.pop(place, None)
        self._copy(self._current, self._checkpoints[place])
        self._lengths[place] = length

    def take_over(self, other: RecurrentStates) -> None:
        """Copy other states of the same shape."""
        self._memory.copy_(other._memory)
        self.num_pending, self._lengths = other.num_pending, dict(other._lengths)
        self._is_decided, self._is_torn = other._is_decided, other._is_torn

    def committed_copies(self) -> list[Tensor]:
        """Copy states and convolution inputs after all committed rows."""
        now = _Snapshot(*(part.clone() for part in self._current))
        _apply(now, RecurrentSteps(*(part[:, : self.num_pending] for part in self._steps)))
        return list(now)

    @staticmethod
    def _copy(source: _Snapshot, to: _Snapshot) -> None:
        """Copy the states of all layers."""
        for mine, theirs in zip(to, source, strict=True):
            mine.copy_(theirs)


def _apply(held: _Snapshot, steps: RecurrentSteps) -> None:
    """Apply consecutive steps to the states of all layers. [layers, n, …]"""
    if steps.inputs.shape[1] == 0:
        return
    if held.state.numel():
        folded_state(held.state, steps.keys, steps.updates, steps.decays, out=held.state)
    kept = torch.cat([held.tail, steps.inputs], dim=1)
    held.tail.copy_(kept[:, kept.shape[1] - held.tail.shape[1] :])
