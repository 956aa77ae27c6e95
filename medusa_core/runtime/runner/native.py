"""The runner for a CPU that has the compiled step: one call per forward pass.

A row's result doesn't depend on the rows beside it: a token tree's scores equal those of plain
decoding to the bit, and so do those of a prompt read in other chunks.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from ctypes import addressof
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.models.decoder import Decoder
from medusa_core.models.layer_shapes import num_holding
from medusa_core.models.precision import Precision
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.panel_cache import PanelCache
from medusa_core.runtime.offload.linear import offloaded_layers
from medusa_core.runtime.runner.compiled_decoder import (
    NativeDecoder,
    native_decoder,
)
from medusa_core.runtime.runner.runner import (
    LowerTiers,
    PlacedTree,
    Runner,
    RunnerSpec,
    Waited,
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
        token_ids: Their tokens.
        parents: Of each row the one before it, −1 for what follows the committed rows. int32
        depths: How many rows come before each. int32
        kv: The cache that they stand behind.
        decided: All of them will be committed.
    """

    token_ids: Sequence[int]
    parents: array[int]
    depths: array[int]
    kv: KvCache
    decided: bool = False


class _Layers(NamedTuple):
    """Some consecutive layers.

    Attributes:
        decoder: The decoder that has these alone.
        taps: Of which is told what enters them, counted among these.
        first: The first of them among all.
    """

    decoder: DecoderStruct
    taps: tuple[int, ...]
    first: int = 0


def _rows_of(placed: Sequence[PlacedTree]) -> list[_Rows]:
    return [
        _Rows(tree.token_ids, tree.shape.parent_array, tree.shape.depth_array, kv, decided)
        for tree, kv, decided, _ in placed
    ]


class NativeRunner(Runner):
    """Runs forward passes; see `Runner`. States and scores are float32.

    Attributes:
        hidden_dtype: Dtype of the states.
        cache_dtype: Dtype of keys and values.
        taps: As `Runner` has them.
        workers: The threads that compute.
    """

    def __init__(self, model: Decoder, precision: Precision, native: NativeDecoder) -> None:
        self.hidden_dtype = torch.float32
        self.cache_dtype = precision.compute
        assert isinstance(model.lm_head, NativeLinear)  # else there is no NativeDecoder
        self.taps: tuple[int, ...] = ()
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

    @property
    def waited(self) -> Waited:
        return Waited()  # all layers are on the device

    def use_threads(self, decoding: int, prefill: int) -> None:
        compute_threads.use(decoding)
        self.workers.use(decoding, prefill)
        self._scratch_for = (0, 0)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> PanelCache:
        return PanelCache(self._library, self._model.config, self.cache_dtype, capacity, memory)

    def tap(self, layers: Sequence[int]) -> None:
        self.taps = tuple(layers)

    def verify(self, *placed: PlacedTree) -> Tensor:
        pool = self.workers.prefill if reads_prompts(placed) else self.workers.decoding
        return self._forward(_rows_of(placed), wanted_rows(placed), pool)

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        count = len(token_ids)
        rows = _Rows(token_ids, *self._chain(count), kv, decided=True)
        pool = self.workers.prefill if count > 1 else self.workers.decoding
        is_long = count > 1 and kv.states is None  # which are committed once
        if only_last and is_long and self._num_holding < self._model.config.num_layers:
            return self._extend_by_one(rows, pool)
        hidden = self._forward([rows], [count - 1] if only_last else None, pool)
        kv.commit(range(count))
        return hidden

    def _extend_by_one(self, rows: _Rows, pool: Pool) -> Tensor:
        """Only the last row goes through layers that hold nothing: there the others serve nobody.

        Returns:
            Its state. [1, (1 + taps) · hidden]
        """
        token_ids, kv = rows.token_ids, rows.kv
        count, first, size = len(token_ids), self._num_holding, self._model.config.hidden_size
        below = tuple(tap for tap in self.taps if tap < first)
        brought = self._brought_of(token_ids)
        lower = _Layers(self._native.below(first), (*below, first))
        reached = self._forward([rows], [count - 1], pool, lower, brought)
        kv.commit(range(count - 1))
        entering = reached[:, -size:].contiguous()
        taps = tuple(tap - first for tap in self.taps if tap >= first)
        upper = _Layers(self._native.from_layer(first, entering), taps, first)
        own = None if brought is None else brought[count - 1 :].contiguous()
        last = self._forward([_Rows([0], *self._chain(1), kv)], None, pool, upper, own)
        kv.commit(range(1))
        return torch.cat([last[:, :size], reached[:, size:-size], last[:, size:]], dim=1)

    def embed_from(self, vectors: Tensor) -> None:
        self._model.embedding = vectors  # which keeps them where the library looks
        self._native.embed_from(vectors)

    def logits(self, states: Tensor) -> Tensor:
        hidden = states[:, : self._model.config.hidden_size].contiguous()
        scores = self._lm_head.run(hidden, self.workers.decoding)
        divisor, cap = self._model.config.traits.score_bounds
        if divisor != 1 or cap:
            pool = self.workers.decoding.awake()
            self._library.bound_scores(scores.data_ptr(), scores.numel(), divisor, cap, pool)
        return scores

    def _forward(
        self,
        parts: Sequence[_Rows],
        wanted: Sequence[int] | None,
        pool: Pool,
        some: _Layers | None = None,
        brought: Tensor | None = None,
    ) -> Tensor:
        """Compute rows of some sequences.

        Args:
            parts: The rows.
            wanted: Those whose states are wanted, rising; None for all.
            pool: Who computes.
            some: Through which layers they pass; None for all.
            brought: What their tokens bring to each layer; a pass that begins with the first adds
                to it. None looks it up.

        Returns:
            States of the wanted rows. [k, (1 + taps) · hidden]
        """
        tapped = self.taps if some is None else some.taps
        token_ids = [token_id for part in parts for token_id in part.token_ids]
        count, sequences = len(token_ids), (SequenceStruct * len(parts))()
        structs: list[CacheStruct | None] = []  # as long as the pass takes
        caches: list[PanelCache] = []
        for sequence, (its_ids, parents, depths, kv, decided) in zip(sequences, parts, strict=True):
            assert isinstance(kv, PanelCache)  # from new_cache
            kv.reserve(len(its_ids), decided)
            caches.append(kv)
            sequence.is_decided = decided
            if kv.states_struct is not None:
                sequence.states = addressof(kv.states_struct)
            sequence.pending = kv.num_pending
            sequence.rows, sequence.length = len(its_ids), kv.length
            sequence.parents = parents.buffer_info()[0]
            sequence.depths = depths.buffer_info()[0]
            behind = None if some is None or not some.first else kv.from_layer(some.first)
            sequence.cache = kv.address if behind is None else addressof(behind)
            structs.append(behind)
        at_once = self._rows_at_once([len(part.token_ids) for part in parts])
        self._make_ready(at_once, max(part.kv.capacity for part in parts))
        if brought is None:
            brought = self._brought_of(token_ids)
        ids = (ctypes.c_int64 * count)(*token_ids)
        taps = (ctypes.c_int32 * len(tapped))(*tapped)
        pass_struct = self._pass
        pass_struct.sequences, pass_struct.num_sequences = addressof(sequences), len(parts)
        pass_struct.rows, pass_struct.token_ids = count, addressof(ids)
        pass_struct.taps, pass_struct.num_taps = addressof(taps), len(taps)
        if brought is not None:
            pass_struct.brought, pass_struct.brought_width = brought.data_ptr(), brought.shape[1]
        pass_struct.workers = pool.num_workers
        pass_struct.scratch = self._scratch.data_ptr()
        rows = range(count) if wanted is None else wanted
        if some is None:
            return self._run(pass_struct, caches, rows, pool)
        return self._run_through(some.decoder, pass_struct, caches, rows, pool)

    def _brought_of(self, token_ids: Sequence[int]) -> Tensor | None:
        """What tokens bring to each layer beside what enters the first, or None."""
        found = self._model.per_layer_rows(token_ids)
        return None if found is None else found.float().contiguous()

    def _run(
        self,
        pass_struct: PassStruct,
        caches: Sequence[PanelCache],
        wanted: Sequence[int],
        pool: Pool,
    ) -> Tensor:
        """Run a pass through all layers; returns the wanted rows' states."""
        return self._run_through(self._native.struct, pass_struct, caches, wanted, pool)

    def _run_through(
        self,
        decoder: DecoderStruct,
        pass_struct: PassStruct,
        caches: Sequence[PanelCache],
        wanted: Sequence[int],
        pool: Pool,
    ) -> Tensor:
        """Run a pass through the layers of a decoder; returns the wanted rows' states."""
        # Only of one sequence rows may end early.
        first = wanted[0] if pass_struct.num_sequences == 1 else 0
        count = pass_struct.rows
        width = (1 + pass_struct.num_taps) * self._model.config.hidden_size
        states = torch.empty(count - first, width)
        pass_struct.first_wanted, pass_struct.hidden = first, states.data_ptr()
        self._library.forward(addressof(decoder), addressof(pass_struct), pool.awake())
        applied(caches)
        if len(wanted) == count - first:
            return states
        return states[torch.tensor([row - first for row in wanted])]

    def _rows_at_once(self, counts: Sequence[int]) -> int:
        """Rows that are computed at once, of sequences of so many rows each."""
        return sum(counts)

    def _make_ready(self, num_rows: int, num_slots: int) -> None:
        """Room to work in, and what all positions do."""
        self._native.reach(num_slots)
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


def applied(caches: Sequence[PanelCache]) -> None:
    """A pass has applied the pending steps of these."""
    for kv in caches:
        kv.mark_applied()


def _build(model: Decoder, precision: Precision, _: LowerTiers | None) -> NativeRunner | None:
    if offloaded_layers(model) is not None:
        return None
    native = native_decoder(model, precision)
    return None if native is None else NativeRunner(model, precision, native)


SPEC = RunnerSpec("native", preference=0, build=_build)
