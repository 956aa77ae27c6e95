"""Chooses the runner of a model."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from medusa_core.errors import EngineError
from medusa_core.models.precision import Precision
from medusa_core.runtime import runner
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.runner import (
    LowerTiers,
    Runner,
    RunnerSpec,
)
from medusa_core.system import compute_threads
from medusa_core.system.registry import Registry


@cache
def runner_registry() -> Registry[RunnerSpec]:
    """Return all runners."""
    return Registry(runner, "runner", RunnerSpec)


def between_passes(runner: Runner) -> AbstractContextManager[None]:
    """Limit torch to one thread while drafting, if the runner has a thread pool of its own."""
    return compute_threads.limited(1) if isinstance(runner, NativeRunner) else nullcontext()


def choose_runner(model: Decoder, precision: Precision, lower: LowerTiers | None = None) -> Runner:
    """Return the runner with the lowest preference that can compute a model.

    Args:
        model: Decoder of the model.
        precision: Dtypes and device.
        lower: Tiers below the device; None if nothing is offloaded.

    Raises:
        EngineError: None can.
    """
    for spec in sorted(runner_registry().specs, key=lambda spec: spec.preference):
        built = spec.build(model, precision, lower)
        if built is not None:
            return built
    raise EngineError("No runner can compute this model.", "Choose another weight format.")
