"""Fused kernels and CUDA graphs where they are right and faster, tried when a model is loaded."""

from __future__ import annotations

import logging
import statistics

import torch
from torch import Tensor

from medusa_core.models.precision import Precision
from medusa_core.runtime.backends.block import host_mlps
from medusa_core.runtime.backends.cuda_step import FusedDecoder
from medusa_core.runtime.backends.cuda_tuning import tune_launches
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import LowerTiers, PlacedTree, RunnerSpec
from medusa_core.runtime.runner.static import StaticRunner
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.system import cuda
from medusa_core.system.native.cuda.kernels import report_wrong

log = logging.getLogger(__name__)

_LENGTH = 448  # committed rows; with a tree's rows still in the first length bucket
_ROW_COUNTS = (1, 12)  # plain decoding, and a tree that is smaller than its row bucket
_REPEATS = 7
_MAX_ERROR, _MAX_LAST_ERROR = 0.1, 0.7  # relative; results that are unrelated give 1.4
_MAX_RELATIVE_TIME = 0.95  # graphs take memory, so they must save 5 %


@torch.inference_mode()
def choose_static(
    model: Decoder, precision: Precision, fused: FusedDecoder | None = None
) -> StaticRunner | None:
    """Return the runner with static shapes if its steps are faster than the resident runner's.

    Both use a cache of at most half the context, so that together they fit into a session's planned
    memory. Measurements alternate, because a GPU's clock changes with its temperature.

    Args:
        model: A target on a GPU.
        precision: Its dtypes and device.
        fused: Kernels for its blocks. They are used, without graphs if those aren't faster, unless
            their results differ from the resident runner's.
    """
    resident = ResidentRunner(model, precision)
    if fused is not None:
        plain = StaticRunner(model, precision, fused=fused)
        fused.poison()
        if not _agree(model, resident, plain):
            report_wrong(precision.device, "fused decoding steps")
            return choose_static(model, precision)
        resident = plain
    static = StaticRunner(model, precision, captures=True, fused=fused)
    steps = [_Step(static, model), _Step(resident, model)]
    for step in steps:
        step.run()  # captures the graph, and lets libraries choose their kernels
    otherwise = None if fused is None else StaticRunner(model, precision, fused=fused)
    if not static.is_recorded:
        return otherwise
    times = [[step.seconds(precision.device) for step in steps] for _ in range(_REPEATS)]
    graph_s, resident_s = (statistics.median(each) for each in zip(*times, strict=True))
    log.info("steps take %.4f s as graphs, %.4f s without", graph_s, resident_s)
    if graph_s >= resident_s * _MAX_RELATIVE_TIME:
        return otherwise
    return StaticRunner(model, precision, captures=True, fused=fused)


def _agree(model: Decoder, *runners: ResidentRunner) -> bool:
    """Whether two runners give the same states but for rounding, which grows with the layers."""
    early = min(2, model.config.num_layers)
    found = []
    for runner in runners:
        runner.tap((early,))
        found.append(_Step(runner, model).run().float().cpu().view(-1, 2, model.config.hidden_size))
        runner.tap(())
    expected, other = found
    least = torch.finfo(expected.dtype).tiny  # an embedding may be zero
    errors = (other - expected).norm(dim=2) / expected.norm(dim=2).clamp(min=least)
    last, first = errors.amax(dim=0).tolist()
    log.info("fused kernels differ by %.4f after two layers, %.4f after all", first, last)
    return bool(first < _MAX_ERROR and last < _MAX_LAST_ERROR)


class _Step:
    """A step with each of `_ROW_COUNTS`."""

    def __init__(self, runner: ResidentRunner, model: Decoder) -> None:
        most = max(_ROW_COUNTS)
        length = max(1, min(_LENGTH, model.config.context_tokens // 2 - most))
        self._runner = runner
        self._kv = runner.new_cache(length + most)
        self._kv.fill(length)
        # Not token 0 alone: the embedding of a padding token is zero, and so are all its states.
        ids = tuple(7 * i % model.config.vocab_size for i in range(most))
        self._trees = [TokenTree(TreeShape.chain(rows), ids[-rows:]) for rows in _ROW_COUNTS]

    def run(self) -> Tensor:
        """Return the hidden states of all trees. [n, hidden]"""
        return torch.cat([self._runner.verify(PlacedTree(tree, self._kv)) for tree in self._trees])

    def seconds(self, device: torch.device) -> float:
        """Measure how long it takes on a GPU to verify each of the trees."""

        def verify() -> None:
            """Verify each of the trees once."""
            for tree in self._trees:
                self._runner.verify(PlacedTree(tree, self._kv))

        return cuda.seconds_of(verify, device)


def _build(model: Decoder, precision: Precision, _: LowerTiers | None) -> StaticRunner | None:
    """Return a runner of steps with static shapes for a model on a GPU, if they are faster."""
    # A graph can't wait for the processor in the middle of a step.
    fits = precision.device.type == "cuda" and precision.cache_format in ("", "q8_0")
    fits = fits and not precision.attended
    if not fits or host_mlps(model.blocks):
        return None
    fused = FusedDecoder.of(model, precision)
    if fused is not None:
        tune_launches(fused, model.config.context_tokens)
    return choose_static(model, precision, fused)


SPEC = RunnerSpec("static", preference=1, build=_build)
