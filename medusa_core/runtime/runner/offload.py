"""The runner for a target of which some layers lie below the compute device.

They are brought while others are computed. A pass costs their bytes once for all its rows: so
large trees, and many conversations in one pass, cost hardly more than a single row.

Source: FlexGen (Sheng et al. 2023), section 3, for layers that come and go by themselves.
"""

from __future__ import annotations

from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.runtime.offload.linear import (
    OffloadedLayers,
    offloaded_layers,
)
from medusa_core.runtime.offload.visits import Visits
from medusa_core.runtime.runner.compiled_decoder import native_decoder
from medusa_core.runtime.runner.offload_native import OffloadNativeRunner
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import (
    Runner,
    RunnerSpec,
    Waited,
)


class OffloadRunner(ResidentRunner):
    """Runs forward passes with torch's operations; see `Runner`.

    Attributes:
        visits: Brings the layers.
    """

    def __init__(self, model: Decoder, precision: Precision, offloaded: OffloadedLayers) -> None:
        super().__init__(model, precision)
        self.visits = Visits(offloaded, precision.device, self._share_workers_with)

    @property
    def waited(self) -> Waited:
        return Waited(self.visits.waited_s)

    @property
    def buffer_bytes(self) -> int:
        return self.visits.nbytes

    def _enter(self, index: int) -> None:
        self.visits.enter(index)

    def _share_workers_with(self, linear: QuantLinear) -> None:
        if self._workers is not None and isinstance(linear, NativeLinear):
            linear.share_workers(self._workers)


def _build(model: Decoder, precision: Precision) -> Runner | None:
    offloaded = offloaded_layers(model)
    if offloaded is None:
        return None
    native = native_decoder(model, precision)
    if native is None:
        return OffloadRunner(model, precision, offloaded)
    return OffloadNativeRunner(model, precision, native, offloaded)


SPEC = RunnerSpec("offload", preference=-1, build=_build)
