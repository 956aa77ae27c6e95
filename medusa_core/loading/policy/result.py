"""Result of a search: a policy and its forecast."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from medusa_core.messages import BlockBytes, Policy


@dataclass(frozen=True, slots=True)
class BatchForecast:
    """Expected performance of a policy.

    Attributes:
        prefill_s: Seconds of a block's prompts.
        step_s: Seconds of a decoding step of a block.
        tokens_per_s: Tokens of answers per second, prefill included.
        rates: Expected rate of each of `PARTS` that occurs, in bytes per second or seconds.
        binds: Streams that limit the speed, and tiers with too little room.
        sizes: Bytes of weights, cache and activations.
    """

    prefill_s: float
    step_s: float
    tokens_per_s: float
    rates: Mapping[str, float]
    binds: tuple[str, ...]
    sizes: BlockBytes


class FoundPolicy(NamedTuple):
    """A policy and its forecast."""

    policy: Policy
    forecast: BatchForecast
