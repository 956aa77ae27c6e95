"""Prefetches offloaded weights, KV rows and activations while a pass goes through its layers."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from medusa_core.messages import Placement
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.offloaded.create import create_kv_prefetcher
from medusa_core.runtime.kv.offloaded.prefetcher import KvTransfers, LayerKv
from medusa_core.runtime.offload.activations import ActivationStore
from medusa_core.runtime.offload.layer_prefetcher import LayerPrefetcher, Prepare
from medusa_core.runtime.offload.linear import OffloadedLayers
from medusa_core.runtime.runner.batches import Batch, batches_of, whole_pass
from medusa_core.runtime.runner.runner import LowerTiers, Runner, Waited
from medusa_core.runtime.runner.traffic import Traffic
from medusa_core.system import cuda

_NOTHING_OFFLOADED = LowerTiers(Placement((), (), 0))


class TierPrefetcher:
    """Moves data between tiers in the order of a pass.

    Attributes:
        weights: Prefetches layers.
        rows: Prefetches KV rows; None if none are offloaded.
        activations: Keeps activations of batches.
    """

    def __init__(
        self,
        offloaded: OffloadedLayers | None,
        lower: LowerTiers | None,
        device: torch.device,
        prepare: Prepare | None = None,
    ) -> None:
        """Start reading layers.

        Args:
            offloaded: Offloaded layers; None if there are none.
            lower: Placement of everything else; None if all of it is on the device.
            device: Device that computes.
            prepare: Called with each linear layer after it is made from a buffer.
        """
        lower = lower or _NOTHING_OFFLOADED
        self._placement, self._device = lower.placement, device
        self.weights = LayerPrefetcher(offloaded or OffloadedLayers(()), device, prepare)
        self.rows = None
        if lower.rows is not None:
            self.rows = create_kv_prefetcher(lower.rows, lower.placement.attention, device)
        self._row_layers = frozenset(() if lower.rows is None else lower.rows.layers)
        self.activations = ActivationStore(lower.placement.states, lower.folder)
        self._caches: Sequence[KvCache] = ()
        self._num_passes = self._num_layers = self._num_rows = 0
        self._pass_s = 0.0

    @property
    def waited(self) -> Waited:
        """How long passes have waited for transfers."""
        return Waited(self.weights.waited_s + (0.0 if self.rows is None else self.rows.waited_s))

    @property
    def nbytes(self) -> int:
        """Bytes of the buffers on the device."""
        return self.weights.nbytes + (0 if self.rows is None else self.rows.nbytes)

    @property
    def traffic(self) -> Traffic:
        """What passes have moved and computed so far."""
        rows = KvTransfers() if self.rows is None else self.rows.transfers
        waited_s = self.waited.transfer_s
        return Traffic(
            weights_bytes=self.weights.read_bytes,
            weights_s=self.weights.read_s,
            rows_read_bytes=rows.read_bytes,
            rows_read_s=rows.read_s,
            rows_written_bytes=rows.written_bytes,
            rows_written_s=rows.written_s,
            states_bytes=self.activations.moved_bytes,
            states_s=self.activations.moved_s,
            waited_s=waited_s,
            computed_s=self._pass_s - waited_s - self.activations.moved_s,
            num_passes=self._num_passes,
            num_layers=self._num_layers,
            num_rows=self._num_rows,
        )

    def batches(self, counts: Sequence[int]) -> list[Batch]:
        """Divide sequences, given their numbers of rows, into batches as the placement says."""
        placement = self._placement
        if not placement.batch:
            return [whole_pass(counts)]
        return batches_of(counts, placement.batch, placement.prompt_rows)

    @contextmanager
    def running(
        self, batches: Sequence[Batch], caches: Sequence[KvCache], layers: range
    ) -> Iterator[None]:
        """Run a pass: through all layers, and in each of them through all batches.

        Args:
            batches: Batches of the pass.
            caches: Caches of its sequences.
            layers: Layers of the pass.
        """
        started = time.perf_counter()
        self._caches = caches
        if self.rows is not None:
            self.rows.begin(
                [
                    LayerKv(layer, self._caches_of(batch))
                    for layer in layers
                    if layer in self._row_layers
                    for batch in batches
                ]
            )
        try:
            yield
            cuda.wait_for_computing(self._device)  # so that the time includes the GPU's work
        finally:
            self.weights.release()
            self.activations.end()
            self._caches = ()  # it would keep a closed session's rows
            self._pass_s += time.perf_counter() - started
            self._num_passes += 1
            self._num_layers += len(batches) * len(layers)
            self._num_rows += sum(batch.num_rows for batch in batches)

    def acquire(self, layer: int) -> Sequence[QuantLinear]:
        """Put a layer's weights in place; see `LayerPrefetcher.acquire`."""
        return self.weights.acquire(layer)

    @contextmanager
    def cached_rows(self, layer: int, batch: Batch) -> Iterator[None]:
        """Make a batch's KV rows available while a layer is computed, and store the new ones.

        Raises:
            TierError: They can't be read, or new ones can't be written.
        """
        if self.rows is None or layer not in self._row_layers:
            yield
            return
        self.rows.acquire(LayerKv(layer, self._caches_of(batch)))
        yield
        self.rows.release()  # not after an exception: the pass has failed, and its rows are void

    def _caches_of(self, batch: Batch) -> tuple[KvCache, ...]:
        """Caches of a batch's sequences."""
        return tuple(self._caches[batch.sequences])


class TieredRunner(Runner):
    """Reports what a tier prefetcher does; a second base class computes.

    Attributes:
        tiers: Prefetches offloaded data.
    """

    tiers: TierPrefetcher

    @property
    def waited(self) -> Waited:
        """How long passes have waited for transfers."""
        return self.tiers.waited

    @property
    def traffic(self) -> Traffic:
        """What passes have moved between tiers so far."""
        return self.tiers.traffic

    @property
    def buffer_bytes(self) -> int:
        """Bytes of device memory for prefetching."""
        return self.tiers.nbytes
