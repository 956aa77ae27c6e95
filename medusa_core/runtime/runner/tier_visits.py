"""What comes from below the device while a pass goes through its layers, batch by batch."""

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
from medusa_core.runtime.offload.linear import OffloadedLayers
from medusa_core.runtime.offload.states import BatchStates
from medusa_core.runtime.offload.visits import Prepare, Visits
from medusa_core.runtime.runner.batches import Batch, batches_of, whole_pass
from medusa_core.runtime.runner.runner import LowerTiers, Waited
from medusa_core.runtime.runner.traffic import Traffic
from medusa_core.system import cuda

_EVERYTHING_HERE = LowerTiers(Placement((), (), 0))


class TierVisits:
    """Brings weights, cached rows and activations in the order of a pass.

    Attributes:
        weights: Brings layers.
        rows: Brings cached rows; None where all of them lie on the device.
        states: Has the activations of batches.
    """

    def __init__(
        self,
        offloaded: OffloadedLayers | None,
        lower: LowerTiers | None,
        device: torch.device,
        prepare: Prepare | None = None,
    ) -> None:
        """Begin to bring layers.

        Args:
            offloaded: Layers that lie below; None for none.
            lower: What else does; None for nothing.
            device: Where everything is computed.
            prepare: Given every linear part when it is made over a buffer.
        """
        lower = lower or _EVERYTHING_HERE
        self._placement, self._device = lower.placement, device
        self.weights = Visits(offloaded or OffloadedLayers(()), device, prepare)
        self.rows = None
        if lower.rows is not None:
            self.rows = create_kv_prefetcher(lower.rows, lower.placement.attention, device)
        self._rows_below = frozenset(() if lower.rows is None else lower.rows.layers)
        self.states = BatchStates(lower.placement.states, lower.folder)
        self._batches: list[Batch] = []
        self._caches: Sequence[KvCache] = ()
        self._num_passes = self._num_layers = self._num_rows = 0
        self._pass_s = 0.0

    @property
    def waited(self) -> Waited:
        """How long passes have waited for what was on its way."""
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
            states_bytes=self.states.moved_bytes,
            states_s=self.states.moved_s,
            waited_s=waited_s,
            computed_s=self._pass_s - waited_s - self.states.moved_s,
            num_passes=self._num_passes,
            num_layers=self._num_layers,
            num_rows=self._num_rows,
        )

    def batches(self, counts: Sequence[int]) -> list[Batch]:
        """In which batches sequences of so many rows each are computed."""
        placement = self._placement
        if not placement.batch:
            return [whole_pass(counts)]
        return batches_of(counts, placement.batch, placement.prompt_rows)

    @contextmanager
    def passing(
        self, batches: Sequence[Batch], caches: Sequence[KvCache], layers: range
    ) -> Iterator[None]:
        """A pass goes through layers, in each of them through all batches.

        Args:
            batches: What it is computed in.
            caches: Of its sequences.
            layers: Through which it goes.
        """
        started = time.perf_counter()
        self._batches, self._caches = list(batches), caches
        if self.rows is not None:
            self.rows.begin(
                [
                    LayerKv(layer, self._caches_of(batch))
                    for layer in layers
                    if layer in self._rows_below
                    for batch in batches
                ]
            )
        try:
            yield
            cuda.wait_for_computing(self._device)  # so that its time is that of computing
        finally:
            self.weights.leave()
            self.states.end()
            self._caches = ()
            self._pass_s += time.perf_counter() - started
            self._num_passes += 1
            self._num_layers += len(batches) * len(layers)
            self._num_rows += sum(batch.num_rows for batch in batches)
            self._batches, self._caches = [], ()  # which may be forgotten from now on

    def enter(self, layer: int) -> Sequence[QuantLinear]:
        """A pass comes to a layer; see `Visits.enter`."""
        return self.weights.enter(layer)

    @contextmanager
    def visit(self, layer: int, batch: Batch) -> Iterator[None]:
        """A batch is computed in a layer: its cached rows are here, and take new ones.

        Raises:
            TierError: They can't be read, or new ones can't be written.
        """
        if self.rows is None or layer not in self._rows_below:
            yield
            return
        self.rows.acquire(LayerKv(layer, self._caches_of(batch)))
        yield
        self.rows.release()

    def _caches_of(self, batch: Batch) -> tuple[KvCache, ...]:
        return tuple(self._caches[batch.sequences])
