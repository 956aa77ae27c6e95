"""The runner for a target with offloaded layers, KV rows or activations.

Layers are prefetched while others are computed. A pass reads them once for all its rows, so large
trees, and many conversations in one pass, cost hardly more than a single row.

Source: FlexGen (Sheng et al. 2023), sections 3 and 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.backends.native_blocks import native_decoder
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.runtime.offload.linear import (
    OffloadedLayers,
    offloaded_layers,
)
from medusa_core.runtime.runner.batches import Batch, whole_pass
from medusa_core.runtime.runner.offload_native import OffloadNativeRunner
from medusa_core.runtime.runner.resident import PlacedRows, ResidentRunner, rows_of
from medusa_core.runtime.runner.rows import SomeRows
from medusa_core.runtime.runner.runner import (
    LowerTiers,
    PlacedTree,
    Runner,
    RunnerSpec,
    reads_prompts,
    wanted_rows,
)
from medusa_core.runtime.runner.tier_prefetcher import TieredRunner, TierPrefetcher


class OffloadRunner(TieredRunner, ResidentRunner):
    """Runs forward passes with torch's operations; see `Runner`.

    Attributes:
        tiers: Prefetches offloaded data.
    """

    def __init__(
        self,
        model: Decoder,
        precision: Precision,
        offloaded: OffloadedLayers | None,
        lower: LowerTiers | None,
    ) -> None:
        super().__init__(model, precision)
        self.store = None if lower is None else lower.rows
        self.tiers = TierPrefetcher(offloaded, lower, precision.device, self._share_workers_with)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> TensorCache:
        """Return an empty cache whose offloaded rows are in the store."""
        kind, config = self._kind_of_cache, self._model.config
        return kind(config, self._precision, capacity, memory=memory, store=self.store)

    def verify(self, *placed: PlacedTree) -> Tensor:
        """Compute all trees, divided into batches; see `Runner.verify`."""
        batches = self.tiers.batches([each.tree.shape.num_nodes for each in placed])
        if len(batches) == 1:
            return super().verify(*placed)
        with self._threads_for(reads_prompts(placed)):
            return self._verify_in(batches, placed)

    def _verify_in(self, batches: Sequence[Batch], placed: Sequence[PlacedTree]) -> Tensor:
        """Verify in several batches, one after the other in each layer."""
        parts, caches = rows_of(placed), [each.kv for each in placed]
        outputs = [_BatchOutput.of(batch, placed) for batch in batches]
        config, device = self._model.config, self._precision.device
        counts = [batch.num_rows for batch in batches]
        store, layers, ended = self.tiers.activations, range(config.num_layers), list[Tensor]()
        self._reserve(parts, caches)
        with self.tiers.running(batches, caches, layers):
            store.begin(counts, config.hidden_size, self._precision.compute)
            for index in layers:
                self.tiers.acquire(index)
                for number, (batch, output) in enumerate(zip(batches, outputs, strict=True)):
                    # Placing rows again for each layer keeps masks of one batch in memory, not all.
                    placed_rows = self._place(
                        parts[batch.sequences], caches[batch.sequences], enters=index == 0
                    )
                    x = store.get(number, device) if index else self._entering(placed_rows)
                    output.tap(x, index in self.taps)
                    with self.tiers.cached_rows(index, batch):
                        x = super()._block(index, x, placed_rows, None)
                    if index < layers.stop - 1:
                        store.put(number, x)
                    else:
                        output.tap(x, config.num_layers in self.taps)
                        ended.append(self._end(output.select(x), output.tapped))
        return torch.cat(ended)

    def _forward(
        self, parts: Sequence[SomeRows], caches: Sequence[KvCache], only_row: int | None = None
    ) -> Tensor:
        """Compute a pass in one batch."""
        self._whole, self._caches = whole_pass([len(part.token_ids) for part in parts]), caches
        return super()._forward(parts, caches, only_row)

    def _through(
        self,
        layers: range,
        x: Tensor,
        placed_rows: PlacedRows,
        only_row: int | None,
        tapped: list[Tensor],
    ) -> Tensor:
        """Compute some layers while the prefetcher reads the following ones."""
        caches, self._caches = self._caches, ()
        with self.tiers.running([self._whole], caches, layers):
            return super()._through(layers, x, placed_rows, only_row, tapped)

    def _block(
        self, index: int, x: Tensor, placed_rows: PlacedRows, only_row: int | None
    ) -> Tensor:
        """Compute a layer after its weights and KV rows have arrived."""
        self.tiers.acquire(index)
        with self.tiers.cached_rows(index, self._whole):
            return super()._block(index, x, placed_rows, only_row)

    def _padded(self, token_ids: Sequence[int], kv: KvCache) -> Sequence[int]:
        """Don't pad if KV rows are offloaded: padding rows would be written to the store."""
        return token_ids if self.store is not None else super()._padded(token_ids, kv)

    def _share_workers_with(self, linear: QuantLinear) -> None:
        """Let a linear layer that was read from a lower tier use the thread pool."""
        if self._workers is not None and isinstance(linear, NativeLinear):
            linear.share_workers(self._workers)


@dataclass(slots=True)
class _BatchOutput:
    """Rows of a batch whose states are needed.

    Attributes:
        rows: Indices of these rows in the batch.
        tapped: Inputs of tapped layers at these rows.
    """

    rows: Tensor
    tapped: list[Tensor] = field(default_factory=list)

    @classmethod
    def of(cls, batch: Batch, placed: Sequence[PlacedTree]) -> _BatchOutput:
        """Select the rows of a batch whose states its trees need."""
        return cls(torch.tensor(wanted_rows(placed[batch.sequences])))

    def select(self, x: Tensor) -> Tensor:
        """Return the needed rows of activations."""
        return x[self.rows.to(x.device)]

    def tap(self, x: Tensor, is_tapped: bool) -> None:
        """Keep the input of a tapped layer."""
        if is_tapped:
            self.tapped.append(self.select(x))


def _build(model: Decoder, precision: Precision, lower: LowerTiers | None) -> Runner | None:
    """Return a runner if something is offloaded: with the compiled step if that can compute it."""
    offloaded = offloaded_layers(model)
    if offloaded is None and lower is None:
        return None
    native = native_decoder(model, precision)
    if native is None:
        return OffloadRunner(model, precision, offloaded, lower)
    return OffloadNativeRunner(model, precision, native, offloaded, lower)


SPEC = RunnerSpec("offload", preference=-1, build=_build)
