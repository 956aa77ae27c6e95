"""Time the processor's part of a step beside a card: `python -m tests.benchmarks.mixed_step`.

Experts, or MLPs, of a few layers with random weights are computed as for a card of 8 GiB beside 32
GiB of memory, of which the planner says how many layers the processor computes. Each run's rows are
random, so that they choose different experts. The smallest of some times is printed: what other
programs disturb is only ever longer. Copies to a card and back are left out.
"""

from __future__ import annotations

import argparse
import time

import torch

from medusa_core.bench.random_target import shape_config
from medusa_core.loading.cpu_parts import CpuPlan, plan_cpu
from medusa_core.loading.memory.budget import GIB, cuda_budget
from medusa_core.loading.memory.placement import OffloadRoom
from medusa_core.loading.memory.recommend import plan_least
from medusa_core.loading.offload_forecast import ForecastDevice
from medusa_core.messages import HeadsShape, LoadOptions, WeightFormats
from medusa_core.models.precision import hardware_of, precision_of
from medusa_core.models.quant.choice import resolve_formats
from medusa_core.models.quant.layout import linears_of
from medusa_core.models.quant.native_linear import NativeLinear, share_threads
from medusa_core.models.random_weights import RandomWeights
from medusa_core.runtime.backends.activation import active_of
from medusa_core.runtime.backends.block import host_mlps
from medusa_core.runtime.backends.experts import ExpertMlps
from medusa_core.runtime.backends.host_mlp import HostParts
from medusa_core.runtime.backends.load import load_blocks
from medusa_core.runtime.backends.native_blocks import NativeExperts
from medusa_core.system import compute_threads
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.pool import Workers

_NUM_LAYERS = 3  # in memory: more than the processor's caches hold
_REPEATS = 30


def main() -> None:
    """Print plan and times of a shape."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", default="qwen3-30b-a3b")
    parser.add_argument("--quant", default="q4_k", help="weight format in memory")
    parser.add_argument("--rows", type=int, nargs="*", default=[1, 4, 8, 16])
    parser.add_argument("--threads", type=int, default=compute_threads.count())
    chosen = parser.parse_args()
    planned = _plan(chosen.shape)
    print(planned.text())
    count = len(planned.parts.layers)
    for rows, seconds in _times(chosen.shape, chosen.quant, chosen.rows, chosen.threads).items():
        print(
            f"{rows:3} rows: {1000 * seconds:7.3f} ms a layer, {1000 * count * seconds:8.1f} ms "
            f"for {count} layers, {chosen.quant}, {chosen.threads} threads"
        )


def _plan(shape: str) -> CpuPlan:
    config, card, heads = shape_config(shape), cuda_budget(8), HeadsShape()
    device = ForecastDevice(card, OffloadRoom(32 * GIB), None)
    found = plan_cpu(config, heads, plan_least(config, heads, card), device, LoadOptions())
    assert isinstance(found, CpuPlan), f"{shape} fits the card"
    return found


@torch.inference_mode()
def _times(shape: str, quant: str, row_counts: list[int], num_threads: int) -> dict[int, float]:
    """Return the seconds of a layer by rows."""
    whole, cpu = shape_config(shape), torch.device("cpu")
    config = whole.with_blocks(whole.blocks[-_NUM_LAYERS:])
    formats = resolve_formats(WeightFormats(quant), "", hardware_of(cpu))
    precision = precision_of(formats.compute, cpu)
    weights = RandomWeights(config, precision, formats)
    host = HostParts(frozenset(range(_NUM_LAYERS)), weights, precision)
    mlps = host_mlps(load_blocks(config, weights, precision, host))
    library = native_library()
    assert library is not None
    workers = Workers(library)
    workers.use(num_threads, num_threads)
    for mlp in mlps:
        share_threads([one for one in linears_of(mlp) if isinstance(one, NativeLinear)], workers)
        if isinstance(mlp.mlp, ExpertMlps):
            mlp.compute_by(NativeExperts(library, mlp.mlp, config, workers))
    active, times = active_of(config.activation), dict[int, float]()
    for rows in row_counts:
        measured = []
        for _ in range(_REPEATS):
            x = torch.randn(rows, config.hidden_size)
            started = time.perf_counter()
            for mlp in mlps:
                mlp(x, active)
            measured.append(time.perf_counter() - started)
        times[rows] = min(measured) / len(mlps)
    return times


if __name__ == "__main__":
    main()
