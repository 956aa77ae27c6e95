"""Which runner a model gets."""

from __future__ import annotations

from medusa_core.heads.medusa import MedusaHeads
from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.runner.compiled_decoder import native_decoder
from medusa_core.runner.graphs import graphs_pay
from medusa_core.runner.native import NativeRunner
from medusa_core.runner.resident import ResidentRunner
from medusa_core.runner.runner import Runner
from medusa_core.runner.static import StaticRunner


def share_workers(runner: Runner, heads: MedusaHeads) -> None:
    """Let the threads that compute a target compute its heads, too."""
    if isinstance(runner, NativeRunner):
        heads.share_workers(runner.workers)


def choose_runner(model: Decoder, precision: Precision) -> Runner:
    """The compiled step where it can compute this model, else torch's operations.

    On a card these are recorded as graphs where a comparison shows that this is faster.
    """
    native = native_decoder(model, precision)
    if native is not None:
        return NativeRunner(model, precision, native)
    if precision.device.type == "cuda" and graphs_pay(model, precision):
        return StaticRunner(model, precision, captures=True)
    return ResidentRunner(model, precision)
