"""The compiled step layer by layer, so that layers may come and go between two of them."""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Sequence
from ctypes import addressof, sizeof

import torch
from torch import Tensor

from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.runtime.kv.panel_cache import PanelCache
from medusa_core.runtime.offload.linear import OffloadedLayers
from medusa_core.runtime.runner.batches import Batch
from medusa_core.runtime.runner.compiled_decoder import NativeDecoder, enter_with
from medusa_core.runtime.runner.native import NativeRunner, applied
from medusa_core.runtime.runner.runner import (
    LowerTiers,
)
from medusa_core.runtime.runner.tier_visits import TierVisits
from medusa_core.runtime.runner.tiered import TieredRunner
from medusa_core.system import compute_threads
from medusa_core.system.native.pool import Pool
from medusa_core.system.native.structs import (
    CacheStruct,
    DecoderStruct,
    PassStruct,
    SequenceStruct,
)

# What a pass through one layer tells of each row: what leaves it, behind the last norm; what
# enters it; what leaves it.
_NORMED, _BEFORE, _BEHIND, _TOLD = 0, 1, 2, 3
_FLOAT_BYTES = 4


class OffloadNativeRunner(TieredRunner, NativeRunner):
    """Runs forward passes layer by layer; what it computes is what `NativeRunner` computes.

    A layer is a decoder of one layer, whose token vectors are what the layer before gave.

    Attributes:
        tiers: Brings what lies below.
    """

    def __init__(
        self,
        model: Decoder,
        precision: Precision,
        native: NativeDecoder,
        offloaded: OffloadedLayers | None,
        lower: LowerTiers | None,
    ) -> None:
        super().__init__(model, precision, native)
        self._stand_ins = {} if offloaded is None else offloaded.linears
        self.store = None if lower is None else lower.rows
        self.tiers = TierVisits(offloaded, lower, precision.device)
        self._layers = [native.layer(index) for index in range(model.config.num_layers)]
        self._num_holding = model.config.num_layers  # a pass is one: layers come once

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> PanelCache:
        config, dtype = self._model.config, self.cache_dtype
        return PanelCache(self._library, config, dtype, capacity, memory, self.store)

    def _rows_at_once(self, counts: Sequence[int]) -> int:
        return max(batch.num_rows for batch in self.tiers.batches(counts))

    def _run(
        self,
        pass_struct: PassStruct,
        caches: Sequence[PanelCache],
        wanted: Sequence[int],
        pool: Pool,
    ) -> Tensor:
        config, tiers = self._model.config, self.tiers
        sequences = (SequenceStruct * len(caches)).from_address(pass_struct.sequences)
        batches = tiers.batches([sequence.rows for sequence in sequences])
        parts = [_BatchPass(batch, pass_struct, caches, wanted) for batch in batches]
        counts, layers = [batch.num_rows for batch in batches], range(config.num_layers)
        told = torch.empty(len(wanted), 1 + len(self.taps), config.hidden_size)
        x = torch.empty(max(counts), _TOLD, config.hidden_size)
        # Torch's threads would stay awake on cores that the pool's need.
        with compute_threads.limited(1), tiers.passing(batches, caches, layers):
            tiers.states.begin(counts, config.hidden_size, x.dtype)
            for index in layers:
                linears = tiers.enter(index)
                if linears:
                    self._native.place(self._stand_ins[index], linears)
                for number, part in enumerate(parts):
                    self._enter(index, number, part)
                    self._compute(index, part, x, pool)
                    self._leave(index, number, part, x, told[part.told])
        return told.flatten(1)

    def _enter(self, index: int, number: int, part: _BatchPass) -> None:
        """Let a batch's rows enter a layer: their token vectors, or what the layer before gave."""
        if index:
            part.entering = self.tiers.states.take(number, torch.device("cpu"))
            enter_with(self._layers[index], part.entering)
        elif self._model.embedding.is_meta:
            part.look_up(self._model, self._layers[index])

    def _compute(self, index: int, part: _BatchPass, x: Tensor, pool: Pool) -> None:
        """Take a batch through a layer; `x` tells all of it. [rows, _TOLD, hidden]"""
        with self.tiers.visit(index, part.batch):
            one = part.through(index, x, self._first(index, part))
            self._library.forward(addressof(self._layers[index]), addressof(one), pool.awake())
        part.mark_applied()  # of all layers, by the first

    def _leave(self, index: int, number: int, part: _BatchPass, x: Tensor, told: Tensor) -> None:
        """Keep what is wanted of a batch's rows, and what enters the next layer."""
        its = x[part.places(self._first(index, part))]
        self._describe(index, its, told)
        if self._is_last(index):
            told[:, 0] = its[:, _NORMED]
        else:
            self.tiers.states.put(number, x[: part.batch.num_rows, _BEHIND].clone())

    def _first(self, index: int, part: _BatchPass) -> int:
        """The first row that goes through all of a layer."""
        return part.first_wanted if self._is_last(index) else 0

    def _is_last(self, index: int) -> bool:
        return index == self._model.config.num_layers - 1

    def _describe(self, index: int, x: Tensor, told: Tensor) -> None:
        """Keep what enters a layer, and what leaves the last one, where that is wanted."""
        for place, tap in enumerate(self.taps, start=1):
            if tap == index:
                told[:, place] = x[:, _BEFORE]
            elif self._is_last(index) and tap == index + 1:
                told[:, place] = x[:, _BEHIND]


class _BatchPass:
    """A batch of a pass, which goes through one layer at a time.

    Attributes:
        batch: Its sequences and rows.
        wanted: Of its rows those whose states are wanted.
        told: Where these are among all that are wanted.
        entering: What enters the layer that it is in; that lives as long as this names it.
    """

    def __init__(
        self,
        batch: Batch,
        whole: PassStruct,
        caches: Sequence[PanelCache],
        wanted: Sequence[int],
    ) -> None:
        """Take its part of a pass.

        Args:
            batch: It.
            whole: The pass.
            caches: Of all its sequences.
            wanted: Of all its rows those whose states are wanted, rising.
        """
        start, count = batch.rows.start, batch.num_rows
        self.batch = batch
        self.told = slice(bisect_left(wanted, start), bisect_left(wanted, start + count))
        self.wanted = [row - start for row in wanted[self.told]]
        self.entering = torch.empty(0)
        self._caches = caches[batch.sequences]
        self._first_sequence = whole.sequences + sizeof(SequenceStruct) * batch.sequences.start
        self._struct = PassStruct.from_buffer_copy(whole)
        self._struct.rows, self._struct.num_sequences = count, len(self._caches)
        self._struct.token_ids = whole.token_ids + sizeof(ctypes.c_int64) * start
        if whole.brought:
            self._struct.brought = whole.brought + _FLOAT_BYTES * whole.brought_width * start
        # Behind the first layer a row is its own token.
        self._ids = (ctypes.c_int64 * count)(*range(count))
        self._both_ends = (ctypes.c_int32 * 2)(0, 1)  # of a decoder of one layer
        self._struct.taps, self._struct.num_taps = addressof(self._both_ends), 2
        self._sequences = (SequenceStruct * len(self._caches))()
        self._of_layer: list[CacheStruct] = []

    def look_up(self, model: Decoder, layer: DecoderStruct) -> None:
        """Let the first layer be entered by token vectors that stay in their file.

        Raises:
            CheckpointError: The file can't be read.
        """
        ids = (ctypes.c_int64 * self.batch.num_rows).from_address(self._struct.token_ids)
        vectors = model.stored_vectors(list(ids))
        assert vectors is not None  # they lie there
        self.entering = vectors
        layer.embedding = vectors.data_ptr()
        layer.embedding_is_half = vectors.dtype == torch.bfloat16
        self._struct.token_ids = addressof(self._ids)

    @property
    def first_wanted(self) -> int:
        """The first row that goes through all of the last layer: of one sequence some may not."""
        return self.wanted[0] if len(self._caches) == 1 else 0

    def through(self, layer: int, x: Tensor, first: int) -> PassStruct:
        """The pass through one layer, which tells all of it of the rows from `first` on.

        Args:
            layer: Which.
            x: Takes that. [rows, _TOLD, hidden]
            first: The first row.
        """
        one = self._struct
        ctypes.memmove(self._sequences, self._first_sequence, sizeof(self._sequences))
        self._of_layer = [kv.from_layer(layer) for kv in self._caches]
        for sequence, kv, struct in zip(self._sequences, self._caches, self._of_layer, strict=True):
            sequence.pending, sequence.cache = kv.num_pending, addressof(struct)
        one.sequences = addressof(self._sequences)
        one.hidden, one.first_wanted = x.data_ptr(), first
        if layer:
            one.token_ids = addressof(self._ids)
        return one

    def mark_applied(self) -> None:
        """The pass has applied the pending steps of its caches."""
        applied(self._caches)

    def places(self, first: int) -> Tensor:
        """Where the wanted rows are among those from `first` on."""
        return torch.tensor(self.wanted) - first
