"""The runner for a CPU that has the compiled step: one call per forward pass.

A row's result doesn't depend on the rows beside it: a token tree's scores equal those of plain
decoding to the bit, and so do those of a prompt read in other chunks.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from ctypes import addressof

import torch
from torch import Tensor

from medusa_core.kv.cache import KvCache
from medusa_core.kv.panel_cache import PanelCache
from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.native.pool import Pool, Workers
from medusa_core.native.structs import PassStruct
from medusa_core.quant.native_linear import NativeLinear
from medusa_core.runner.compiled_decoder import NativeDecoder, native_decoder
from medusa_core.runner.runner import RunnerSpec
from medusa_core.tree.shape import TokenTree

_MOST_CHAINS = 64


class NativeRunner:
    """Runs forward passes; see `Runner`. States and scores are float32.

    Attributes:
        hidden_dtype: Dtype of the states.
        cache_dtype: Dtype of keys and values.
        workers: The threads that compute.
    """

    def __init__(self, model: Decoder, precision: Precision, native: NativeDecoder) -> None:
        self.hidden_dtype = torch.float32
        self.cache_dtype = precision.compute
        assert isinstance(model.lm_head, NativeLinear)  # else there is no NativeDecoder
        self._model = model
        self._lm_head = model.lm_head
        self._native = native
        self._library = native.library
        self.workers = Workers(self._library)
        self._pass = PassStruct()
        self._pass_address = addressof(self._pass)
        self._scratch = torch.empty(0)
        self._scratch_for = (0, 0)
        self._turns = torch.empty(0)
        self._num_positions = 0
        self._chains: dict[int, tuple[array[int], array[int]]] = {}

    def use_threads(self, decoding: int, prefill: int) -> None:
        torch.set_num_threads(decoding)
        self.workers.use(decoding, prefill)
        self._scratch_for = (0, 0)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> PanelCache:
        return PanelCache(self._library, self._model.config, self.cache_dtype, capacity, memory)

    def verify(self, tree: TokenTree, kv: KvCache) -> Tensor:
        shape = tree.shape
        return self._forward(
            tree.token_ids, shape.parent_array, shape.depth_array, kv, 0, self.workers.decoding
        )

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        count = len(token_ids)
        parents, depths = self._chain(count)
        pool = self.workers.prefill if count > 1 else self.workers.decoding
        hidden = self._forward(token_ids, parents, depths, kv, count - 1 if only_last else 0, pool)
        kv.commit(range(count))
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        return self._lm_head.run(hidden, self.workers.decoding)

    def _forward(
        self,
        token_ids: Sequence[int],
        parents: array[int],
        depths: array[int],
        kv: KvCache,
        first_wanted: int,
        pool: Pool,
    ) -> Tensor:
        assert isinstance(kv, PanelCache)  # from new_cache
        count = len(token_ids)
        kv.reserve(count)
        self._make_ready(count, kv, pool.num_workers)
        hidden = torch.empty(count - first_wanted, self._model.config.hidden_size)
        ids = (ctypes.c_int64 * count)(*token_ids)
        told = self._pass
        told.rows = count
        told.length = kv.length
        told.parents = parents.buffer_info()[0]
        told.depths = depths.buffer_info()[0]
        told.token_ids = addressof(ids)
        told.cache = kv.address
        told.turns = self._turns.data_ptr()
        told.first_wanted = first_wanted
        told.workers = pool.num_workers
        told.scratch = self._scratch.data_ptr()
        told.hidden = hidden.data_ptr()
        self._library.forward(self._native.address, self._pass_address, pool.awake())
        return hidden

    def _make_ready(self, num_rows: int, kv: KvCache, num_workers: int) -> None:
        """Room to work in, and the angles of all positions."""
        if kv.capacity > self._num_positions:
            self._num_positions = kv.capacity
            self._turns = torch.view_as_real(self._model.turns(kv.capacity)).contiguous()
        most_rows, most_slots = self._scratch_for
        if num_rows > most_rows or kv.capacity > most_slots:
            self._scratch_for = (max(num_rows, most_rows), max(kv.capacity, most_slots))
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


def _build(model: Decoder, precision: Precision) -> NativeRunner | None:
    native = native_decoder(model, precision)
    return None if native is None else NativeRunner(model, precision, native)


SPEC = RunnerSpec("native", preference=0, build=_build)
