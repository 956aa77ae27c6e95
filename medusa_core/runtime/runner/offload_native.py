"""The compiled step, one layer a call, so that weights and KV rows can be moved in between."""

from __future__ import annotations

import ctypes
from bisect import bisect_left
from collections.abc import Sequence
from ctypes import addressof, sizeof

import torch
from torch import Tensor

from medusa_core.models.precision import Precision
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.backends.native_blocks import NativeDecoder, set_input
from medusa_core.runtime.kv.panel_cache import PanelCache
from medusa_core.runtime.offload.linear import OffloadedLayers
from medusa_core.runtime.runner.batches import Batch
from medusa_core.runtime.runner.native import NativeRunner, mark_applied
from medusa_core.runtime.runner.runner import (
    LowerTiers,
)
from medusa_core.runtime.runner.tier_prefetcher import TieredRunner, TierPrefetcher
from medusa_core.system import compute_threads
from medusa_core.system.native.pool import Pool
from medusa_core.system.native.structs import (
    CacheStruct,
    PassStruct,
    SequenceStruct,
)

# Outputs of a one-layer pass for each row: normalized output, then both taps: input and output.
_NORMED, _INPUT, _OUTPUT, _NUM_OUTPUTS = 0, 1, 2, 3
_FLOAT_BYTES = 4


class OffloadNativeRunner(TieredRunner, NativeRunner):
    """Runs forward passes layer by layer; results equal those of `NativeRunner` to the bit.

    Each layer is a C decoder of one layer, whose embedding table is the output of the layer before.

    Attributes:
        tiers: Prefetches offloaded data.
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
        self._placeholders = {} if offloaded is None else offloaded.linears
        self.store = None if lower is None else lower.rows
        self.tiers = TierPrefetcher(offloaded, lower, precision.device)
        self._layers = [native.layer(index) for index in range(model.config.num_layers)]
        self._num_holding = model.config.num_layers  # one pass for all layers: each is read once

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> PanelCache:
        """Return an empty cache whose offloaded rows are in the store."""
        config, dtype = self._model.config, self.cache_dtype
        return PanelCache(self._library, config, dtype, capacity, memory, self.store)

    def _rows_at_once(self, counts: Sequence[int]) -> int:
        """Number of rows of the largest batch."""
        return max(batch.num_rows for batch in self.tiers.batches(counts))

    def _run(
        self,
        pass_struct: PassStruct,
        caches: Sequence[PanelCache],
        wanted: Sequence[int],
        pool: Pool,
    ) -> Tensor:
        """Run a pass layer by layer, and in each layer batch by batch."""
        config, tiers = self._model.config, self.tiers
        sequences = (SequenceStruct * len(caches)).from_address(pass_struct.sequences)
        batches = tiers.batches([sequence.tree.num_rows for sequence in sequences])
        parts = [_BatchPass(batch, pass_struct, caches, wanted) for batch in batches]
        counts, layers = [batch.num_rows for batch in batches], range(config.num_layers)
        states = torch.empty(len(wanted), 1 + len(self.taps), config.hidden_size)
        x = torch.empty(max(counts), _NUM_OUTPUTS, config.hidden_size)
        # Torch's idle threads would spin on cores that the pool needs.
        with compute_threads.limited(1), tiers.running(batches, caches, layers):
            tiers.activations.begin(counts, config.hidden_size, x.dtype)
            for index in layers:
                linears = tiers.acquire(index)
                if linears:
                    self._native.fill_placeholders(self._placeholders[index], linears)
                for number, part in enumerate(parts):
                    self._set_input(index, number, part)
                    self._compute(index, part, x, pool)
                    self._keep_output(index, number, part, x, states[part.output])
        return states.flatten(1)

    def _set_input(self, index: int, number: int, part: _BatchPass) -> None:
        """Set the input of a layer: embeddings, or the output of the layer before."""
        if index:
            part.input = self.tiers.activations.get(number, torch.device("cpu"))
            set_input(self._layers[index], part.input)
        else:
            self._layers[0].embedding = self._native.struct.embedding
            self._layers[0].embedding_is_bf16 = self._native.struct.embedding_is_bf16

    def _compute(self, index: int, part: _BatchPass, x: Tensor, pool: Pool) -> None:
        """Compute a layer for a batch into `x`. [rows, _NUM_OUTPUTS, hidden]"""
        with self.tiers.cached_rows(index, part.batch):
            one = part.layer_pass(index, x, self._first(index, part))
            self._library.forward(addressof(self._layers[index]), addressof(one), pool.awake())
        part.mark_applied()  # the first layer's call applies the steps of all layers

    def _keep_output(
        self, index: int, number: int, part: _BatchPass, x: Tensor, states: Tensor
    ) -> None:
        """Keep tapped values of the wanted rows, and the input of the next layer."""
        rows = x[part.wanted_offsets(self._first(index, part))]
        self._keep_taps(index, rows, states)
        if self._is_last(index):
            states[:, 0] = rows[:, _NORMED]
        else:
            self.tiers.activations.put(number, x[: part.batch.num_rows, _OUTPUT].clone())

    def _first(self, index: int, part: _BatchPass) -> int:
        """Index of the first row that the MLP of a layer computes."""
        return part.first_wanted if self._is_last(index) else 0

    def _is_last(self, index: int) -> bool:
        """Whether a layer is the model's last one."""
        return index == self._model.config.num_layers - 1

    def _keep_taps(self, index: int, rows: Tensor, states: Tensor) -> None:
        """Copy a layer's input and output into the states if they are tapped."""
        for place, tap in enumerate(self.taps, start=1):
            if tap == index:
                states[:, place] = rows[:, _INPUT]
            elif self._is_last(index) and tap == index + 1:
                states[:, place] = rows[:, _OUTPUT]


class _BatchPass:
    """C structures of a batch, for passes of one layer.

    Attributes:
        batch: Sequences and rows.
        wanted: Indices of its rows whose states are needed.
        output: Range of these among the needed rows of all batches.
        input: Input of the current layer; this reference keeps it alive while C reads it.
    """

    def __init__(
        self,
        batch: Batch,
        whole: PassStruct,
        caches: Sequence[PanelCache],
        wanted: Sequence[int],
    ) -> None:
        """Copy the batch's part of a pass.

        Args:
            batch: Sequences and rows.
            whole: The pass with all batches.
            caches: Caches of all sequences.
            wanted: Indices of all rows whose states are needed, ascending.
        """
        start, count = batch.rows.start, batch.num_rows
        self.batch = batch
        self.output = slice(bisect_left(wanted, start), bisect_left(wanted, start + count))
        self.wanted = [row - start for row in wanted[self.output]]
        self.input = torch.empty(0)
        self._caches = caches[batch.sequences]
        self._first_sequence = whole.sequences + sizeof(SequenceStruct) * batch.sequences.start
        self._struct = PassStruct.from_buffer_copy(whole)
        self._struct.num_rows, self._struct.num_sequences = count, len(self._caches)
        self._struct.token_ids = whole.token_ids + sizeof(ctypes.c_int64) * start
        if whole.per_layer_inputs:
            self._struct.per_layer_inputs = (
                whole.per_layer_inputs + _FLOAT_BYTES * whole.per_layer_width * start
            )
        # After the first layer, row i looks up row i of the layer before.
        self._ids = (ctypes.c_int64 * count)(*range(count))
        self._both_ends = (ctypes.c_int32 * 2)(0, 1)  # taps: input and output of the one layer
        self._struct.taps, self._struct.num_taps = addressof(self._both_ends), 2
        self._sequences = (SequenceStruct * len(self._caches))()
        self._of_layer: list[ctypes.Array[CacheStruct]] = []

    @property
    def first_wanted(self) -> int:
        """First row that the last layer's MLP computes; 0 if there are several sequences."""
        return self.wanted[0] if len(self._caches) == 1 else 0

    def layer_pass(self, layer: int, x: Tensor, first: int) -> PassStruct:
        """Return the C pass through one layer.

        Args:
            layer: Index of the layer.
            x: Destination of the outputs. [rows, _NUM_OUTPUTS, hidden]
            first: First row with outputs.
        """
        one = self._struct
        ctypes.memmove(self._sequences, self._first_sequence, sizeof(self._sequences))
        self._of_layer = [kv.from_layer(layer) for kv in self._caches]
        for sequence, kv, struct in zip(self._sequences, self._caches, self._of_layer, strict=True):
            sequence.num_pending, sequence.cache = kv.num_pending, addressof(struct)
        one.sequences = addressof(self._sequences)
        one.hidden_states, one.first_output_row = x.data_ptr(), first
        if layer:
            one.token_ids = addressof(self._ids)
        return one

    def mark_applied(self) -> None:
        """Note that the pending steps of its caches are applied."""
        mark_applied(self._caches)

    def wanted_offsets(self, first: int) -> Tensor:
        """Indices of the needed rows, relative to row `first`."""
        return torch.tensor(self.wanted) - first
