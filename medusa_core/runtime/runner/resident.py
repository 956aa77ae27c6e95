"""The runner for a target whose weights all stay on one device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.models.layer_shapes import num_holding
from medusa_core.models.precision import Precision
from medusa_core.models.quant.combined_linear import AdaptedLinear
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear, share_threads
from medusa_core.models.token_table import DenseTable
from medusa_core.runtime.backends.block import host_mlps
from medusa_core.runtime.backends.caches import RowTree, SequenceRows
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.backends.experts import ExpertMlps
from medusa_core.runtime.backends.native_blocks import NativeExperts
from medusa_core.runtime.backends.torch_blocks import PassContext
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.quantized import QuantizedCache
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.runtime.runner.rows import (
    RowLayout,
    Rows,
    SomeRows,
    additive_mask,
    place_rows,
)
from medusa_core.runtime.runner.runner import (
    LowerTiers,
    PlacedTree,
    Runner,
    RunnerSpec,
    only_wanted,
    reads_prompts,
)
from medusa_core.system import compute_threads
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.pool import Workers

ROUND_ROWS = 8  # chunks of prefill are padded to a multiple of it on a CPU


class PlacedRows(NamedTuple):
    """Rows of a pass on the device, ready to be computed.

    Attributes:
        rows: Token ids, positions and masks.
        sequences: Range, mask and cache of each sequence.
        context: State of this pass that its blocks share.
    """

    rows: Rows
    sequences: list[SequenceRows]
    context: PassContext


class ResidentRunner(Runner):
    """Runs forward passes with torch's operations; see `Runner`."""

    def __init__(self, model: Decoder, precision: Precision) -> None:
        self.hidden_dtype = precision.compute
        self.cache_dtype = torch.uint8 if precision.cache_format else precision.cache
        self._prefill_threads = 0
        self._model = model
        self._precision = precision
        self._group = model.config.num_heads // model.config.num_kv_heads
        self._workers = _share_workers(model)
        self._last_holder = num_holding(model.config.layers) - 1

    def use_threads(self, decoding: int, prefill: int) -> None:
        """Set the numbers of CPU threads for decoding and for prefill."""
        compute_threads.use(decoding)
        self._prefill_threads = prefill
        if self._workers is not None:
            self._workers.use(decoding, decoding)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> TensorCache:
        """Return an empty cache, quantized if the precision says so."""
        return self._kind_of_cache(self._model.config, self._precision, capacity, memory=memory)

    @property
    def _kind_of_cache(self) -> type[TensorCache]:
        """Class of caches for the dtype of KV rows."""
        return QuantizedCache if self._precision.cache_format else TensorCache

    def verify(self, *placed: PlacedTree) -> Tensor:
        """Compute all trees in one pass; see `Runner.verify`."""
        with self._threads_for(reads_prompts(placed)):
            states = self._forward(rows_of(placed), [each.kv for each in placed])
            return only_wanted(states, placed)

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        """Compute and commit consecutive tokens; see `Runner.extend`."""
        count = len(token_ids)
        ids = self._padded(token_ids, kv)
        layout = RowLayout.of_chain(len(ids))
        with self._threads_for(reads_prompt=count > 1):
            rows = SomeRows(ids, layout, kv.length, decided=True)
            hidden = self._forward([rows], [kv], count - 1 if only_last else None)
        kv.commit(range(count))
        return hidden if only_last else hidden[:count]

    def _threads_for(self, reads_prompt: bool) -> AbstractContextManager[None]:
        """Use the thread count for prefill during a pass that processes a prompt."""
        if not reads_prompt or self._prefill_threads <= compute_threads.count():
            return nullcontext()
        return compute_threads.limited(self._prefill_threads)

    def _padded(self, token_ids: Sequence[int], kv: KvCache) -> Sequence[int]:
        """Pad a chunk of prefill to a multiple of `ROUND_ROWS`; nothing attends to the padding.

        oneDNN generates kernels for each new number of rows, which takes longer than a short chunk.
        """
        pad = -len(token_ids) % ROUND_ROWS
        fits = kv.length + len(token_ids) + pad <= kv.capacity and kv.states is None
        if len(token_ids) == 1 or not fits or self._precision.device.type != "cpu":
            return token_ids
        return [*token_ids, *[token_ids[-1]] * pad]

    def embed_from(self, vectors: Tensor) -> None:
        """Replace the embedding table; see `Runner.embed_from`."""
        self._model.embedding = DenseTable(vectors)

    def logits(self, states: Tensor) -> Tensor:
        """Compute logits by the LM head; see `Runner.logits`."""
        return self._model.logits(states[:, : self._model.config.hidden_size])

    def attend_to(self, attended: int) -> None:
        """Limit the rows whose values attention reads from now on; see `Precision.attended`."""
        self._model.attend_to(attended)

    def _forward(
        self, parts: Sequence[SomeRows], caches: Sequence[KvCache], only_row: int | None = None
    ) -> Tensor:
        """Compute a pass through all layers, and return its states; `only_row` alone if given."""
        placed_rows, tapped = self._begin(parts, caches), list[Tensor]()
        layers = range(self._model.config.num_layers)
        x = self._through(layers, self._entering(placed_rows), placed_rows, only_row, tapped)
        return self._end(x, tapped)

    def _begin(
        self, parts: Sequence[SomeRows], caches: Sequence[KvCache], enters: bool = True
    ) -> PlacedRows:
        """Reserve slots for rows, and copy them to the device; see `_place`."""
        self._reserve(parts, caches)
        return self._place(parts, caches, enters)

    def _reserve(self, parts: Sequence[SomeRows], caches: Sequence[KvCache]) -> None:
        """Reserve slots in each sequence's cache for its new rows."""
        for part, kv in zip(parts, caches, strict=True):
            kv.reserve(len(part.token_ids), part.decided)

    def _place(
        self, parts: Sequence[SomeRows], caches: Sequence[KvCache], enters: bool
    ) -> PlacedRows:
        """Copy rows to the device, and begin the model's pass.

        Args:
            parts: Rows of each sequence.
            caches: Cache of each sequence, with rows reserved.
            enters: The rows enter the first layer: copy their embeddings, too, if the table isn't
                on the device.
        """
        token_ids = [token_id for part in parts for token_id in part.token_ids]
        vectors = self._model.offloaded_vectors(token_ids) if enters else None
        rows = place_rows(parts, self._precision.device, vectors)
        sequences = list(self._sequences(parts, caches, rows))
        last_places = (part.length + max(part.layout.offsets) + 1 for part in parts)
        slots = max(*(kv.capacity for kv in caches), *last_places)
        return PlacedRows(rows, sequences, self._model.begin(rows.positions, slots))

    def _entering(self, placed_rows: PlacedRows) -> Tensor:
        """Compute the input of the first layer. [n, hidden]"""
        return self._model.entering(
            placed_rows.rows.token_ids, placed_rows.rows.vectors, placed_rows.context
        )

    def _through(
        self,
        layers: range,
        x: Tensor,
        placed_rows: PlacedRows,
        only_row: int | None,
        tapped: list[Tensor],
    ) -> Tensor:
        """Compute some layers, and append the inputs of tapped ones to `tapped`."""
        count = self._model.config.num_layers
        kept = slice(None) if only_row is None else slice(only_row, only_row + 1)
        for index in layers:
            tapped += [x[kept]] * (index in self.taps)
            # After the last layer with KV rows or states, only the wanted row is needed.
            last_row = only_row if index == self._last_holder else None
            x = self._block(index, x, placed_rows, last_row)
            if last_row is not None and index < count - 1:
                placed_rows, kept = self._alone(placed_rows, last_row), slice(None)
        tapped += [x] * (layers.stop == count and count in self.taps)
        return x

    def _alone(self, placed_rows: PlacedRows, row: int) -> PlacedRows:
        """Keep one row of a single sequence; the others are in its cache."""
        ((_, mask, kv, tree),) = placed_rows.sequences
        count = len(placed_rows.rows.positions)
        sequence = SequenceRows(slice(0, 1), None if mask is None else mask[row::count], kv, tree)
        context = placed_rows.context.only(
            torch.tensor([row], device=placed_rows.rows.positions.device)
        )
        return placed_rows._replace(sequences=[sequence], context=context)

    def _end(self, x: Tensor, tapped: list[Tensor]) -> Tensor:
        """Normalize the output of the last layer, and append tapped inputs."""
        final = self._model.final_norm(x)
        return torch.cat([final, *tapped], dim=-1) if tapped else final

    def _block(
        self, index: int, x: Tensor, placed_rows: PlacedRows, only_row: int | None
    ) -> Tensor:
        """Compute a layer whose weights are on the device."""
        return self._model.block(index, x, placed_rows.context, placed_rows.sequences, only_row)

    def _sequences(
        self, parts: Sequence[SomeRows], caches: Sequence[KvCache], rows: Rows
    ) -> Iterator[SequenceRows]:
        """Yield the range, mask and cache of each sequence."""
        start = 0
        for part, kv, visible in zip(parts, caches, rows.visible, strict=True):
            assert isinstance(kv, TensorCache)  # from new_cache
            count = len(part.token_ids)
            mask = tree = None
            if visible is not None:
                mask = additive_mask(visible, part.length, self._group, self._precision.scores)
            if kv.states is not None:
                if visible is None:
                    visible = rows.positions.new_ones(1, 1, dtype=torch.bool)
                tree = RowTree(visible, part.layout.visible is None, part.decided)
            yield SequenceRows(slice(start, start + count), mask, kv, tree)
            start += count


def rows_of(placed: Sequence[PlacedTree]) -> list[SomeRows]:
    """Return the rows of trees, on the host."""
    return [
        SomeRows(tree.token_ids, RowLayout.of_tree(tree.shape), kv.length, decided)
        for tree, kv, decided, _ in placed
    ]


def _share_workers(model: Decoder) -> Workers | None:
    """Give compiled linear layers one thread pool, in a model that isn't compiled as a whole."""
    library = native_library()
    layers = [layer for linear in model.linears for layer in _layers_of(linear)]
    compiled = [layer for layer in layers if isinstance(layer, NativeLinear)]
    if library is None or not compiled:
        return None
    workers = Workers(library)
    share_threads(compiled, workers)
    for mlp in host_mlps(model.blocks):
        if isinstance(mlp.mlp, ExpertMlps) and NativeExperts.can_compute(mlp.mlp, model.config):
            mlp.compute_by(NativeExperts(library, mlp.mlp, model.config, workers))
    return workers


def _layers_of(linear: QuantLinear) -> tuple[QuantLinear, ...]:
    """Return the linear layers of which one may be composed."""
    return linear.layers if isinstance(linear, AdaptedLinear) else (linear,)


def _build(model: Decoder, precision: Precision, _: LowerTiers | None) -> ResidentRunner:
    """Return a runner; it can compute every model."""
    return ResidentRunner(model, precision)


SPEC = RunnerSpec("resident", preference=9, build=_build)
