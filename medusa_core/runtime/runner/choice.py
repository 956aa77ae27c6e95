"""Which runner a model gets: the first that can compute it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from medusa_core.errors import EngineError
from medusa_core.models.decoder import Decoder
from medusa_core.models.precision import Precision
from medusa_core.runtime import runner
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
    """All runners."""
    return Registry(runner, "runner", RunnerSpec)


def between_passes(runner: Runner) -> AbstractContextManager[None]:
    """Where drafts are made: with one of torch's threads beside a runner that has its own."""
    return compute_threads.limited(1) if isinstance(runner, NativeRunner) else nullcontext()


def choose_runner(model: Decoder, precision: Precision, lower: LowerTiers | None = None) -> Runner:
    """The runner of the lowest preference that doesn't decline.

    Args:
        model: Its decoder.
        precision: What it computes in, and where.
        lower: What lies below the device; None for nothing.
    """
    for spec in sorted(runner_registry().specs, key=lambda spec: spec.preference):
        built = spec.build(model, precision, lower)
        if built is not None:
            return built
    raise EngineError("No runner can compute this model.", "Choose another weight format.")
