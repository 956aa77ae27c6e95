"""Rates of this machine that a policy is made from: of a model's layers, its cache, its tiers."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from medusa_core.memory.bandwidth import measuring
from medusa_core.memory.plan import cache_itemsize
from medusa_core.memory.policy.machine import RateCurve
from medusa_core.models.attention import choose_attention
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import Decoder
from medusa_core.models.layer_shapes import rows_of
from medusa_core.models.parts import block_parts, lm_head_part
from medusa_core.models.precision import Precision
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.models.quant.random_blocks import random_blocks
from medusa_core.runtime.kv.quantized import QuantizedCache
from medusa_core.runtime.kv.size import ROUND_ROWS, row_bytes
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.runtime.runner.choice import choose_runner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.system import compute_threads, cuda
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.pool import Workers

ROWS = (1, 8, 32, 64, 128, 256)
_LEAST_TURNS, _MOST_TURNS, _MEASURED_S = 3, 50, 0.5
_MOVED_BYTES, _BLOCK_BYTES = 128 << 20, 4 << 20
_SCALE = 0.02
_PROMPT_ROWS = 32  # that attend at once
_CHUNK_ROWS = 64  # one of `ROWS`
_LONG_TOKENS = 1024
_MOST_RATE = 4e12  # of any memory
_BATCH_ROWS = ROWS[2]
_BESIDE_S = 0.3
_LEAST_PACE = 0.1


class ModelRates(NamedTuple):
    """What is measured of a model.

    Attributes:
        layer_s: Times of a layer by rows, which have little behind them.
        head_s: Times of the projection to the vocabulary likewise.
        cache: At which attention of one row reads a cache. [bytes/s]
        prompts: Likewise of rows of a prompt, each of which reads all of it. [bytes/s]
        below: At which a processor reads one in the memory below a card. [bytes/s]
    """

    layer_s: RateCurve
    head_s: RateCurve
    cache: float
    prompts: float
    below: float = 0.0


def model_rates(
    config: ModelConfig, formats: PartFormats, precision: Precision, tokens: int, num_threads: int
) -> ModelRates:
    """Rates of a model: of its runner with one layer; of unusual families of their parts alone.

    Args:
        config: Sizes of the model; its first layer stands for all.
        formats: Format of every part.
        precision: What it computes in, and where.
        tokens: Behind which attention is measured.
        num_threads: That compute on a processor.
    """
    with compute_threads.limited(num_threads):
        itemsize = cache_itemsize(config, formats)
        if config.is_ours and config.traits.is_usual:
            found = _OneLayer(config, formats, precision, num_threads).rates(tokens)
        else:
            layer_s, head_s = _layer_curves(config, formats, precision)
            cache = _cache_rates(config, precision, tokens, itemsize)
            found = ModelRates(layer_s, head_s, *cache)
        if precision.device.type == "cpu":
            return found._replace(below=found.cache)
        wide = torch.promote_types(precision.compute, torch.float32)
        there = replace(precision, device=torch.device("cpu"), compute=wide)
        return found._replace(below=_cache_rates(config, there, tokens, itemsize)[0])


class Paces(NamedTuple):
    """What computing and reading keep of their pace while the other one runs beside it, of 1.

    Attributes:
        computing: Of computing.
        reading: Of reading.
    """

    computing: float
    reading: float


def paces_beside(
    config: ModelConfig,
    formats: PartFormats,
    precision: Precision,
    num_threads: int,
    read: Callable[[], int],
) -> Paces:
    """How much computing a layer and reading a disk slow each other down.

    Args:
        config: Sizes of the model; its first layer stands for all.
        formats: Format of every part.
        precision: What it computes in, and where.
        num_threads: That compute on a processor.
        read: Reads a piece of the disk; see `reads_of`.
    """
    with compute_threads.limited(num_threads), ThreadPoolExecutor(1) as beside:
        compute = _work_of_layer(config, formats, precision, num_threads)
        paces = []
        for _ in range(_LEAST_TURNS):
            alone = _per_s(compute), _per_s(read)
            reading = beside.submit(_per_s, read)
            both = _per_s(compute), reading.result()
            paces.append([now / before for now, before in zip(both, alone, strict=True)])
        computing, reading_pace = np.median(paces, axis=0).clip(_LEAST_PACE, 1.0)
        return Paces(float(computing), float(reading_pace))


def _work_of_layer(
    config: ModelConfig, formats: PartFormats, precision: Precision, num_threads: int
) -> Callable[[], None]:
    """A layer of a batch's step: by the model's runner, or of unusual families their products."""
    if config.is_ours and config.traits.is_usual:
        work = _OneLayer(config, formats, precision, num_threads).step(_BATCH_ROWS, ROUND_ROWS)
    else:
        layers = _random_layers(config, formats, precision)
        work = _products(layers, _BATCH_ROWS, precision)
    return _whole(work, precision)


class _OneLayer:
    """A model's first layer and its projection, with random weights, in the runner of the model."""

    def __init__(
        self, config: ModelConfig, formats: PartFormats, precision: Precision, num_threads: int
    ) -> None:
        self._config = replace(config, num_layers=1)
        self._formats, self._precision = formats, precision
        model = Decoder(self._config, precision, _RandomParts(self._config, formats, precision))
        self._runner = choose_runner(model, precision)
        self._runner.use_threads(num_threads, num_threads)

    def rates(self, tokens: int) -> ModelRates:
        """All of them; see `model_rates`."""
        few = {rows: self._step_s(rows, ROUND_ROWS) for rows in ROWS[:3]}
        many = {rows: self._chunk_s(rows, 0) for rows in ROWS[3:]}
        # So many that what attention adds is more than what others disturb.
        tokens, count = max(tokens, min(_LONG_TOKENS, self._config.context_tokens)), ROWS[1]
        itemsize = cache_itemsize(self._config, self._formats)
        nbytes = tokens * row_bytes(self._config, itemsize, self._precision.cache_format)
        step_s = self._step_s(count, tokens + ROUND_ROWS) - few[count]
        chunk_s = self._chunk_s(_CHUNK_ROWS, tokens) - many[_CHUNK_ROWS]
        return ModelRates(
            tuple((few | many).items()),
            tuple((rows, self._head_s(rows)) for rows in ROWS),
            count * nbytes / max(count * nbytes / _MOST_RATE, step_s),
            _CHUNK_ROWS * nbytes / max(_CHUNK_ROWS * nbytes / _MOST_RATE, chunk_s),
        )

    def step(self, count: int, length: int) -> Callable[[], object]:
        """A step of so many sequences of this length, a row each."""
        root = TokenTree(TreeShape.root_only(), (0,))
        caches = [self._runner.new_cache(length + ROUND_ROWS) for _ in range(count)]
        for kv in caches:
            kv.fill(length)
        placed = [PlacedTree(root, kv) for kv in caches]
        return lambda: self._runner.verify(*placed)

    def _step_s(self, count: int, length: int) -> float:
        return _usual_s(self.step(count, length), self._precision)

    def _chunk_s(self, rows: int, behind: int) -> float:
        """Of so many rows of a prompt."""
        kv = self._runner.new_cache(behind + rows + ROUND_ROWS)

        def read() -> None:
            kv.truncate(0)
            kv.fill(behind)
            self._runner.extend([0] * rows, kv)

        return _usual_s(read, self._precision)

    def _head_s(self, rows: int) -> float:
        shape = (rows, self._config.hidden_size)
        states = torch.randn(shape).to(self._precision.device, self._runner.hidden_dtype)
        return _usual_s(lambda: self._runner.logits(states), self._precision)


class _RandomParts:
    """Parts of a model of one layer; see `Weights`. Its only token is the first."""

    num_parameters = nbytes = 0

    def __init__(self, config: ModelConfig, formats: PartFormats, precision: Precision) -> None:
        self._config, self._formats, self._precision = config, formats, precision

    def vector(self, name: str, size: int) -> Tensor:
        return self.named(name, size)

    def named(self, name: str, *shape: int) -> Tensor:
        return torch.ones(shape).to(self._precision.device, self._precision.compute)

    def embedding(self) -> Tensor:
        return self.named("", 1, self._config.hidden_size)

    def token_table(self, name: str, rows: int, columns: int) -> Tensor:
        return self.named(name, 1, columns)

    def linear(self, part: LinearSpec) -> QuantLinear:
        return _random(part, part.fitting(self._formats.linears, self._formats), self._precision)

    def lm_head(self, part: LinearSpec, embedding: Tensor) -> QuantLinear:
        spec = self._formats.fitting(self._formats.lm_head, part.rows, part.columns)
        return _random(part, spec, self._precision)


def _layer_curves(
    config: ModelConfig, formats: PartFormats, precision: Precision
) -> tuple[RateCurve, RateCurve]:
    """Times of a layer's products, and of the projection to the vocabulary, by rows.

    Args:
        config: Sizes of the model; its first layer stands for all.
        formats: Format of every part.
        precision: What it computes in, and where.
    """
    last = lm_head_part(config)
    spec = formats.fitting(formats.lm_head, last.rows, last.columns)
    head = [(last.columns, _random(last, spec, precision, _workers()))]
    layers = _random_layers(config, formats, precision)
    return _curve(layers, precision), _curve(head, precision)


def _random_layers(
    config: ModelConfig, formats: PartFormats, precision: Precision
) -> list[tuple[int, QuantLinear]]:
    """The linear parts of the first block, each with its columns."""
    workers = _workers()
    return [
        (part.columns, _random(part, part.fitting(formats.linears, formats), precision, workers))
        for part in block_parts(config, 0).linears
    ]


def _cache_rates(
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
    there, here = (np.ones(4 * _BLOCK_BYTES, dtype=np.uint8) for _ in range(2))

    def copy() -> None:
        np.copyto(there, here)

    return len(here) / _usual(copy)


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
    block = os.urandom(min(_MOVED_BYTES, _BLOCK_BYTES))  # budgets may be small
    with measuring(folder), tempfile.TemporaryFile(dir=folder) as file:
        started = time.perf_counter()
        for _ in range(_MOVED_BYTES // len(block)):
            file.write(block)
        file.flush()
        os.fsync(file.fileno())
        return _MOVED_BYTES / (time.perf_counter() - started)


def _workers() -> Workers | None:
    library = native_library()
    if library is None:
        return None
    workers = Workers(library)
    workers.use(compute_threads.count(), compute_threads.count())
    return workers


def _random(
    part: LinearSpec, spec: QuantSpec, precision: Precision, workers: Workers | None = None
) -> QuantLinear:
    rows, columns, bias = part.rows, part.columns, None
    if spec.name in BLOCK_SIZES:
        weight = {"blocks": random_blocks(spec.name, rows, columns)}
    else:
        drawn = torch.randn(rows, columns) * _SCALE
        weight = spec.quantize(drawn.to(precision.device, precision.compute))
    if part.has_bias:
        bias = torch.zeros(rows).to(precision.device, precision.compute)
    layer = spec.build(weight, rows, bias, precision.compute)
    if isinstance(layer, NativeLinear) and workers is not None:
        layer.share_workers(workers)
    return layer


def _curve(layers: Sequence[tuple[int, QuantLinear]], precision: Precision) -> RateCurve:
    return tuple((rows, _usual_s(_products(layers, rows, precision), precision)) for rows in ROWS)


def _products(
    layers: Sequence[tuple[int, QuantLinear]], rows: int, precision: Precision
) -> Callable[[], None]:
    """Products of so many rows with each part."""
    inputs = [
        (layer, torch.randn(rows, columns).to(precision.device, precision.compute))
        for columns, layer in layers
    ]

    def compute() -> None:
        for layer, x in inputs:
            layer(x)

    return compute


def _whole(work: Callable[[], object], precision: Precision) -> Callable[[], None]:
    """Work to the end of what a card was given."""

    def whole() -> None:
        with torch.inference_mode():
            work()
        cuda.wait(precision.device)

    return whole


def _usual_s(work: Callable[[], object], precision: Precision) -> float:
    whole = _whole(work, precision)
    whole()
    return _usual(whole)


def _per_s(work: Callable[[], object]) -> float:
    """How often a second."""
    count, started, took = 0, time.perf_counter(), 0.0
    while took < _BESIDE_S:
        work()
        count, took = count + 1, time.perf_counter() - started
    return count / took


def _usual(work: Callable[[], None]) -> float:
    """Seconds where no other program interferes: the least of some turns."""
    times: list[float] = []
    while len(times) < _LEAST_TURNS or (sum(times) < _MEASURED_S and len(times) < _MOST_TURNS):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)
