"""Rates of this machine that a policy is made from: of a model's layers, its cache, its tiers."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from medusa_core.errors import TierError
from medusa_core.memory.policy.machine import RateCurve
from medusa_core.models.attention import choose_attention
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import rows_of
from medusa_core.models.parts import LinearPart, block_parts, lm_head_part
from medusa_core.models.precision import Precision
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.runtime.kv.quantized import QuantizedCache
from medusa_core.runtime.kv.size import row_bytes
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.system import cuda
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.pool import Workers

ROWS = (1, 8, 32, 64, 128)
_LEAST_TURNS, _MOST_TURNS, _MEASURED_S = 3, 50, 0.5
_MOVED_BYTES = 128 << 20
_SCALE = 0.02
_PROMPT_ROWS = 32  # that attend at once


def layer_curves(
    config: ModelConfig, formats: PartFormats, precision: Precision
) -> tuple[RateCurve, RateCurve]:
    """Times of a layer's products, and of the projection to the vocabulary, by rows.

    Args:
        config: Sizes of the model; its first layer stands for all.
        formats: Format of every part.
        precision: What it computes in, and where.
    """
    workers = _workers()
    layers = [
        (part.columns, _random(part, part.fitting(formats.linears, formats), precision, workers))
        for part in block_parts(config, 0).linears
    ]
    last = lm_head_part(config)
    spec = formats.fitting(formats.lm_head, last.rows, last.columns)
    head = [(last.columns, _random(last, spec, precision, workers))]
    return _curve(layers, precision), _curve(head, precision)


def cache_rates(
    config: ModelConfig, precision: Precision, tokens: int, itemsize: int
) -> tuple[float, float]:
    """Bytes a second at which attention reads a cache behind so many tokens.

    The first layer that attends stands for all.

    Returns:
        Of one row; and of rows of a prompt, each of which reads all of it.
    """
    shape = next(rows for rows in map(rows_of, config.layers) if rows is not None)
    traits = replace(config.traits, layers=(shape,))
    one = replace(config, num_layers=1, traits=traits)
    kind = QuantizedCache if precision.cache_format else TensorCache
    kv = kind(one, precision, tokens + _PROMPT_ROWS)
    attend = choose_attention(precision.device, precision.attended)
    nbytes = tokens * row_bytes(one, itemsize, precision.cache_format)

    def rate(rows: int) -> float:
        kv.truncate(0)
        kv.fill(tokens)
        queries = (rows, config.num_heads, shape.head_dim)
        q = torch.zeros(queries, dtype=precision.scores, device=precision.device)
        fresh = torch.zeros(rows, 2 * shape.num_kv_heads, shape.head_dim, dtype=precision.compute)
        fresh = fresh.to(precision.device)

        def read() -> None:
            kv.reserve(rows)
            keys, values = (part.to(precision.scores) for part in kv.write(0, fresh))
            attend(q, keys, values, None)

        return rows * nbytes / _usual_s(read, precision)

    return rate(1), rate(_PROMPT_ROWS)


def copied_bytes_per_s() -> float:
    """Bytes a second that a core copies from one place in memory to another."""
    there, here = (np.ones(_MOVED_BYTES // 4, dtype=np.uint8) for _ in range(2))

    def copy() -> None:
        np.copyto(there, here)

    return len(here) / _usual(copy)


@contextmanager
def on_threads(num_threads: int) -> Iterator[None]:
    """Compute with so many threads; a loaded model has let torch have one."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def from_card_bytes_per_s(device: torch.device) -> float:
    """Bytes a second that a card gives to pinned memory."""
    here = cuda.pinned(_MOVED_BYTES)
    there = torch.empty(_MOVED_BYTES, dtype=torch.uint8, device=device)

    def move() -> None:
        here.copy_(there)
        cuda.wait(device)

    return _MOVED_BYTES / _usual(move)


def written_bytes_per_s(folder: Path) -> float:
    """Bytes a second that a disk takes.

    Raises:
        TierError: Nothing can be written to the folder.
    """
    block = os.urandom(_MOVED_BYTES)
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            started = time.perf_counter()
            file.write(block)
            file.flush()
            os.fsync(file.fileno())
            return _MOVED_BYTES / (time.perf_counter() - started)
    except OSError as error:
        raise TierError(
            f"{folder} can't be measured: {error.strerror or error}.", "Name another folder."
        ) from error


def _workers() -> Workers | None:
    library = native_library()
    if library is None:
        return None
    workers = Workers(library)
    workers.use(torch.get_num_threads(), torch.get_num_threads())
    return workers


def _random(
    part: LinearPart, spec: QuantSpec, precision: Precision, workers: Workers | None
) -> QuantLinear:
    rows, columns = part.rows, part.columns
    if spec.name in BLOCK_SIZES:
        weight = {"blocks": random_blocks(spec.name, rows, columns)}
    else:
        drawn = torch.randn(rows, columns) * _SCALE
        weight = spec.quantize(drawn.to(precision.device, precision.compute))
    layer = spec.build(weight, rows, None, precision.compute)
    if isinstance(layer, NativeLinear) and workers is not None:
        layer.share_workers(workers)
    return layer


def _curve(layers: Sequence[tuple[int, QuantLinear]], precision: Precision) -> RateCurve:
    points = []
    for rows in ROWS:
        inputs = [
            (layer, torch.randn(rows, columns).to(precision.device, precision.compute))
            for columns, layer in layers
        ]

        def compute(inputs: Sequence[tuple[QuantLinear, torch.Tensor]] = inputs) -> None:
            for layer, x in inputs:
                layer(x)

        points.append((rows, _usual_s(compute, precision)))
    return tuple(points)


@torch.inference_mode()
def _usual_s(work: Callable[[], None], precision: Precision) -> float:
    def whole() -> None:
        work()
        cuda.wait(precision.device)

    whole()
    return _usual(whole)


def _usual(work: Callable[[], None]) -> float:
    """Seconds where no other program interferes: the least of some turns."""
    times: list[float] = []
    while len(times) < _LEAST_TURNS or (sum(times) < _MEASURED_S and len(times) < _MOST_TURNS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
