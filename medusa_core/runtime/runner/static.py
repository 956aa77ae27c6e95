"""The step of fixed shapes: rows padded to a bucket, the cache read up to one, length as data.

Nothing in it depends on the host while it runs, so that CUDA can replay it as one graph. It runs
on every device, where it must give what the resident runner gives; only the capture is CUDA's.

Padding rows write into a slot behind the cache, which belongs to nobody, and what they compute is
thrown away.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from medusa_core.models.blocks.caches import SequenceRows
from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.models.row_tree import RowTree
from medusa_core.runtime.kv.size import whole_rows
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.rows import (
    lines_of,
    num_words,
    padded_width,
    seen_by,
    words_of,
)
from medusa_core.runtime.runner.runner import (
    PlacedTree,
    only_wanted,
)
from medusa_core.system import cuda

log = logging.getLogger(__name__)

ROW_BUCKETS = (1, 4, 8, 16, 32, 64)
LENGTH_BUCKETS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
_MOST_STEPS = 16  # prepared ones that are kept


@dataclass(frozen=True, slots=True)
class _Step:
    """A step for one cache, with its buffers.

    Attributes:
        inputs: Token ids, positions and slots of all rows, then of each the words that say which
            rows it sees, then the length. [(3 + words) · rows + 1], int64
        states: Takes the states. [rows, (1 + taps) · hidden]
        looked_up: What the host looks up of the rows' tokens; see `Decoder.offloaded_vectors`.
            [rows, width]
        graph: Its capture, or None to run it operation by operation.
    """

    inputs: Tensor
    states: Tensor
    looked_up: Tensor | None
    graph: cuda.Graph | None


class StaticRunner(ResidentRunner):
    """Verifies trees by steps of fixed shapes; prefill runs as in the resident runner."""

    def __init__(self, model: Decoder, precision: Precision, captures: bool = False) -> None:
        """Run a model.

        Args:
            model: The target.
            precision: Its dtypes and device.
            captures: Replay steps as CUDA graphs.
        """
        super().__init__(model, precision)
        self._captures = captures
        self._steps: dict[tuple[int, int, int, int], _Step] = {}
        self._graphs_memory = cuda.graph_memory() if captures else None
        model.rotations(whole_rows(model.config.context_tokens))  # a table that moves would be lost

    @property
    def is_recorded(self) -> bool:
        """Whether every step so far could be recorded as a graph."""
        return all(step.graph is not None for step in self._steps.values())

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> TensorCache:
        return TensorCache(self._model.config, self._precision, capacity, 1, memory)

    def tap(self, layers: Sequence[int]) -> None:
        super().tap(layers)
        self._steps.clear()

    def verify(self, *placed: PlacedTree) -> Tensor:
        if len(placed) > 1:  # nothing is prepared for every mix of trees
            return super().verify(*placed)
        ((tree, kv, *_),) = placed
        assert isinstance(kv, TensorCache)  # from new_cache
        count = tree.shape.num_nodes
        rows = _bucket(count, ROW_BUCKETS)
        width = min(_bucket(kv.length + count, LENGTH_BUCKETS), kv.capacity)
        kv.reserve(count)
        step = self._step(rows, width, kv)
        trash, pad = kv.capacity, rows - count
        positions = [kv.length + depth for depth in tree.shape.depths]
        slots = list(range(kv.length, kv.length + count))
        sees = [*lines_of(tree.shape), *(1 << row for row in range(count, rows))]
        # One upload: everything else is on the device already.
        numbers = [*tree.token_ids, *[0] * pad, *positions, *[0] * pad, *slots, *[trash] * pad]
        step.inputs.copy_(torch.tensor([*numbers, *words_of(sees, rows), kv.length]))
        vectors = self._model.offloaded_vectors(tree.token_ids)
        if vectors is not None and step.looked_up is not None:
            step.looked_up[:count].copy_(vectors)
        if step.graph is None:
            self._compute(step, rows, width, kv)
        else:
            step.graph.replay()
        # The buffer is the next step's, too, maybe another session's.
        return only_wanted(step.states[:count].clone(), placed)

    def _compute(self, step: _Step, rows: int, width: int, kv: TensorCache) -> None:
        """The step itself: shapes are fixed, and all that varies comes from `inputs`."""
        model = self._model
        ids, positions, slots = step.inputs[: 3 * rows].view(3, rows)
        kv.reserve_slots(slots, width)
        sees = seen_by(step.inputs[3 * rows : -1].view(rows, -1))
        mask = self._mask(step, slots, sees, width)
        context = model.begin(positions, kv.capacity)
        x = model.entering(ids, step.looked_up, context)
        tree = None if kv.states is None else RowTree(sees)
        sequences, size = [SequenceRows(slice(None), mask, kv, tree)], model.config.hidden_size
        states = step.states.view(rows, -1, size)
        for index in range(model.config.num_layers):
            self._keep_tapped(index, x, states)
            x = model.block(index, x, context, sequences)
        self._keep_tapped(model.config.num_layers, x, states)
        states[:, 0].copy_(model.final_norm(x))

    def _keep_tapped(self, index: int, x: Tensor, states: Tensor) -> None:
        """Keep what enters a layer where that is wanted. [rows, 1 + taps, hidden]"""
        if index in self.taps:
            states[:, 1 + self.taps.index(index)].copy_(x)

    def _mask(self, step: _Step, slots: Tensor, sees: Tensor, width: int) -> Tensor:
        """Committed slots are seen by all rows, the rows' own as the tree says."""
        # One column more than is read: there padding rows see themselves.
        columns = torch.arange(padded_width(width + 1), device=slots.device)
        seen = torch.zeros(len(columns), dtype=self._precision.scores, device=slots.device)
        seen = seen.masked_fill(columns >= step.inputs[-1], float("-inf")).repeat(len(slots), 1)
        among = torch.zeros(len(slots), len(slots), dtype=seen.dtype, device=slots.device)
        among.masked_fill_(~sees, float("-inf"))
        seen.index_copy_(1, slots.clamp(max=width), among)
        return seen.repeat(self._group, 1)[:, :width]

    def _step(self, rows: int, width: int, kv: TensorCache) -> _Step:
        """The prepared step for a cache, prepared now if need be."""
        key = (kv.address, kv.capacity, rows, width)
        if key not in self._steps:
            while len(self._steps) >= _MOST_STEPS:
                self._steps.pop(next(iter(self._steps)))
            self._steps[key] = self._prepare(rows, width, kv)
        return self._steps[key]

    def _prepare(self, rows: int, width: int, kv: TensorCache) -> _Step:
        precision, device = self._precision, self._precision.device
        inputs = torch.zeros((3 + num_words(rows)) * rows + 1, dtype=torch.int64, device=device)
        inputs[2 * rows : 3 * rows] = kv.capacity
        inputs[-1] = 1
        width_of_states = (1 + len(self.taps)) * self._model.config.hidden_size
        width_of_vectors = self._model.looked_up_width
        step = _Step(
            inputs=inputs,
            states=torch.empty(rows, width_of_states, dtype=precision.compute, device=device),
            looked_up=torch.zeros(rows, width_of_vectors, dtype=precision.compute, device=device)
            if width_of_vectors
            else None,
            graph=None,
        )
        graph = self._capture(step, rows, width, kv) if self._captures else None
        return replace(step, graph=graph)

    def _capture(self, step: _Step, rows: int, width: int, kv: TensorCache) -> cuda.Graph | None:
        """Record the step; without a graph where something in it can't be recorded."""
        try:
            return cuda.record(lambda: self._compute(step, rows, width, kv), self._graphs_memory)
        except RuntimeError as error:
            log.warning("a step of %d rows can't be recorded, it runs without: %s", rows, error)
            return None


def _bucket(needed: int, buckets: Sequence[int]) -> int:
    """The smallest bucket that is large enough; what is needed where none is."""
    return next((bucket for bucket in buckets if bucket >= needed), needed)
