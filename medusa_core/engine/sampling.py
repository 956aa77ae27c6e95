"""Seeded sampling that doesn't depend on how many tokens a step decides.

The noise of a position is drawn from a counter-based generator keyed by (seed, position), over the
whole vocabulary, so that speculative and plain decoding see the same noise at the same place:
token = argmax(filtered log-probabilities + Gumbel noise).

Source: Philox (Salmon et al. 2011); Gumbel-max (Gumbel 1954; Maddison et al. 2014).
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from medusa_core.engine.rule import check_number
from medusa_core.errors import RequestError
from medusa_core.messages import GenerateSettings

_SEED_MASK = (1 << 64) - 1


def gumbel_noise(seed: int, position: int, vocab_size: int) -> Tensor:
    """Standard Gumbel noise of one position. [vocabulary], float64, on the CPU"""
    uniform = _generator(seed, position).random(vocab_size)
    # random() may return 0, whose logarithm is no number to add.
    np.maximum(uniform, np.finfo(np.float64).tiny, out=uniform)
    return torch.from_numpy(-np.log(-np.log(uniform)))


def gumbel_noise_of(seed: int, position: int, token_id: int) -> float:
    """The entry of `gumbel_noise` for one token, without drawing the others."""
    block, place = divmod(token_id, 4)  # a counter gives four numbers
    uniform = _generator(seed, position, block).random(place + 1)[place]
    return float(-np.log(-np.log(max(uniform, np.finfo(np.float64).tiny))))


def _generator(seed: int, position: int, block: int = 0) -> np.random.Generator:
    key = np.array([seed & _SEED_MASK, 0], dtype=np.uint64)
    # The first counter word counts blocks within a stream: the position goes above it.
    counter = np.array([block, 0, position, 0], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


class Sampler:
    """Draws tokens from one row of scores."""

    def __init__(self, settings: GenerateSettings) -> None:
        _check(settings)
        self._settings = settings

    def draw(self, scores: Tensor, position: int) -> int:
        """The token at a position.

        Args:
            scores: The target's logits. [vocabulary]
            position: Its place in the session, the key of its noise.
        """
        filtered = self.filtered(scores)
        noise = gumbel_noise(self._settings.seed, position, len(filtered))
        return int((filtered + noise).argmax())

    def filtered(self, scores: Tensor) -> Tensor:
        """Log-scores after temperature, top-k, top-p and min-p; −inf for what is filtered out.

        Args:
            scores: The target's logits. [vocabulary], any device and float dtype

        Returns:
            [vocabulary], float64, on the CPU; not normalised.

        Raises:
            NumericsError: The best score is no number.
        """
        settings = self._settings
        kept = scores.to(device="cpu", dtype=torch.float64)
        check_number(float(kept.max()))
        kept = kept / settings.temperature
        if 0 < settings.top_k < len(kept):
            threshold = kept.topk(settings.top_k).values[-1]
            kept = kept.masked_fill(kept < threshold, float("-inf"))
        if settings.top_p < 1:
            kept = _keep_nucleus(kept, settings.top_p)
        if settings.min_p > 0:
            # Probabilities relate as exp of the difference; normalising would change nothing.
            kept = kept.masked_fill(kept < kept.max() + math.log(settings.min_p), float("-inf"))
        return kept

    def log_probabilities(self, scores: Tensor) -> Tensor:
        """What `draw` draws from: `filtered`, normalised. [vocabulary], float64, on the CPU"""
        return torch.log_softmax(self.filtered(scores), dim=-1)


def _keep_nucleus(scores: Tensor, top_p: float) -> Tensor:
    """Keep the smallest set of best tokens whose probability reaches `top_p`."""
    probabilities = torch.softmax(scores, dim=-1)
    ordered, order = probabilities.sort(descending=True, stable=True)
    before = ordered.cumsum(0) - ordered
    return scores.index_fill(0, order[before >= top_p], float("-inf"))


def _check(settings: GenerateSettings) -> None:
    if not 0 < settings.temperature <= 100:
        raise RequestError(
            f"A temperature of {settings.temperature} makes no sense.",
            "Choose one between 0.1 and 2, or the greedy rule for none.",
        )
    if not 0 < settings.top_p <= 1:
        raise RequestError(f"top-p is {settings.top_p}.", "Choose one above 0, at most 1.")
    if not 0 <= settings.min_p <= 1:
        raise RequestError(f"min-p is {settings.min_p}.", "Choose one from 0 (off) to 1.")
    if settings.top_k < 0:
        raise RequestError(f"top-k is {settings.top_k}.", "Choose 0 (off) or more.")
