"""The step with static shapes: rows and cache length are padded to buckets; the length is data.

Nothing in it depends on the host while it runs, so that CUDA can replay it as a graph. It also runs
on other devices, so that tests without a GPU compare it with the resident runner.

Padding rows write into a trash slot after the cache, and their results are discarded. Steps by
torch's operations belong to one cache and length bucket; those by fused kernels serve all of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from medusa_core.models.precision import Precision
from medusa_core.runtime.backends.caches import RowTree, SequenceRows
from medusa_core.runtime.backends.cuda_step import FusedDecoder
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.kv.size import whole_rows
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.runtime.runner.buckets import (
    LENGTH_BUCKETS,
    MAX_GRAPHS,
    ROW_BUCKETS,
    bucket_of,
)
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
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.system import cuda
from medusa_core.system.native.cuda import MOST_STEP_ROWS

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Step:
    """A step for one cache and one pair of buckets, with its buffers.

    Attributes:
        inputs: Token ids, positions and slots of all rows, then each row's mask as words, then the
            length. [(3 + words) · rows + 1], int64
        states: Output. [rows, (1 + taps) · hidden]
        looked_up: Embeddings that the host looks up; see `Decoder.offloaded_vectors`.
            [rows, width]
        graph: Captured graph, or None to launch each operation.
    """

    inputs: Tensor
    states: Tensor
    looked_up: Tensor | None
    graph: cuda.Graph | None


class StaticRunner(ResidentRunner):
    """Verifies trees by steps with static shapes; prefill runs as in the resident runner."""

    def __init__(
        self,
        model: Decoder,
        precision: Precision,
        captures: bool = False,
        fused: FusedDecoder | None = None,
    ) -> None:
        """Create a runner without steps.

        Args:
            model: The target.
            precision: Its dtypes and device.
            captures: Replay steps as CUDA graphs.
            fused: Kernels for its blocks, whose steps serve every cache; None for torch's.
        """
        super().__init__(model, precision)
        self._fused = fused
        self._captures = captures
        self._steps: dict[tuple[int, int, int, int], _Step] = {}
        self._graphs_memory = cuda.graph_memory() if captures else None
        # RoPE tables of full size now: graphs keep their addresses.
        model.rotations(whole_rows(model.config.context_tokens))

    @property
    def is_recorded(self) -> bool:
        """Whether every step so far could be captured as a graph."""
        return all(step.graph is not None for step in self._steps.values())

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> TensorCache:
        """Return an empty cache with one more slot, for padding rows."""
        return self._kind_of_cache(self._model.config, self._precision, capacity, 1, memory)

    def tap(self, layers: Sequence[int]) -> None:
        """Set the tapped layers, and drop all graphs: their outputs have the old width."""
        super().tap(layers)
        self._steps.clear()

    def verify(self, *placed: PlacedTree) -> Tensor:
        """Compute one tree by a graph, several as in the resident runner; see `Runner.verify`."""
        if len(placed) > 1:  # there are too many combinations of shapes to keep graphs for
            return super().verify(*placed)
        ((tree, kv, *_),) = placed
        assert isinstance(kv, TensorCache)  # from new_cache
        count = tree.shape.num_nodes
        rows = bucket_of(count, ROW_BUCKETS)
        if self._fused is not None and rows <= MOST_STEP_ROWS:
            return only_wanted(self._verify_fused(self._fused, tree, kv, rows), placed)
        width = min(bucket_of(kv.length + count, LENGTH_BUCKETS), kv.capacity)
        kv.reserve(count)
        step = self._step(rows, width, kv)
        own = [*_padded_rows(tree, kv, rows), kv.length]
        found = self._run(step, tree, own, lambda: self._compute(step, rows, width, kv))
        return only_wanted(found, placed)

    def _verify_fused(
        self, fused: FusedDecoder, tree: TokenTree, kv: TensorCache, rows: int
    ) -> Tensor:
        """Verify a tree by fused kernels. [nodes, (1 + taps) · hidden]"""
        kv.reserve(tree.shape.num_nodes)
        key = (0, 0, rows, 0)  # for all caches and lengths
        if key not in self._steps:
            step = self._new_step(rows, torch.zeros(fused.num_inputs(rows), dtype=torch.int64))
            # What is captured runs, too, on this tree: it writes what its first replay will.
            step.inputs.copy_(torch.tensor(self._fused_inputs(fused, tree, kv, rows)))
            graph = self._capture(rows, lambda: self._compute_fused(fused, step, rows))
            self._steps[key] = replace(step, graph=graph)
        step, numbers = self._steps[key], self._fused_inputs(fused, tree, kv, rows)
        return self._run(step, tree, numbers, lambda: self._compute_fused(fused, step, rows))

    def _fused_inputs(
        self, fused: FusedDecoder, tree: TokenTree, kv: TensorCache, rows: int
    ) -> list[int]:
        """Numbers of a fused step: length, slots, nodes and addresses, then those of its rows."""
        slots, *addresses = fused.addresses(kv)
        header = [kv.length, slots, tree.shape.num_nodes, *addresses]
        return [*header, *_padded_rows(tree, kv, rows)]

    def _compute_fused(self, fused: FusedDecoder, step: _Step, rows: int) -> None:
        """Embed the rows of a step, and run the kernels of all layers."""
        model, first = self._model, fused.num_inputs(0)
        ids = step.inputs[first : first + rows]
        looked_up = step.looked_up
        x = model.embed(ids) if looked_up is None else looked_up.clone()
        states = step.states.view(rows, -1, model.config.hidden_size)
        fused.run(x, step.inputs, states, self.taps)

    def _run(
        self, step: _Step, tree: TokenTree, numbers: Sequence[int], compute: Callable[[], None]
    ) -> Tensor:
        """Run a step. [nodes, (1 + taps) · hidden]"""
        count = tree.shape.num_nodes
        # One copy to the device: everything else is there already.
        step.inputs.copy_(torch.tensor(numbers))
        vectors = self._model.offloaded_vectors(tree.token_ids)
        if vectors is not None and step.looked_up is not None:
            step.looked_up[:count].copy_(vectors)
        if step.graph is None:
            compute()
        else:
            step.graph.replay()
        # A copy: the next step, maybe of another session, overwrites the buffer.
        return step.states[:count].clone()

    def _compute(self, step: _Step, rows: int, width: int, kv: TensorCache) -> None:
        """Compute a step; shapes are static, and all that varies is in `inputs`."""
        model = self._model
        ids, positions, slots = step.inputs[: 3 * rows].view(3, rows)
        kv.reserve_slots(slots, width)
        visible = seen_by(step.inputs[3 * rows : -1].view(rows, -1))
        mask = self._mask(step, slots, visible, width)
        context = model.begin(positions, kv.capacity)
        x = model.entering(ids, step.looked_up, context)
        tree = None if kv.states is None else RowTree(visible)
        sequences, size = [SequenceRows(slice(None), mask, kv, tree)], model.config.hidden_size
        states = step.states.view(rows, -1, size)
        for index in range(model.config.num_layers):
            self._keep_tapped(index, x, states)
            x = model.block(index, x, context, sequences)
        self._keep_tapped(model.config.num_layers, x, states)
        states[:, 0].copy_(model.final_norm(x))

    def _keep_tapped(self, index: int, x: Tensor, states: Tensor) -> None:
        """Copy the input of a tapped layer. [rows, 1 + taps, hidden]"""
        if index in self.taps:
            states[:, 1 + self.taps.index(index)].copy_(x)

    def _mask(self, step: _Step, slots: Tensor, visible: Tensor, width: int) -> Tensor:
        """Build the mask: all rows attend to committed slots, and to each other as in the tree."""
        # One column more than is read, for the trash slot that padding rows attend to.
        columns = torch.arange(padded_width(width + 1), device=slots.device)
        seen = torch.zeros(len(columns), dtype=self._precision.scores, device=slots.device)
        seen = seen.masked_fill(columns >= step.inputs[-1], float("-inf")).repeat(len(slots), 1)
        among = torch.zeros(len(slots), len(slots), dtype=seen.dtype, device=slots.device)
        among.masked_fill_(~visible, float("-inf"))
        seen.index_copy_(1, slots.clamp(max=width), among)
        return seen.repeat(self._group, 1)[:, :width]

    def _step(self, rows: int, width: int, kv: TensorCache) -> _Step:
        """Return the CUDA graph of a cache and bucket sizes; captured at its first use."""
        key = (kv.address, kv.capacity, rows, width)
        if key not in self._steps:
            while len(self._steps) >= MAX_GRAPHS:
                self._steps.pop(next(iter(self._steps)))
            self._steps[key] = self._prepare(rows, width, kv)
        return self._steps[key]

    def _prepare(self, rows: int, width: int, kv: TensorCache) -> _Step:
        """Allocate a step's buffers, and capture its graph if the runner does."""
        inputs = torch.zeros((3 + num_words(rows)) * rows + 1, dtype=torch.int64)
        inputs[2 * rows : 3 * rows] = kv.capacity
        inputs[-1] = 1
        step = self._new_step(rows, inputs)
        graph = self._capture(rows, lambda: self._compute(step, rows, width, kv))
        return replace(step, graph=graph)

    def _new_step(self, rows: int, inputs: Tensor) -> _Step:
        """Allocate the buffers of a step."""
        precision, device = self._precision, self._precision.device
        width_of_states = (1 + len(self.taps)) * self._model.config.hidden_size
        width_of_vectors = self._model.looked_up_width
        return _Step(
            inputs=inputs.to(device),
            states=torch.empty(rows, width_of_states, dtype=precision.compute, device=device),
            looked_up=torch.zeros(rows, width_of_vectors, dtype=precision.compute, device=device)
            if width_of_vectors
            else None,
            graph=None,
        )

    def _capture(self, rows: int, compute: Callable[[], None]) -> cuda.Graph | None:
        """Capture a step as a graph; None if an operation in it can't be captured."""
        if not self._captures:
            return None
        try:
            return cuda.record(compute, self._graphs_memory)
        except RuntimeError as error:
            log.warning("a step of %d rows can't be recorded, it runs without: %s", rows, error)
            return None


def _padded_rows(tree: TokenTree, kv: TensorCache, rows: int) -> list[int]:
    """Return token ids, positions, slots and masks of a tree, padded to `rows` rows."""
    count = tree.shape.num_nodes
    pad = rows - count
    positions = [kv.length + depth for depth in tree.shape.depths]
    slots = list(range(kv.length, kv.length + count))
    visible = [*lines_of(tree.shape), *(1 << row for row in range(count, rows))]
    numbers = [*tree.token_ids, *[0] * pad, *positions, *[0] * pad, *slots, *[kv.capacity] * pad]
    return [*numbers, *words_of(visible, rows)]
