"""A policy with what is expected of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from medusa_core.messages import BlockBytes, Policy


@dataclass(frozen=True, slots=True)
class BatchForecast:
    """What a policy is expected to bring.

    Attributes:
        prefill_s: Seconds for the prompts of a block.
        step_s: Seconds of a decoding step of a block.
        tokens_per_s: Of answers, the prompts' time included.
        rates: Of each of `PARTS` that there is, in the unit that is shown.
        binds: What would have to be faster or larger.
        sizes: Bytes of what is placed.
    """

    prefill_s: float
    step_s: float
    tokens_per_s: float
    rates: Mapping[str, float]
    binds: tuple[str, ...]
    sizes: BlockBytes


class FoundPolicy(NamedTuple):
    """What a search returns."""

    policy: Policy
    forecast: BatchForecast
