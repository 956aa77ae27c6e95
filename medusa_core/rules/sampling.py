"""Seeded sampling that doesn't depend on how many tokens a step decides.

The noise of a position is drawn from a counter-based generator keyed by (seed, position), over the
whole vocabulary, so that speculative and plain decoding see the same noise at the same place:
token = argmax(filtered log-probabilities + Gumbel noise).

Drafters may see that noise, too: a guess that is the best of the drafter's scores with the same
noise added is right more often than the drafter's best, and the text is the target's all the same.

Source: Philox (Salmon et al. 2011); Gumbel-max (Gumbel 1954; Maddison et al. 2014); the shared
noise: Daliri, Musco, Suresh, "Coupling without Communication and Drafter-Invariant Speculative
Decoding" (2024), section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.messages import GenerateSettings
from medusa_core.rules.rule import check_number

_SEED_MASK = (1 << 64) - 1
_KEPT_ROWS = 16  # more places than a tree is deep


def gumbel_noise(seed: int, position: int, vocab_size: int) -> Tensor:
    """Standard Gumbel noise of one position. [vocabulary], float64, on the CPU"""
    uniform = _generator(seed, position).random(vocab_size)
    # random() may return 0, whose logarithm is no number to add.
    np.maximum(uniform, np.finfo(np.float64).tiny, out=uniform)
    return torch.from_numpy(-np.log(-np.log(uniform)))


def gumbel_rows(seeds: Iterable[int], positions: Iterable[int], vocab_size: int) -> Tensor:
    """`gumbel_noise` of several places, each with its seed. [places, vocabulary]"""
    places = zip(seeds, positions, strict=True)
    return torch.stack([gumbel_noise(seed, position, vocab_size) for seed, position in places])


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
        self._rows: dict[int, Tensor] = {}
        self._width = 0

    def draw(self, scores: Tensor, position: int) -> int:
        """The token at a position.

        Args:
            scores: The target's logits. [vocabulary]
            position: Its place in the session, the key of its noise.
        """
        filtered = self.filtered(scores)
        noise = self._noise(position, len(filtered))[: len(filtered)]
        return int((filtered + noise).argmax())

    def shifted(self, scores: Tensor, token_ids: Tensor | None, position: int) -> Tensor:
        """What `draw` would compare from a position on, if these were the target's scores.

        Args:
            scores: [places, n], any device and float dtype
            token_ids: Whose they are, [n] or [places, n]; None where columns are token ids.
            position: Of the first place.

        Returns:
            [places, n], on the CPU.
        """
        size = scores.shape[-1] if token_ids is None else int(token_ids.max()) + 1
        rows = [self._noise(position + place, size) for place in range(len(scores))]
        if token_ids is None:
            rows = [row[:size] for row in rows]
        else:  # row by row, which takes half the time of one gather
            ids = token_ids.expand(len(rows), -1)
            rows = [row.index_select(0, own) for row, own in zip(rows, ids, strict=True)]
        noise = torch.stack(rows)
        known = scores.to(device="cpu", dtype=torch.float64)
        if self._has_filters:
            return torch.stack([self._filtered(row) for row in known]).add_(noise)
        return known.div(self._settings.temperature).add_(noise)

    @property
    def _has_filters(self) -> bool:
        settings = self._settings
        return settings.top_k > 0 or settings.top_p < 1 or settings.min_p > 0

    def _noise(self, position: int, at_least: int) -> Tensor:
        """The noise of a place; drafters and the rule ask for the same ones. [at_least or more]"""
        row = self._rows.get(position)
        if row is None or len(row) < at_least:
            self._width = max(self._width, at_least)
            row = gumbel_noise(self._settings.seed, position, self._width)
            self._rows[position] = row
            if len(self._rows) > _KEPT_ROWS:
                del self._rows[next(iter(self._rows))]
        return row

    def filtered(self, scores: Tensor) -> Tensor:
        """Log-scores after temperature, top-k, top-p and min-p; −inf for what is filtered out.

        Args:
            scores: The target's logits. [vocabulary], any device and float dtype

        Returns:
            [vocabulary], float64, on the CPU; not normalised.

        Raises:
            NumericsError: The best score is no number.
        """
        kept = scores.to(device="cpu", dtype=torch.float64)
        check_number(float(kept.max()))
        return self._filtered(kept)

    def _filtered(self, scores: Tensor) -> Tensor:
        settings = self._settings
        kept = scores / settings.temperature
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
