"""What drawing a token costs at a large vocabulary, by filter."""

from __future__ import annotations

import statistics
import time

import torch
from torch import Tensor

from medusa_core.messages import GenerateSettings
from medusa_core.speculation.rules.sampling import Sampler

VOCAB_SIZE = 128_256  # Llama 3's
_DRAWS = 60
# Standard deviations of random scores: under the first about a thousand tokens carry a top-p of
# 0.9, under the second half of the vocabulary does.
_PEAKED, _FLAT = 3.0, 1.0


def sampling_cost(vocab_size: int = VOCAB_SIZE) -> dict[str, float]:
    """Median milliseconds to draw a token from random scores, in turns.

    Returns:
        `top_p_ms`, `top_k_ms` and `plain_ms` where few tokens carry the probability,
        `flat_top_p_ms` where many do, and `vocab_size`.
    """
    peaked, flat = _scores(vocab_size, _PEAKED), _scores(vocab_size, _FLAT)
    cases = {
        "top_p_ms": (Sampler(GenerateSettings(temperature=0.8, top_p=0.9)), peaked),
        "top_k_ms": (Sampler(GenerateSettings(temperature=0.8, top_k=40)), peaked),
        "plain_ms": (Sampler(GenerateSettings(temperature=0.8)), peaked),
        "flat_top_p_ms": (Sampler(GenerateSettings(temperature=0.8, top_p=0.9)), flat),
    }
    measured: dict[str, list[float]] = {name: [] for name in cases}
    for position in range(_DRAWS):
        for name, (sampler, scores) in cases.items():
            started = time.perf_counter()
            sampler.draw(scores, position)
            measured[name].append(1e3 * (time.perf_counter() - started))
    costs = {name: statistics.median(taken) for name, taken in measured.items()}
    return {**costs, "vocab_size": vocab_size}


def sampling_table(costs: dict[str, float]) -> str:
    """The figures for people."""
    names = {
        "plain_ms": "no filter",
        "top_k_ms": "top-k 40",
        "top_p_ms": "top-p 0.9, few tokens carry it",
        "flat_top_p_ms": "top-p 0.9, half of all tokens carry it",
    }
    lines = [f"{text:40} {costs[name]:.2f} ms a token" for name, text in names.items()]
    return "\n".join([f"vocabulary of {costs['vocab_size']:,}", *lines])


def _scores(vocab_size: int, deviation: float) -> Tensor:
    return deviation * torch.randn(vocab_size, generator=torch.Generator().manual_seed(1))
