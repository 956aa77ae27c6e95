"""Which runner a model gets."""

from __future__ import annotations

import os

from medusa_core.heads.medusa import MedusaHeads
from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.runner.compiled_decoder import native_decoder
from medusa_core.runner.native import NativeRunner
from medusa_core.runner.resident import ResidentRunner
from medusa_core.runner.runner import Runner
from medusa_core.runner.static import StaticRunner

_GRAPHS = "MEDUSA_GRAPHS"  # set to 1 to record steps as CUDA graphs


def share_workers(runner: Runner, heads: MedusaHeads) -> None:
    """Let the threads that compute a target compute its heads, too."""
    if isinstance(runner, NativeRunner):
        heads.share_workers(runner.workers)


def choose_runner(model: Decoder, precision: Precision) -> Runner:
    """The compiled step where it can compute this model, else torch's operations.

    CUDA graphs are asked for by `MEDUSA_GRAPHS=1` until they have been measured on a card.
    """
    native = native_decoder(model, precision)
    if native is not None:
        return NativeRunner(model, precision, native)
    if precision.device.type == "cuda" and os.environ.get(_GRAPHS) == "1":
        return StaticRunner(model, precision, captures=True)
    return ResidentRunner(model, precision)
