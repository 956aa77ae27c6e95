"""Estimate a model's speed on this computer before it is downloaded or loaded.

A step of few rows takes as long as its weights take to be read. So steps of a random model are
timed once per weight format, at several row counts (`measure/weights.py`), and the time of a step
follows from the model's bytes. A long conversation, which makes attention slower, is left out.
Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from medusa_core.loading.memory.budget import Budget
from medusa_core.loading.memory.placement import HostMlpBytes
from medusa_core.loading.memory.plan import (
    embedding_bytes,
    experts_bytes,
    heads_bytes,
    weights_bytes,
)
from medusa_core.messages import HeadsShape, WeightFormats
from medusa_core.models.blocks.spec import RoutingSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.quant.choice import PartFormats, resolve_formats
from medusa_core.runtime.tree.tables import typical_table

_MAX_TREE_ROWS = 32


class ReadRate(NamedTuple):
    """How fast a device reads weights in a format.

    Attributes:
        rates: Pairs of a row count, rising, and the bytes per second while that many are computed.
    """

    rates: tuple[tuple[int, float], ...]

    def step_s(self, nbytes: int, rows: float) -> float:
        """Seconds of a step of `rows` rows that reads `nbytes`, interpolated by measured counts."""
        times = [(count, nbytes / rate) for count, rate in self.rates]
        if rows <= times[0][0]:
            return times[0][1]
        for (low, before), (high, after) in pairwise(times):
            if rows <= high:
                return before + (after - before) * (rows - low) / (high - low)
        return times[-1][1] * rows / times[-1][0]


class Forecast(NamedTuple):
    """Expected speed of a model on a device, at the beginning of a conversation.

    Attributes:
        plain_tokens_per_s: Tokens per second without drafts.
        tokens_per_s: The same with heads of typical acceptance; equal to the plain speed
            without heads, or if no tree is profitable.
        tree_rows: Rows of the most profitable tree; 1 for plain decoding.
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
    step_s: Callable[[int], float] | None = None,
) -> Forecast:
    """Estimate the speed of a model.

    Args:
        config: Configuration of the target.
        heads: Sizes of its heads.
        wanted: Weight formats.
        budget: The device.
        rate: Rate measured on the device, in the format of the target's linear layers.
        step_s: Seconds of a step by its rows; None if the model fits the device.

    Raises:
        RequestError: The formats can't be combined.
    """
    formats = resolve_formats(wanted, "", budget.hardware, config.stored)

    def resident_s(rows: int) -> float:
        """Seconds of a step if the whole model is on the device."""
        return rate.step_s(read_bytes(config, formats, rows), rows)

    step_s = step_s or resident_s
    plain_s = step_s(1)
    best = (1 / plain_s, 1)
    if heads.num_heads:
        table = typical_table(heads.num_heads)
        heads_s = rate.step_s(heads_bytes(config, heads, formats), 1)
        for rows in range(2, _MAX_TREE_ROWS + 1):
            tokens = table.expected_length(table.tree(rows))
            best = max(best, (tokens / (step_s(rows) + heads_s), rows))
    return Forecast(1 / plain_s, *best)


def rate_limiting_format(wanted: WeightFormats, config: ModelConfig, budget: Budget) -> str:
    """Return the format of the linear layers, whose read rate limits the speed.

    Raises:
        RequestError: The formats can't be combined.
    """
    return resolve_formats(wanted, "", budget.hardware, config.stored).linears.name


def read_bytes(config: ModelConfig, formats: PartFormats, rows: int) -> int:
    """Return the bytes of weights that a step reads, without separate token embeddings.

    Of the experts, those that its rows choose count, if every choice is equally likely.
    """
    nbytes = weights_bytes(config, formats)
    if not formats.shares_embedding(config.tie_embeddings):
        nbytes -= embedding_bytes(config, formats)
    if config.moe is None:
        return nbytes
    unread = 1 - share_of_experts(config.moe.routing, rows)
    return round(nbytes - unread * experts_bytes(config, formats))


def share_of_experts(routing: RoutingSpec, rows: float) -> float:
    """Return the expected share of a layer's experts that some rows choose.

    Args:
        routing: How experts are chosen; every choice is taken to be equally likely, though
            neighbouring rows agree more often.
        rows: Number of rows.
    """
    return 1.0 - float((1 - routing.num_experts_per_tok / routing.num_experts) ** rows)


def mixed_step_s(
    config: ModelConfig,
    formats: PartFormats,
    on_host: Sequence[HostMlpBytes],
    card: ReadRate,
    cpu: ReadRate,
    rows: int,
) -> float:
    """Estimate a step of which the processor computes some MLPs and experts, without copies.

    Args:
        config: Configuration of the target.
        formats: Formats on the card.
        on_host: What the processor computes.
        card: Reads of weights by the card.
        cpu: Reads of weights by the processor.
        rows: Rows of the step.
    """
    moved = sum(_read_share(config, one, rows) * one.device_bytes for one in on_host)
    card_s = card.step_s(round(read_bytes(config, formats, rows) - moved), rows)
    return card_s + host_step_s(config, on_host, cpu, rows)


def host_step_s(
    config: ModelConfig, on_host: Sequence[HostMlpBytes], rate: ReadRate, rows: int
) -> float:
    """Estimate the processor's part of a step; see `mixed_step_s`."""
    seconds = 0.0
    for one in on_host:
        share = _read_share(config, one, rows)
        # An expert computes only the rows that chose it.
        chosen = config.moe.routing if one.are_experts and config.moe is not None else None
        each = rows if chosen is None else rows * chosen.num_experts_per_tok / chosen.num_experts
        seconds += rate.step_s(round(share * one.host_bytes), max(1.0, each / share))
    return seconds


def _read_share(config: ModelConfig, one: HostMlpBytes, rows: int) -> float:
    """Share of an MLP's bytes, or of a layer's experts', that a step reads."""
    if not one.are_experts or config.moe is None:
        return 1.0
    return share_of_experts(config.moe.routing, rows)
