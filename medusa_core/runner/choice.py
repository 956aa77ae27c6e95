"""Which runner a model gets."""

from __future__ import annotations

from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.native.decoder import native_decoder
from medusa_core.runner.native import NativeRunner
from medusa_core.runner.resident import ResidentRunner
from medusa_core.runner.runner import Runner


def choose_runner(model: Decoder, precision: Precision) -> Runner:
    """The compiled step where it can compute this model, else torch's operations."""
    native = native_decoder(model, precision)
    if native is None:
        return ResidentRunner(model, precision)
    return NativeRunner(model, precision, native)
