"""The runner for CPUs with the compiled step: one call of the library per forward pass.

The result of a row doesn't depend on the other rows of a pass: logits of a token tree equal those
of plain decoding to the bit, and so do those of a prompt read in other chunks.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from ctypes import addressof
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.models.layer_shapes import num_holding
from medusa_core.models.precision import Precision
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.models.token_table import DenseTable
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.backends.native_blocks import (
    NativeDecoder,
    native_decoder,
    set_embedding,
)
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.panel_cache import PanelCache
from medusa_core.runtime.offload.linear import offloaded_layers
from medusa_core.runtime.runner.runner import (
    LowerTiers,
    PlacedTree,
    Runner,
    RunnerSpec,
    reads_prompts,
    wanted_rows,
)
from medusa_core.system import compute_threads
from medusa_core.system.native.pool import (
    Pool,
    Workers,
)
from medusa_core.system.native.structs import (
    CacheStruct,
    DecoderStruct,
    PassStruct,
    SequenceStruct,
)

_MOST_CHAINS = 64


class _Rows(NamedTuple):
    """The rows of one sequence in a pass.

    Attributes:
        token_ids: Token ids.
        parents: Parent of each row, −1 for the root. int32
        depths: Depth of each row, 0 for the root. int32
        kv: Cache that they extend.
        decided: All of them will be committed, such as those of a prompt.
    """

    token_ids: Sequence[int]
    parents: array[int]
    depths: array[int]
    kv: KvCache
    decided: bool = False


class _Layers(NamedTuple):
    """A range of layers.

    Attributes:
        decoder: C decoder of these layers alone.
        taps: Tapped layers, relative to the first of the range.
        first: Index of the first layer.
    """

    decoder: DecoderStruct
    taps: tuple[int, ...]
    first: int = 0


def _rows_of(placed: Sequence[PlacedTree]) -> list[_Rows]:
    """Convert token trees to rows for the library."""
    return [
        _Rows(tree.token_ids, tree.shape.parent_array, tree.shape.depth_array, kv, decided)
        for tree, kv, decided, _ in placed
    ]


class NativeRunner(Runner):
    """Runs forward passes; see `Runner`. Hidden states and logits are float32."""

    def __init__(self, model: Decoder, precision: Precision, native: NativeDecoder) -> None:
        self.hidden_dtype = torch.float32
        self.cache_dtype = torch.uint8 if precision.cache_format else precision.compute
        assert isinstance(model.lm_head, NativeLinear)  # else there is no NativeDecoder
        self._model = model
        self._lm_head = model.lm_head
        self._native = native
        self._library = native.library
        self.workers: Workers = Workers(self._library)
        self._pass = PassStruct()
        self._scratch = torch.empty(0)
        self._scratch_for = (0, 0)
        self._chains: dict[int, tuple[array[int], array[int]]] = {}
        self._num_holding = num_holding(model.config.layers)

    def use_threads(self, decoding: int, prefill: int) -> None:
        """Set the sizes of both thread pools; see `Runner.use_threads`."""
        compute_threads.use(decoding)
        self.workers.use(decoding, prefill)
        self._scratch_for = (0, 0)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> PanelCache:
        """Return an empty cache in the library's layout; see `Runner.new_cache`."""
        return PanelCache(self._library, self._model.config, self.cache_dtype, capacity, memory)

    def verify(self, *placed: PlacedTree) -> Tensor:
        """Compute all trees by one call of the library; see `Runner.verify`."""
        pool = self.workers.prefill if reads_prompts(placed) else self.workers.decoding
        return self._forward(_rows_of(placed), wanted_rows(placed), pool)

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        """Compute and commit consecutive tokens; see `Runner.extend`."""
        count = len(token_ids)
        rows = _Rows(token_ids, *self._chain(count), kv, decided=True)
        pool = self.workers.prefill if count > 1 else self.workers.decoding
        can_split = count > 1 and kv.states is None  # states allow one commit a pass
        if only_last and can_split and self._num_holding < self._model.config.num_layers:
            return self._extend_last_alone(rows, pool)
        hidden = self._forward([rows], [count - 1] if only_last else None, pool)
        kv.commit(range(count))
        return hidden

    def _extend_last_alone(self, rows: _Rows, pool: Pool) -> Tensor:
        """Compute only the last row in the layers that have no KV rows of their own.

        Nothing reads the other rows' output of these layers.

        Returns:
            Hidden state of the last row. [1, (1 + taps) · hidden]
        """
        token_ids, kv = rows.token_ids, rows.kv
        count, first, size = len(token_ids), self._num_holding, self._model.config.hidden_size
        lower_taps = tuple(tap for tap in self.taps if tap < first)
        per_layer = self._per_layer_inputs(token_ids)
        lower = _Layers(self._native.up_to_layer(first), (*lower_taps, first))
        states = self._forward([rows], [count - 1], pool, lower, per_layer)
        kv.commit(range(count - 1))
        entering = states[:, -size:].contiguous()
        taps = tuple(tap - first for tap in self.taps if tap >= first)
        upper = _Layers(self._native.from_layer(first, entering), taps, first)
        own = None if per_layer is None else per_layer[count - 1 :].contiguous()
        last = self._forward([_Rows([0], *self._chain(1), kv)], None, pool, upper, own)
        kv.commit(range(1))
        return torch.cat([last[:, :size], states[:, size:-size], last[:, size:]], dim=1)

    def embed_from(self, vectors: Tensor) -> None:
        """Replace the embedding table; see `Runner.embed_from`."""
        self._model.embedding = DenseTable(vectors)

    def logits(self, states: Tensor) -> Tensor:
        """Compute logits in the library; see `Runner.logits`."""
        hidden = states[:, : self._model.config.hidden_size].contiguous()
        scores = self._lm_head.run(hidden, self.workers.decoding)
        config = self._model.config
        divisor, cap = config.logits_scaling, config.final_logit_softcapping or 0.0
        if divisor != 1 or cap:
            pool = self.workers.decoding.awake()
            self._library.scale_logits(scores.data_ptr(), scores.numel(), divisor, cap, pool)
        return scores

    def _forward(
        self,
        parts: Sequence[_Rows],
        wanted: Sequence[int] | None,
        pool: Pool,
        some: _Layers | None = None,
        per_layer: Tensor | None = None,
    ) -> Tensor:
        """Compute rows of some sequences.

        Args:
            parts: Rows of each sequence.
            wanted: Indices of rows whose states are needed, ascending; None for all.
            pool: Threads that compute.
            some: Range of layers; None for all.
            per_layer: Per-layer inputs of the tokens; None looks them up. A pass from the first
                layer on completes them in place.

        Returns:
            Hidden states of the wanted rows. [k, (1 + taps) · hidden]
        """
        tapped = self.taps if some is None else some.taps
        token_ids = [token_id for part in parts for token_id in part.token_ids]
        count, sequences = len(token_ids), (SequenceStruct * len(parts))()
        structs: list[ctypes.Array[CacheStruct] | None] = []  # kept alive during the pass
        caches: list[PanelCache] = []
        for sequence, (ids_of, parents, depths, kv, decided) in zip(sequences, parts, strict=True):
            assert isinstance(kv, PanelCache)  # from new_cache
            kv.reserve(len(ids_of), decided)
            caches.append(kv)
            sequence.is_decided = decided
            if kv.states_struct is not None:
                sequence.states = addressof(kv.states_struct)
            sequence.num_pending = kv.num_pending
            tree = sequence.tree
            tree.num_rows, tree.num_committed = len(ids_of), kv.length
            tree.parents = parents.buffer_info()[0]
            tree.depths = depths.buffer_info()[0]
            upper = None if some is None or not some.first else kv.from_layer(some.first)
            sequence.cache = kv.address if upper is None else addressof(upper)
            structs.append(upper)
        at_once = self._rows_at_once([len(part.token_ids) for part in parts])
        self._allocate_scratch(at_once, max(part.kv.capacity for part in parts))
        if per_layer is None:
            per_layer = self._per_layer_inputs(token_ids)
        decoder = self._native.struct if some is None else some.decoder
        if some is None or not some.first:
            vectors, indices = self._model.embedding.find(token_ids)
            set_embedding(decoder, vectors)
        else:
            indices = token_ids
        ids = (ctypes.c_int64 * count)(*indices)
        taps = (ctypes.c_int32 * len(tapped))(*tapped)
        pass_struct = self._pass
        pass_struct.sequences, pass_struct.num_sequences = addressof(sequences), len(parts)
        pass_struct.num_rows, pass_struct.token_ids = count, addressof(ids)
        pass_struct.taps, pass_struct.num_taps = addressof(taps), len(taps)
        if per_layer is not None:
            pass_struct.per_layer_inputs = per_layer.data_ptr()
            pass_struct.per_layer_width = per_layer.shape[1]
        pass_struct.num_workers = pool.num_workers
        pass_struct.scratch = self._scratch.data_ptr()
        rows = range(count) if wanted is None else wanted
        if some is None:
            return self._run(pass_struct, caches, rows, pool)
        return self._run_through(decoder, pass_struct, caches, rows, pool)

    def _per_layer_inputs(self, token_ids: Sequence[int]) -> Tensor | None:
        """Look up per-layer embeddings, as in Gemma 4; None without such. [n, layers · width]"""
        found = self._model.per_layer_rows(token_ids)
        return None if found is None else found.float().contiguous()

    def _run(
        self,
        pass_struct: PassStruct,
        caches: Sequence[PanelCache],
        wanted: Sequence[int],
        pool: Pool,
    ) -> Tensor:
        """Run a pass through all layers, and return the states of the wanted rows."""
        return self._run_through(self._native.struct, pass_struct, caches, wanted, pool)

    def _run_through(
        self,
        decoder: DecoderStruct,
        pass_struct: PassStruct,
        caches: Sequence[PanelCache],
        wanted: Sequence[int],
        pool: Pool,
    ) -> Tensor:
        """Run a pass through the layers of a decoder, and return the states of the wanted rows."""
        # The last layer can skip rows only at the start of the pass, so not of several sequences.
        first = wanted[0] if pass_struct.num_sequences == 1 else 0
        count = pass_struct.num_rows
        width = (1 + pass_struct.num_taps) * self._model.config.hidden_size
        states = torch.empty(count - first, width)
        pass_struct.first_output_row, pass_struct.hidden_states = first, states.data_ptr()
        self._library.forward(addressof(decoder), addressof(pass_struct), pool.awake())
        mark_applied(caches)
        if len(wanted) == count - first:
            return states
        return states[torch.tensor([row - first for row in wanted])]

    def _rows_at_once(self, counts: Sequence[int]) -> int:
        """Number of rows in the largest call of the library, given those of each sequence."""
        return sum(counts)

    def _allocate_scratch(self, num_rows: int, num_slots: int) -> None:
        """Grow the scratch memory and the RoPE tables."""
        self._native.extend_rope(num_slots)
        most_rows, most_slots = self._scratch_for
        if num_rows > most_rows or num_slots > most_slots:
            self._scratch_for = (max(num_rows, most_rows), max(num_slots, most_slots))
            workers = max(self.workers.decoding.num_workers, self.workers.prefill.num_workers)
            floats = self._native.scratch_floats(*self._scratch_for, workers)
            self._scratch = torch.empty(floats)

    def _chain(self, count: int) -> tuple[array[int], array[int]]:
        """Parents and depths of consecutive tokens."""
        if count not in self._chains:
            if len(self._chains) >= _MOST_CHAINS:
                self._chains.clear()
            self._chains[count] = (array("i", range(-1, count - 1)), array("i", range(count)))
        return self._chains[count]


def mark_applied(caches: Sequence[PanelCache]) -> None:
    """Note that a pass has applied the pending steps of these caches."""
    for kv in caches:
        kv.mark_applied()


def _build(model: Decoder, precision: Precision, _: LowerTiers | None) -> NativeRunner | None:
    """Return a runner if the library can compute the whole model and nothing is offloaded."""
    if offloaded_layers(model) is not None:
        return None
    native = native_decoder(model, precision)
    return None if native is None else NativeRunner(model, precision, native)


SPEC = RunnerSpec("native", preference=0, build=_build)
