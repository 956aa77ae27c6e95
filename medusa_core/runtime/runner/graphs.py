"""CUDA graphs if they make steps faster on this GPU: measured when a model is loaded."""

from __future__ import annotations

import logging
import statistics

import torch

from medusa_core.models.precision import Precision
from medusa_core.runtime.backends.block import host_mlps
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import LowerTiers, PlacedTree, RunnerSpec
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.system import cuda

log = logging.getLogger(__name__)

_LENGTH = 448  # committed rows; with a tree's rows still in the first length bucket
_ROW_COUNTS = (1, 12)  # plain decoding, and a tree that is smaller than its row bucket
_REPEATS = 7
_MAX_RELATIVE_TIME = 0.95  # graphs take memory, so they must save 5 %


@torch.inference_mode()
def graphs_pay(model: Decoder, precision: Precision) -> bool:
    """Measure whether CUDA graphs are faster than launching each operation.

    Both use a cache of at most half the context, so that together they fit into a session's planned
    memory. Measurements alternate, because a GPU's clock changes with its temperature.

    Args:
        model: A target on a GPU.
        precision: Its dtypes and device.
    """
    static = StaticRunner(model, precision, captures=True)
    steps = [_Step(static, model), _Step(ResidentRunner(model, precision), model)]
    for step in steps:
        step.run()  # captures the graph, and lets libraries choose their kernels
    if not static.is_recorded:
        return False
    times = [[step.seconds(precision.device) for step in steps] for _ in range(_REPEATS)]
    graph_s, resident_s = (statistics.median(each) for each in zip(*times, strict=True))
    log.info("steps take %.4f s as graphs, %.4f s without", graph_s, resident_s)
    return bool(graph_s < resident_s * _MAX_RELATIVE_TIME)


class _Step:
    """A step with each of `_ROW_COUNTS`."""

    def __init__(self, runner: ResidentRunner, model: Decoder) -> None:
        most = max(_ROW_COUNTS)
        length = max(1, min(_LENGTH, model.config.context_tokens // 2 - most))
        self._runner = runner
        self._kv = runner.new_cache(length + most)
        self._kv.fill(length)
        self._trees = [TokenTree(TreeShape.chain(rows), (0,) * rows) for rows in _ROW_COUNTS]

    def run(self) -> None:
        """Verify each of the trees once."""
        for tree in self._trees:
            self._runner.verify(PlacedTree(tree, self._kv))

    def seconds(self, device: torch.device) -> float:
        """Measure how long `run` takes on a GPU."""
        return cuda.seconds_of(self.run, device)


def _build(model: Decoder, precision: Precision, _: LowerTiers | None) -> StaticRunner | None:
    """Return a runner of CUDA graphs if the model is on a GPU and graphs make it faster."""
    # A graph can't wait for the processor in the middle of a step.
    fits = precision.device.type == "cuda" and precision.is_standard
    fits = fits and not host_mlps(model.blocks)
    pays = fits and graphs_pay(model, precision)
    return StaticRunner(model, precision, captures=True) if pays else None


SPEC = RunnerSpec("static", preference=1, build=_build)
