"""Measure how fast a device computes a model: layers of random weights in the real runner."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch

from medusa_core.loading.measure.timing import best_seconds, runs_per_s
from medusa_core.loading.memory.plan import cache_itemsize
from medusa_core.loading.policy.machine_rates import RateCurve
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import rows_of
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.random_weights import RandomWeights
from medusa_core.models.token_table import DenseTable, TokenTable
from medusa_core.runtime.backends.attention import choose_attention
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.kv.quantized import QuantizedCache
from medusa_core.runtime.kv.size import ROUND_ROWS, row_bytes
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.runtime.runner.choice import choose_runner
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.system import compute_threads, cuda

ROWS = (1, 8, 32, 64, 128, 256)
_STEP_ROWS, _CHUNK_ROWS = ROWS[1], ROWS[3]
_BATCH_ROWS = ROWS[2]
_LONG_TOKENS = 1024
_TREE_S = 0.1  # of each row count: estimates wait for them
_MAX_RATE = 4e12  # of any memory: attention that noise hides isn't infinitely fast
_PACE_REPEATS, _MIN_PACE = 3, 0.1


class ModelRates(NamedTuple):
    """Measured rates of a model.

    Attributes:
        layer_s: Seconds of a layer by rows, with a short context.
        head_s: Seconds of the output projection by rows.
        cache: Rate at which attention of one row reads KV rows. [bytes/s]
        prompts: As `cache`, for rows of a prompt, each of which reads all KV rows. [bytes/s]
        host: Rate at which the CPU attends to KV rows in host memory. [bytes/s]
    """

    layer_s: RateCurve
    head_s: RateCurve
    cache: float
    prompts: float
    host: float = 0.0


class Paces(NamedTuple):
    """Slowdown of computing and disk reads while both run.

    Attributes:
        computing: Speed of computing during reads, as a fraction of its speed alone.
        reading: Speed of reads during computing, as a fraction of their speed alone.
    """

    computing: float
    reading: float


def model_rates(
    config: ModelConfig, formats: PartFormats, precision: Precision, tokens: int, num_threads: int
) -> ModelRates:
    """Measure a model's rates.

    Args:
        config: Configuration; the first layer that attends stands for all.
        formats: Formats of all parts.
        precision: Device and dtypes.
        tokens: Length of the context that attention is measured with.
        num_threads: Threads of the CPU.
    """
    with compute_threads.limited(num_threads):
        rates = SampleModel(one_layer_config(config), formats, precision, num_threads).rates(tokens)
        host = rates.cache
        if precision.device.type != "cpu":
            host = _cpu_cache_rate(config, precision, tokens, cache_itemsize(config, formats))
        return rates._replace(host=host)


def paces_of(
    config: ModelConfig,
    formats: PartFormats,
    precision: Precision,
    num_threads: int,
    read: Callable[[], int],
) -> Paces:
    """Measure how much computing a layer and reading a disk slow each other down.

    Args:
        config: Configuration; the first layer that attends stands for all.
        formats: Formats of all parts.
        precision: Device and dtypes.
        num_threads: Threads of the CPU.
        read: Reads a piece of the disk; see `open_reads`.
    """
    with compute_threads.limited(num_threads), ThreadPoolExecutor(1) as reader:
        layer = SampleModel(one_layer_config(config), formats, precision, num_threads)
        compute = layer.timed(layer.step(_BATCH_ROWS, ROUND_ROWS))
        paces = []
        for _ in range(_PACE_REPEATS):
            alone = runs_per_s(compute), runs_per_s(read)
            reading = reader.submit(runs_per_s, read)
            both = runs_per_s(compute), reading.result()
            paces.append([now / before for now, before in zip(both, alone, strict=True)])
        computing, reading_pace = np.median(paces, axis=0).clip(_MIN_PACE, 1.0)
        return Paces(float(computing), float(reading_pace))


class SampleModel:
    """Some layers of a model and its output projection with random weights, in its runner."""

    def __init__(
        self, config: ModelConfig, formats: PartFormats, precision: Precision, num_threads: int
    ) -> None:
        self._config, self._formats, self._precision = config, formats, precision
        model = Decoder(config, precision, _SampleWeights(config, precision, formats))
        self._runner = choose_runner(model, precision)
        self._runner.use_threads(num_threads, num_threads)

    def rates(self, tokens: int) -> ModelRates:
        """Measure all rates but `host`; see `model_rates`."""
        few = {rows: self._step_s(rows, ROUND_ROWS) for rows in ROWS[:3]}
        many = {rows: self._chunk_s(rows, 0) for rows in ROWS[3:]}
        # Attention is a difference of two times: with a short context noise would hide it.
        tokens = max(tokens, min(_LONG_TOKENS, self._config.context_tokens))
        itemsize = cache_itemsize(self._config, self._formats)
        nbytes = tokens * row_bytes(self._config, itemsize, self._precision.cache_format)
        step_s = self._step_s(_STEP_ROWS, tokens + ROUND_ROWS) - few[_STEP_ROWS]
        chunk_s = self._chunk_s(_CHUNK_ROWS, tokens) - many[_CHUNK_ROWS]
        return ModelRates(
            tuple((few | many).items()),
            tuple((rows, self._lm_head_s(rows)) for rows in ROWS),
            *(
                rows * nbytes / max(rows * nbytes / _MAX_RATE, seconds)
                for rows, seconds in ((_STEP_ROWS, step_s), (_CHUNK_ROWS, chunk_s))
            ),
        )

    def step(self, count: int, length: int) -> Callable[[], object]:
        """Prepare a step of `count` sequences with `length` cached rows each, one row each."""
        root = TokenTree(TreeShape.root_only(), (0,))
        caches = [self._runner.new_cache(length + ROUND_ROWS) for _ in range(count)]
        for kv in caches:
            kv.fill(length)
        placed = [PlacedTree(root, kv) for kv in caches]
        return lambda: self._runner.verify(*placed)

    def tree_s(self, rows: int) -> float:
        """Measure the seconds of a pass that verifies a chain of `rows` nodes."""
        kv = self._runner.new_cache(2 * ROUND_ROWS)
        kv.fill(1)
        placed = PlacedTree(TokenTree(TreeShape.chain(rows), (0,) * rows), kv)
        return self._seconds(lambda: self._runner.verify(placed), _TREE_S)

    def timed(self, work: Callable[[], object]) -> Callable[[], None]:
        """Return work that ends when the device has computed it."""

        def whole() -> None:
            """Run the work, and wait until the device has computed it."""
            with torch.inference_mode():
                work()
            cuda.wait(self._precision.device)

        return whole

    def _seconds(self, work: Callable[[], object], measured_s: float | None = None) -> float:
        """Shortest seconds of some work, after a run that isn't counted; see `best_seconds`."""
        timed = self.timed(work)
        timed()
        return best_seconds(timed, measured_s)

    def _step_s(self, count: int, length: int) -> float:
        """Time a step of `count` sequences with `length` cached rows each."""
        return self._seconds(self.step(count, length))

    def _chunk_s(self, rows: int, cached: int) -> float:
        """Time a prompt chunk after a number of cached rows."""
        kv = self._runner.new_cache(cached + rows + ROUND_ROWS)

        def read() -> None:
            """Compute the chunk after cached rows with arbitrary contents."""
            kv.truncate(0)
            kv.fill(cached)
            self._runner.extend([0] * rows, kv)

        return self._seconds(read)

    def _lm_head_s(self, rows: int) -> float:
        """Time the LM head for a number of rows."""
        shape = (rows, self._config.hidden_size)
        states = torch.randn(shape).to(self._precision.device, self._runner.hidden_dtype)
        return self._seconds(lambda: self._runner.logits(states))


def one_layer_config(config: ModelConfig) -> ModelConfig:
    """Return the configuration of a model that has only the first layer that attends."""
    attending = (i for i, shape in enumerate(config.layers) if rows_of(shape) is not None)
    index = next(attending, 0)
    return config.with_blocks(config.blocks[index : index + 1])


class _SampleWeights(RandomWeights):
    """Random weights whose tables have one row."""

    def token_table(self, name: str, rows: int, columns: int) -> TokenTable:
        """Embeddings of a vocabulary of one token."""
        return DenseTable(self.named(name, 1, columns))


def _cpu_cache_rate(config: ModelConfig, precision: Precision, tokens: int, itemsize: int) -> float:
    """Measure attention of one row that the CPU computes for a card. [bytes/s]"""
    one, cpu = one_layer_config(config), torch.device("cpu")
    wide = torch.promote_types(precision.compute, torch.float32)
    precision = replace(precision, device=cpu, compute=wide)
    (shape,) = (rows for rows in map(rows_of, one.layers) if rows is not None)
    kind = QuantizedCache if precision.cache_format else TensorCache
    kv = kind(one, precision, tokens + ROUND_ROWS)
    attend = choose_attention(cpu, precision.attended)
    kv.fill(tokens)
    q = torch.zeros(1, config.num_heads, shape.head_dim, dtype=precision.scores)
    fresh = torch.zeros(1, 2 * shape.num_kv_heads, shape.head_dim, dtype=wide)

    def read() -> None:
        """Append a row and attend to all."""
        kv.reserve(1)
        keys, values = (part.to(precision.scores) for part in kv.write(0, fresh))
        attend(q, keys, values, None)

    read()
    nbytes = tokens * row_bytes(one, itemsize, precision.cache_format)
    return nbytes / best_seconds(read)
