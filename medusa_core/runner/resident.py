"""The runner for a target whose weights all stay on one device."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.kv.cache import KvCache
from medusa_core.kv.tensor import TensorCache
from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.native.binding import native_library
from medusa_core.native.pool import Workers
from medusa_core.quant.native_linear import NativeLinear
from medusa_core.runner.rows import RowLayout, additive_mask, place_rows
from medusa_core.runner.runner import RunnerSpec
from medusa_core.tree.shape import TokenTree

ROUND_ROWS = 8  # rows of a chunk of prefill on a CPU come in multiples of this


class ResidentRunner:
    """Runs forward passes; see `Runner`."""

    def __init__(self, model: Decoder, precision: Precision) -> None:
        self.hidden_dtype = precision.compute
        self.cache_dtype = precision.cache
        self._prefill_threads = 0
        self._model = model
        self._precision = precision
        self._group = model.config.num_heads // model.config.num_kv_heads
        self._workers = _share_workers(model)

    def use_threads(self, decoding: int, prefill: int) -> None:
        """Compute with so many CPU threads; for several rows of prefill it may be more."""
        torch.set_num_threads(decoding)
        self._prefill_threads = prefill
        if self._workers is not None:
            self._workers.use(decoding, decoding)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> TensorCache:
        return TensorCache(self._model.config, self._precision, capacity, memory=memory)

    def verify(self, tree: TokenTree, kv: KvCache) -> Tensor:
        return self._forward(tree.token_ids, RowLayout.of_tree(tree.shape), kv)

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        count = len(token_ids)
        ids = self._padded(token_ids, kv)
        layout = RowLayout.of_chain(len(ids))
        num_threads = torch.get_num_threads()
        if count > 1 and self._prefill_threads > num_threads:
            torch.set_num_threads(self._prefill_threads)
        try:
            hidden = self._forward(ids, layout, kv, count - 1 if only_last else None)
        finally:
            torch.set_num_threads(num_threads)
        kv.commit(range(count))
        return hidden if only_last else hidden[:count]

    def _padded(self, token_ids: Sequence[int], kv: KvCache) -> Sequence[int]:
        """The tokens of a chunk, and more that nothing sees, up to a round number.

        oneDNN prepares its kernels anew for every number of rows that it hasn't met, which takes
        longer than a short chunk itself.
        """
        pad = -len(token_ids) % ROUND_ROWS
        fits = kv.length + len(token_ids) + pad <= kv.capacity
        if len(token_ids) == 1 or not fits or self._precision.device.type != "cpu":
            return token_ids
        return [*token_ids, *[token_ids[-1]] * pad]

    def logits(self, hidden: Tensor) -> Tensor:
        return self._model.logits(hidden)

    def _forward(
        self, token_ids: Sequence[int], layout: RowLayout, kv: KvCache, only_row: int | None = None
    ) -> Tensor:
        assert isinstance(kv, TensorCache)  # from new_cache
        model = self._model
        kv.reserve(len(token_ids))
        rows = place_rows(
            token_ids, layout, kv.length, self._precision.device, model.far_vectors(token_ids)
        )
        rotations = model.rotations(
            rows.positions, max(kv.capacity, kv.length + max(layout.offsets) + 1)
        )
        mask = None
        if rows.sees is not None:
            mask = additive_mask(rows.sees, kv.length, self._group, self._precision.scores)
        x = model.embed(rows.token_ids) if rows.vectors is None else rows.vectors
        last = model.config.num_layers - 1
        for index in range(last):
            x = model.block(index, x, rotations, mask, kv)
        x = model.block(last, x, rotations, mask, kv, only_row)
        return model.final_norm(x)


def _share_workers(model: Decoder) -> Workers | None:
    """Threads for the layers that are compiled, in a model of which other parts aren't."""
    library = native_library()
    compiled = [linear for linear in model.linears if isinstance(linear, NativeLinear)]
    if library is None or not compiled:
        return None
    workers = Workers(library)
    for linear in compiled:
        linear.share_workers(workers)
    return workers


SPEC = RunnerSpec("resident", preference=9, build=ResidentRunner)
