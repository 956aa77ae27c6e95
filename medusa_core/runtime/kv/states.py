"""The states of a session's recurrent layers, and what takes tokens back.

A pass leaves the states as they are and writes one step for each of its rows: key, update and decay
of the state, and the input of the convolution. The steps of the accepted path are applied when the
next pass begins, all layers at once. So a rejected row has changed nothing, and cutting within the
last commit costs nothing. Further back, the latest earlier state is taken up again.

What steps make of a state is said in `models.recurrence`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.errors import EngineError
from medusa_core.models.blocks.caches import LayerState, RecurrentSteps
from medusa_core.models.layer_shapes import StateShape
from medusa_core.models.recurrence import folded_state
from medusa_core.runtime.kv.size import STEP_ROWS


class _Held(NamedTuple):
    """States of all layers, or of one session at an earlier length.

    Attributes:
        state: [layers, heads, key_dim, value_dim]
        tail: The last inputs of the convolution. [layers, conv_width − 1, channels]
    """

    state: Tensor
    tail: Tensor


class RecurrentStates:
    """The recurrent part of a cache.

    Attributes:
        num_pending: Committed rows at the end whose steps aren't applied yet.
    """

    def __init__(self, shape: StateShape, num_layers: int, num_earlier: int, memory: Tensor):
        """Begin with empty states.

        Args:
            shape: Of each layer.
            num_layers: How many hold a state.
            num_earlier: Earlier states that are kept.
            memory: Where all of it lies. [any], float32 or float64
        """
        self._shape, self._num_layers = shape, num_layers
        at = 0

        def take(*sizes: int) -> Tensor:
            nonlocal at
            tensor = memory[at : at + torch.Size(sizes).numel()].view(sizes)
            at += tensor.numel()
            return tensor

        def hold() -> _Held:
            return _Held(
                take(num_layers, shape.num_heads, shape.key_dim, shape.value_dim),
                take(num_layers, shape.conv_width - 1, shape.channels),
            )

        self._memory = memory
        self._now = hold()
        self._steps = RecurrentSteps(
            take(num_layers, STEP_ROWS, shape.num_key_heads, shape.key_dim),
            take(num_layers, STEP_ROWS, shape.num_heads, shape.value_dim),
            take(num_layers, STEP_ROWS, shape.num_heads),
            take(num_layers, STEP_ROWS, shape.channels),
        )
        self._earlier = [hold() for _ in range(num_earlier)]
        self._lengths: dict[int, int] = {}  # of the earlier states, by their places
        self.num_pending = 0
        self._is_decided = self._is_torn = False
        self.clear()

    @property
    def most_checkpoints(self) -> int:
        """How many earlier states are kept."""
        return len(self._earlier)

    @property
    def now(self) -> LayerState:
        """The states of all layers, without pending steps. [layers, …]"""
        return LayerState(*self._now)

    @property
    def steps(self) -> RecurrentSteps:
        """The steps of the pass under way. [layers, STEP_ROWS, …]"""
        return self._steps

    def clear(self) -> None:
        """Hold nothing, and know nothing of earlier lengths."""
        self._now.state.zero_()
        self._now.tail.zero_()
        self._lengths.clear()
        self.num_pending = 0
        self._is_decided = self._is_torn = False

    def begin(self, num_rows: int, decided: bool) -> None:
        """Apply what was committed; a pass of so many rows begins.

        Args:
            num_rows: They.
            decided: All of them will be committed: all steps but the last are applied at once.

        Raises:
            EngineError: They are more than can be taken back.
        """
        if num_rows > STEP_ROWS and not decided:
            raise EngineError(f"{num_rows} rows of a tree are more than {STEP_ROWS}.")
        self.settle()
        self._is_decided = self._is_torn = decided

    def settle(self) -> None:
        """Apply the steps of all committed rows."""
        count, self.num_pending = self.num_pending, 0
        if count:
            _apply(self._now, RecurrentSteps(*(part[:, :count] for part in self._steps)))

    def layer(self, place: int) -> LayerState:
        """What one layer begins a pass with."""
        return LayerState(self._now.state[place], self._now.tail[place])

    def put(self, place: int, steps: RecurrentSteps) -> None:
        """Take the steps of the rows of a pass in one layer; of decided rows those of the last."""
        for kept, new in zip(self._steps, steps, strict=True):
            kept[place, : len(new)].copy_(new)

    def put_state(self, place: int, state: LayerState) -> None:
        """Take the state behind all decided rows but the last in one layer."""
        self._now.state[place].copy_(state.state)
        self._now.tail[place].copy_(state.tail)

    def commit(self, slots: Sequence[int]) -> None:
        """Keep the steps of some rows of the pass, in order."""
        if self._is_decided:
            self.num_pending, self._is_decided, self._is_torn = 1, False, False
        else:
            self.gather(slots)
            self.num_pending = len(slots)

    def gather(self, slots: Sequence[int]) -> None:
        """Bring the steps of some rows of the pass to the front; the others are lost."""
        if slots and slots[-1] != len(slots) - 1:
            rows = torch.tensor(slots, device=self._memory.device)
            for part in self._steps:
                part[:, : len(slots)] = part.index_select(1, rows)

    def truncate(self, length: int, committed: int) -> int:
        """Forget rows.

        Args:
            length: How many are to be left.
            committed: How many there are.

        Returns:
            How many are left: fewer where no state of that length is known.
        """
        base = committed - self.num_pending
        for place, earlier in list(self._lengths.items()):
            if earlier > length:
                del self._lengths[place]
        if length >= base and not self._is_torn:
            self.num_pending = length - base
            return length
        if not self._lengths:
            self.clear()
            return 0
        place = max(self._lengths, key=self._lengths.__getitem__)
        self._copy(self._earlier[place], self._now)
        self.num_pending, self._is_torn, self._is_decided = 0, False, False
        return self._lengths[place]

    def known(self, length: int, committed: int) -> int:
        """The largest length up to `length` that `truncate` can return to.

        Args:
            length: At most.
            committed: Rows that there are.
        """
        if length >= committed - self.num_pending and not self._is_torn:
            return length
        return max((one for one in self._lengths.values() if one <= length), default=0)

    def checkpoint(self, committed: int) -> None:
        """Keep the states of now.

        Where there is no place for more, the second shortest prefix gives way: the shortest is the
        one that most other prompts share.
        """
        length = committed - self.num_pending
        if length == 0 or length in self._lengths.values():
            return
        free = [place for place in range(len(self._earlier)) if place not in self._lengths]
        by_length = sorted(self._lengths, key=self._lengths.__getitem__)
        place = free[0] if free else by_length[min(1, len(by_length) - 1)]
        self._lengths.pop(place, None)
        self._copy(self._now, self._earlier[place])
        self._lengths[place] = length

    def take_over(self, other: RecurrentStates) -> None:
        """Hold what other states of the same shape hold."""
        self._memory.copy_(other._memory)
        self.num_pending, self._lengths = other.num_pending, dict(other._lengths)
        self._is_decided, self._is_torn = other._is_decided, other._is_torn

    def settled(self) -> list[Tensor]:
        """Copies of states and tails behind all committed rows."""
        now = _Held(*(part.clone() for part in self._now))
        _apply(now, RecurrentSteps(*(part[:, : self.num_pending] for part in self._steps)))
        return list(now)

    @staticmethod
    def _copy(source: _Held, to: _Held) -> None:
        for mine, theirs in zip(to, source, strict=True):
            mine.copy_(theirs)


def _apply(held: _Held, steps: RecurrentSteps) -> None:
    """Change what all layers hold by consecutive steps. [layers, n, …]"""
    if steps.inputs.shape[1] == 0:
        return
    if held.state.numel():
        folded_state(held.state, steps.keys, steps.updates, steps.decays, out=held.state)
    kept = torch.cat([held.tail, steps.inputs], dim=1)
    held.tail.copy_(kept[:, kept.shape[1] - held.tail.shape[1] :])
