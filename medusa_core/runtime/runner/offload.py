"""The runner for a target of which something lies below the compute device.

Layers are brought while others are computed. A pass costs their bytes once for all its rows: so
large trees, and many conversations in one pass, cost hardly more than a single row. Cached rows of
some layers may lie below as well, and so may what goes from one layer to the next.

Source: FlexGen (Sheng et al. 2023), sections 3 and 4.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.runtime.offload.linear import (
    OffloadedLayers,
    offloaded_layers,
)
from medusa_core.runtime.runner.batches import Batch, whole_pass
from medusa_core.runtime.runner.compiled_decoder import native_decoder
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
from medusa_core.runtime.runner.tier_visits import TierVisits
from medusa_core.runtime.runner.tiered import TieredRunner


class OffloadRunner(TieredRunner, ResidentRunner):
    """Runs forward passes with torch's operations; see `Runner`.

    Attributes:
        tiers: Brings what lies below.
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
        self.tiers = TierVisits(offloaded, lower, precision.device, self._share_workers_with)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> TensorCache:
        kind, config = self._kind_of_cache, self._model.config
        return kind(config, self._precision, capacity, memory=memory, store=self.store)

    def verify(self, *placed: PlacedTree) -> Tensor:
        batches = self.tiers.batches([each.tree.shape.num_nodes for each in placed])
        if len(batches) == 1:
            return super().verify(*placed)
        with self._threads_for(reads_prompts(placed)):
            return self._verify_in(batches, placed)

    def _verify_in(self, batches: Sequence[Batch], placed: Sequence[PlacedTree]) -> Tensor:
        """As `verify`, batch by batch in every layer."""
        parts, caches = rows_of(placed), [each.kv for each in placed]
        of_batch = [_OfBatch.of(batch, placed) for batch in batches]
        config, device = self._model.config, self._precision.device
        counts = [batch.num_rows for batch in batches]
        states, layers, ended = self.tiers.states, range(config.num_layers), list[Tensor]()
        self._reserve(parts, caches)
        with self.tiers.passing(batches, caches, layers):
            states.begin(counts, config.hidden_size, self._precision.compute)
            for index in layers:
                self.tiers.enter(index)
                for number, (batch, own) in enumerate(zip(batches, of_batch, strict=True)):
                    its = (parts[batch.sequences], caches[batch.sequences])
                    some = self._place(*its, enters=index == 0)
                    x = states.take(number, device) if index else self._entering(some)
                    own.tap(x, index in self.taps)
                    with self.tiers.visit(index, batch):
                        x = super()._block(index, x, some, None)
                    if index < layers.stop - 1:
                        states.put(number, x)
                    else:
                        ended.append(self._ended(own, x))
        return torch.cat(ended)

    def _ended(self, own: _OfBatch, x: Tensor) -> Tensor:
        """The wanted states of a batch that has come through all layers."""
        own.tap(x, self._model.config.num_layers in self.taps)
        return self._end(own.wanted_of(x), own.tapped)

    def _forward(
        self, parts: Sequence[SomeRows], caches: Sequence[KvCache], only_row: int | None = None
    ) -> Tensor:
        """A pass in one batch."""
        self._whole, self._caches = whole_pass([len(part.token_ids) for part in parts]), caches
        return super()._forward(parts, caches, only_row)

    def _through(
        self,
        layers: range,
        x: Tensor,
        some: PlacedRows,
        only_row: int | None,
        tapped: list[Tensor],
    ) -> Tensor:
        caches, self._caches = self._caches, ()
        with self.tiers.passing([self._whole], caches, layers):
            return super()._through(layers, x, some, only_row, tapped)

    def _block(self, index: int, x: Tensor, some: PlacedRows, only: int | None) -> Tensor:
        self.tiers.enter(index)
        with self.tiers.visit(index, self._whole):
            return super()._block(index, x, some, only)

    def _padded(self, token_ids: Sequence[int], kv: KvCache) -> Sequence[int]:
        """No rows are added where cached rows lie below: what is decided goes there at once."""
        return token_ids if self.store is not None else super()._padded(token_ids, kv)

    def _share_workers_with(self, linear: QuantLinear) -> None:
        if self._workers is not None and isinstance(linear, NativeLinear):
            linear.share_workers(self._workers)


@dataclass(slots=True)
class _OfBatch:
    """What is wanted of a batch.

    Attributes:
        rows: Of its rows those whose states are wanted.
        tapped: What has entered tapped layers at these.
    """

    rows: Tensor
    tapped: list[Tensor] = field(default_factory=list)

    @classmethod
    def of(cls, batch: Batch, placed: Sequence[PlacedTree]) -> _OfBatch:
        return cls(torch.tensor(wanted_rows(placed[batch.sequences])))

    def wanted_of(self, x: Tensor) -> Tensor:
        return x[self.rows.to(x.device)]

    def tap(self, x: Tensor, is_tapped: bool) -> None:
        """Keep what enters a layer, where that is wanted."""
        self.tapped += [self.wanted_of(x)] * is_tapped


def _build(model: Decoder, precision: Precision, lower: LowerTiers | None) -> Runner | None:
    offloaded = offloaded_layers(model)
    if offloaded is None and lower is None:
        return None
    native = native_decoder(model, precision)
    if native is None:
        return OffloadRunner(model, precision, offloaded, lower)
    return OffloadNativeRunner(model, precision, native, offloaded, lower)


SPEC = RunnerSpec("offload", preference=-1, build=_build)
