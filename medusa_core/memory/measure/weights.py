"""Measure how fast a device reads weights in a format, for estimates before a model is there."""

from __future__ import annotations

import os
from functools import lru_cache, partial

import torch

from medusa_core.errors import OutOfMemoryError
from medusa_core.memory.estimate import ReadRate
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear, share_threads
from medusa_core.system import compute_threads, cuda
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.pool import Workers

ROWS = (1, 2, 4, 8, 16)
_WIDTH = 4096
_NBYTES = 200 << 20  # more than the caches of most processors hold
_REPEATS = 3


@lru_cache(maxsize=32)
def measure_read_rate(device: str, quant: str) -> ReadRate:
    """Time a device with weights in a format; takes about a second, once.

    Args:
        device: Torch device name.
        quant: Name of a weight format.

    Raises:
        OutOfMemoryError: There is no room for the weights.
        RequestError: There is no such format.
    """
    try:
        return _measure(device, weight_formats().get(quant))
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise OutOfMemoryError(
            "There is no room to estimate the speed.", "Close other programs first."
        ) from error


def _measure(device: str, spec: QuantSpec) -> ReadRate:
    layers = _layers(spec, device)
    nbytes = spec.nbytes(_WIDTH, _WIDTH, torch.device(device).type) * len(layers)
    workers = _share_workers(layers)
    rates = []
    with torch.inference_mode(), compute_threads.limited(compute_threads.count()):
        for rows in ROWS:
            x = torch.ones(rows, _WIDTH, dtype=_compute(device), device=device)
            work = partial(_run, layers, x)
            seconds = min(cuda.seconds_of(work, x.device) for _ in range(_REPEATS))
            rates.append((rows, nbytes / seconds))
    del workers  # kept until here: layers only borrow them
    return ReadRate(tuple(rates))


def _layers(spec: QuantSpec, device: str) -> list[QuantLinear]:
    """Make layers of zeros: values don't change the time of a product."""
    compute = _compute(device)
    count = max(1, _NBYTES // spec.nbytes(_WIDTH, _WIDTH, torch.device(device).type))
    zeros = _zeros(spec, compute, device)
    layers = []
    for _ in range(count):  # each in its own memory, else the processor's cache would hold them
        own = {name: tensor.to(device, copy=True) for name, tensor in zeros.items()}
        layers.append(spec.build(own, _WIDTH, None, compute))
    return layers


def _zeros(spec: QuantSpec, compute: torch.dtype, device: str) -> dict[str, torch.Tensor]:
    """Make the tensors of a layer of zeros."""
    if spec.can_quantize:
        return spec.quantize(torch.zeros(_WIDTH, _WIDTH, dtype=compute, device=device))
    kinds = spec.tensors(_WIDTH, _WIDTH, str(compute).removeprefix("torch."))
    return {
        name: torch.zeros(shape, dtype=getattr(torch, dtype))
        for name, (dtype, shape) in kinds.items()
    }


def _compute(device: str) -> torch.dtype:
    return torch.float32 if torch.device(device).type == "cpu" else torch.float16


def _share_workers(layers: list[QuantLinear]) -> Workers | None:
    """Give layers the threads that a model would have; the caller keeps them."""
    library = native_library()
    compiled = [layer for layer in layers if isinstance(layer, NativeLinear)]
    if library is None or not compiled:
        return None
    workers = Workers(library)
    count = max(1, min(compute_threads.count(), os.cpu_count() or 1))
    workers.use(count, count)
    share_threads(compiled, workers)
    return workers


def _run(layers: list[QuantLinear], x: torch.Tensor) -> None:
    for layer in layers:
        layer(x)
