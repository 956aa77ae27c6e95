"""What to expect of a model on this computer before it is fetched: an estimate, and named one.

A step of few rows takes as long as its weights take to be read. So a device is timed with layers of
zeros in the model's weight format, too large for its caches, at several row counts; what a step of
the model takes follows from its bytes. Attention, which a long conversation makes slower, and
norms are left out.
"""

from __future__ import annotations

import os
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import torch

from medusa_core.errors import OutOfMemoryError
from medusa_core.memory.budget import Budget
from medusa_core.memory.plan import embedding_bytes, experts_bytes, heads_bytes, weights_bytes
from medusa_core.messages import HeadsShape, WeightFormats
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.choice import (
    PartFormats,
    settle_formats,
)
from medusa_core.models.quant.format import QuantSpec
from medusa_core.models.quant.in_blocks import weight_formats
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear, share_threads
from medusa_core.runtime.tree.tables import typical_table
from medusa_core.system import compute_threads, cuda
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.pool import Workers

_ROWS = (1, 2, 4, 8, 16)
_WIDTH = 4096
_NBYTES = 200 << 20  # more than the caches of most processors hold
_REPEATS = 3


class ReadRate(NamedTuple):
    """How fast a device reads weights in a format.

    Attributes:
        rates: Bytes a second while so many rows pass, by rising row counts.
    """

    rates: tuple[tuple[int, float], ...]

    def step_s(self, nbytes: int, rows: int) -> float:
        """Seconds to read so many bytes for so many rows; between measured counts in a line."""
        times = [(count, nbytes / rate) for count, rate in self.rates]
        for (low, before), (high, after) in pairwise(times):
            if rows <= high:
                return before + (after - before) * (rows - low) / (high - low)
        return times[-1][1] * rows / times[-1][0]


class Forecast(NamedTuple):
    """What to expect of a model on a device, at the beginning of a conversation.

    Attributes:
        plain_tokens_per_s: Without guesses.
        tokens_per_s: With its heads, if they are right as often as Medusa's usually are; as many
            as plainly where there are none, or where no tree pays.
        tree_rows: Rows of the tree that gives most; 1 where none pays.
    """

    plain_tokens_per_s: float
    tokens_per_s: float
    tree_rows: int


def forecast(
    config: ModelConfig,
    heads: HeadsShape,
    wanted: WeightFormats,
    budget: Budget,
    rate: ReadRate,
    coming_s: float = 0.0,
) -> Forecast:
    """Estimate the speed of a model.

    Args:
        config: Its sizes.
        heads: Sizes of its heads.
        wanted: As what its weights are loaded.
        budget: The device.
        rate: Measured there, in the format of its linear layers.
        coming_s: Seconds in which the layers of a step come that lie below the device.

    Raises:
        RequestError: The formats don't go together.
    """
    formats = settle_formats(wanted, "", budget.hardware, config.stored)
    plain_s = step_s(config, formats, rate, 1, coming_s)
    best = (1 / plain_s, 1)
    if heads.num_heads:
        table = typical_table(heads.num_heads)
        heads_s = rate.step_s(heads_bytes(config, heads, formats), 1)
        for rows in range(2, 2 * _ROWS[-1] + 1):
            tokens = table.expected_length(table.tree(rows))
            seconds = step_s(config, formats, rate, rows, coming_s) + heads_s
            best = max(best, (tokens / seconds, rows))
    return Forecast(1 / plain_s, *best)


def step_s(
    config: ModelConfig, formats: PartFormats, rate: ReadRate, rows: int, coming_s: float = 0.0
) -> float:
    """Seconds of a step of so many rows: layers come while others are computed.

    Source: FlexGen (Sheng et al. 2023), section 4.3.

    Args:
        config: Sizes of the target.
        formats: As what its weights are loaded.
        rate: Of the device.
        rows: Rows of the step.
        coming_s: As in `forecast`.
    """
    return max(rate.step_s(_read_bytes(config, formats, rows), rows), coming_s)


def rate_limiting_format(wanted: WeightFormats, config: ModelConfig, budget: Budget) -> str:
    """The weight format whose pace decides; see `measure_read_rate`.

    Raises:
        RequestError: The formats don't go together.
    """
    return settle_formats(wanted, "", budget.hardware, config.stored).linears.name


@lru_cache(maxsize=32)
def measure_read_rate(device: str, quant: str) -> ReadRate:
    """Time a device with weights in a format; takes about a second, once.

    Args:
        device: Torch device name.
        quant: Name of a weight format.

    Raises:
        OutOfMemoryError: There is no room to time it.
        RequestError: There is no such format.
    """
    try:
        return _measured(device, weight_formats().get(quant))
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise OutOfMemoryError(
            "There is no room to estimate the speed.", "Close other programs first."
        ) from error


def _measured(device: str, spec: QuantSpec) -> ReadRate:
    layers = _layers(spec, device)
    nbytes = spec.nbytes(_WIDTH, _WIDTH, torch.device(device).type) * len(layers)
    workers = _share_workers(layers)
    rates = []
    with torch.inference_mode(), compute_threads.limited(compute_threads.count()):
        for rows in _ROWS:
            x = torch.ones(rows, _WIDTH, dtype=_compute(device), device=device)
            work = partial(_run, layers, x)
            seconds = min(cuda.seconds_of(work, x.device) for _ in range(_REPEATS))
            rates.append((rows, nbytes / seconds))
    del workers
    return ReadRate(tuple(rates))


def _layers(spec: QuantSpec, device: str) -> list[QuantLinear]:
    """Layers of zeros: what they hold doesn't change what they take."""
    compute = _compute(device)
    count = max(1, _NBYTES // spec.nbytes(_WIDTH, _WIDTH, torch.device(device).type))
    zeros = _zeros(spec, compute, device)
    layers = []
    for _ in range(count):  # each in memory of its own, else caches would hold them
        own = {name: tensor.to(device, copy=True) for name, tensor in zeros.items()}
        layers.append(spec.build(own, _WIDTH, None, compute))
    return layers


def _zeros(spec: QuantSpec, compute: torch.dtype, device: str) -> dict[str, torch.Tensor]:
    """What a layer of zeros is made of."""
    if spec.is_made:
        return spec.quantize(torch.zeros(_WIDTH, _WIDTH, dtype=compute, device=device))
    kinds = spec.tensors(_WIDTH, _WIDTH, str(compute).removeprefix("torch."))
    return {
        name: torch.zeros(shape, dtype=getattr(torch, dtype))
        for name, (dtype, shape) in kinds.items()
    }


def _compute(device: str) -> torch.dtype:
    return torch.float32 if torch.device(device).type == "cpu" else torch.float16


def _share_workers(layers: list[QuantLinear]) -> Workers | None:
    """The threads that a model would have; whoever measures keeps them meanwhile."""
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


def _read_bytes(config: ModelConfig, formats: PartFormats, rows: int) -> int:
    """What a step reads of the weights: of token vectors of their own next to nothing.

    Of experts those that its rows choose, as many different ones as chance has it.
    """
    nbytes = weights_bytes(config, formats)
    if not formats.shares_embedding(config.tie_embeddings):
        nbytes -= embedding_bytes(config, formats)
    experts = config.traits.experts
    if experts is None:
        return nbytes
    unread = (1 - experts.chosen / experts.count) ** rows
    return round(nbytes - unread * experts_bytes(config, formats))
