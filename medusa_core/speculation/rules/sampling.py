"""Seeded sampling that doesn't depend on how many tokens a step decides.

The noise of a position is drawn from a counter-based generator keyed by (seed, position), over the
whole vocabulary, so that speculative and plain decoding use the same noise at each position:
token = argmax(filtered log-probabilities + Gumbel noise).

Drafters may add that noise, too: the best token of the drafter's noisy logits is accepted more
often than its most likely token, and the text is the same.

Source: Philox (Salmon et al. 2011); Gumbel-max (Gumbel 1954; Maddison et al. 2014); the shared
noise: Daliri, Musco, Suresh, "Coupling without Communication and Drafter-Invariant Speculative
Decoding" (2024), section 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.tree.step import PositionNoise
from medusa_core.speculation.rules.rule import check_finite
from medusa_core.speculation.rules.shaping import numbers_of

_SEED_MASK = (1 << 64) - 1
_CACHED_ROWS = 16  # more positions than a tree is deep
_FEW = 2048  # tokens that are sorted or drawn from directly, without partitioning
_ROUNDING = 1e-9
_ROUNDING_32 = 2e-6  # relative error of a float32 score, and of a sum of their exponentials
_MIN_TEMPERATURE_32 = 1e-3  # quotients of float32 scores may overflow below
_SPAN = 8.0  # below the best score, in which a nucleus is searched before all of the row
_NOISE_OF_ONE = 1024  # numbers of a whole row that are drawn in the time of one alone
_DOWNLOADED = 512  # largest scores of a row

FloatArray = NDArray[np.float64]
Ids = NDArray[np.int64]


def gumbel_noise(seed: int, position: int, vocab_size: int) -> Tensor:
    """Standard Gumbel noise of one position. [vocabulary], float64, on the CPU"""
    return torch.from_numpy(_gumbel(_generator(seed, position).random(vocab_size)))


def gumbel_rows(seeds: Iterable[int], positions: Iterable[int], vocab_size: int) -> Tensor:
    """`gumbel_noise` of several positions, each with its seed. [positions, vocabulary]"""
    places = zip(seeds, positions, strict=True)
    return torch.stack([gumbel_noise(seed, position, vocab_size) for seed, position in places])


def gumbel_noise_of(seed: int, position: int, token_id: int) -> float:
    """The entry of `gumbel_noise` for one token, without drawing the others."""
    block, place = divmod(token_id, 4)  # a counter gives four numbers
    return float(_gumbel(_generator(seed, position, block).random(place + 1)[place:])[0])


def _gumbel(uniform: FloatArray) -> FloatArray:
    """Gumbel noise of uniform numbers; random() may return 0, whose logarithm is infinite."""
    noise: FloatArray = -np.log(-np.log(np.maximum(uniform, np.finfo(np.float64).tiny)))
    return noise


def _generator(seed: int, position: int, block: int = 0) -> np.random.Generator:
    """The generator of a position's noise, from a block of four numbers on."""
    key = np.array([seed & _SEED_MASK, 0], dtype=np.uint64)
    # The first counter word counts blocks within a stream: the position goes above it.
    counter = np.array([block, 0, position, 0], dtype=np.uint64)
    return np.random.Generator(np.random.Philox(key=key, counter=counter))


class SampleCandidates(NamedTuple):
    """Tokens that pass the filters.

    Attributes:
        ids: Their ids, ascending; None for all. int64
        scores: Log-scores after the temperature, not normalised. float64
    """

    ids: Ids | None
    scores: FloatArray


class LargestScores:
    """The largest scores of each row, in one small download from a card.

    Whole rows of 16 nodes are 4 MB for a vocabulary of 128k tokens, and take longer to download and
    to draw from than a step takes to compute.
    """

    def __init__(self, logits: Tensor, temperature: float) -> None:
        """Queue the work on the card; nothing waits for it.

        Args:
            logits: [n, vocabulary], on any device.
            temperature: Divides the scores of the sum.
        """
        self._logits = logits
        values, ids = logits.topk(min(_DOWNLOADED, logits.shape[-1]))
        total = logits.double().div(temperature).logsumexp(-1, keepdim=True)
        # Packed as float64, which holds values and ids exactly.
        self._packed = torch.cat([total, values.double(), ids.double()], dim=-1)
        self._host: FloatArray | None = None

    def __getitem__(self, row: int) -> tuple[float, FloatArray, Ids]:
        """Return a row's log of the sum of exp(score / temperature), its largest scores and ids.

        The scores descend. The first call waits for the card.
        """
        if self._host is None:
            self._host = self._packed.cpu().numpy()
        total, rest = self._host[row, 0], self._host[row, 1:]
        count = len(rest) // 2
        return float(total), rest[:count], rest[count:].astype(np.int64)

    def whole(self, row: int) -> Tensor:
        """Return a whole row; the first call downloads all. [vocabulary]"""
        self._logits = self._logits.cpu()
        return self._logits[row]

    @property
    def vocab_size(self) -> int:
        """Number of columns of the logits."""
        return self._logits.shape[-1]


class Sampler:
    """Draws tokens from one row of logits.

    Filters are applied first, so that noise is only computed for the tokens that are left.
    """

    def __init__(self, settings: GenerateSettings) -> None:
        _check(settings)
        self._settings = settings
        self._rows: dict[int, FloatArray] = {}
        self._width = 0

    def draw(self, scores: Tensor, position: int) -> int:
        """Draw the token at a position.

        Args:
            scores: The target's logits. [vocabulary], any device and float dtype
            position: Its position in the session, the key of its noise.

        Raises:
            NumericsError: The largest logit is NaN or infinite.
        """
        row = numbers_of(scores)
        size, best = len(row), float(row.max())
        check_finite(best)
        if self._has_filters:
            ids, kept = self._few_candidates(row, best) or self._candidates(row.astype(np.float64))
            assert ids is not None  # there are filters
            uniform = self._uniform_of(position, ids, size)
        else:
            noise = self._uniform(position, size)[:size]
            temperature = self._settings.temperature
            ids = _within_reach(row, noise, temperature)
            (_, kept), uniform = _scaled(row, ids, temperature), noise[ids]
        return int(ids[(kept + _gumbel(uniform)).argmax()])

    def draw_of_largest(self, largest: LargestScores, row: int, position: int) -> int:
        """The token that `draw` gives for a row, of its largest scores where these decide.

        Args:
            largest: The scores.
            row: Index of the row.
            position: Its place in the session, the key of its noise.

        Raises:
            NumericsError: The best score is no number.
        """
        total, scores, ids = largest[row]
        check_finite(float(scores[0]))
        # Of equal scores the first ids pass `top_p`; a card returns them in any order.
        by_score = np.lexsort((ids, -scores))
        scores, ids = scores[by_score], ids[by_score]
        size = largest.vocab_size
        count = self._num_candidates(total, scores, size)
        if count is not None:
            order = np.argsort(ids[:count])
            kept, ids = scores[:count][order] / self._settings.temperature, ids[:count][order]
            noisy = kept + _gumbel(self._uniform(position, size)[ids])
            best = int(noisy.argmax())
            if self._has_filters or len(scores) == size:
                return int(ids[best])
            # No other token can win if even the largest noise doesn't raise it that far.
            most = _gumbel(self._uniform(position, size)[:size].max(keepdims=True))[0]
            if kept.min() + most < noisy[best] - _ROUNDING:
                return int(ids[best])
        return self.draw(largest.whole(row), position)

    def _num_candidates(self, total: float, scores: FloatArray, size: int) -> int | None:
        """Return how many of the largest scores pass the filters; None if more could.

        Args:
            total: Log of the sum of exp(score / temperature) over the vocabulary.
            scores: The largest, descending; of equal ones those of the first ids come first.
            size: Size of the vocabulary.
        """
        settings, count = self._settings, len(scores)
        has_all = count == size
        scaled = scores / settings.temperature
        if 0 < settings.top_k < size:
            if settings.top_k > count:
                return None
            count = int(np.count_nonzero(scores >= scores[settings.top_k - 1]))
            if count == len(scores) and not has_all:  # others could be as likely
                return None
            total = float(np.log(np.exp(scaled[:count] - scaled[0]).sum()) + scaled[0])
        if settings.top_p < 1:
            probabilities = np.exp(scaled[:count] - total)
            before = np.cumsum(probabilities) - probabilities
            num_kept = max(1, int(np.count_nonzero(before < settings.top_p)))
            # Of tokens as likely as the last one, the first ids are kept: that needs all of these.
            if scores[num_kept - 1] == scores[-1] and not has_all:
                return None
            count = num_kept
        if settings.min_p > 0:
            count = int(np.count_nonzero(scaled[:count] >= scaled[0] + math.log(settings.min_p)))
        filtered = count < len(scores) or has_all
        return count if filtered or not self._has_filters else None

    def prepare_noise(self, positions: Iterable[int], vocab_size: int) -> None:
        """Draw the noise of positions before their scores are there."""
        for position in positions:
            self._uniform(position, vocab_size)

    def shifted(
        self,
        scores: Tensor,
        token_ids: Tensor | None,
        position: int,
        depths: Sequence[int] | None = None,
    ) -> Tensor:
        """Add temperature, filters and noise to a drafter's logits, as `draw` does.

        Args:
            scores: [positions, n], any device and float dtype
            token_ids: Their tokens, [n] or [positions, n]; None if columns are token ids.
            position: Position of depth 1.
            depths: Depth of each row; None for 1, 2, ...

        Returns:
            [positions, n], on the CPU.
        """
        size = scores.shape[-1] if token_ids is None else int(token_ids.max()) + 1
        places = range(1, 1 + len(scores)) if depths is None else depths
        rows = [self._uniform(position + place - 1, size) for place in places]
        if token_ids is None:
            rows = [row[:size] for row in rows]
        else:
            ids = token_ids.expand(len(rows), -1).numpy()
            rows = [row[own] for row, own in zip(rows, ids, strict=True)]
        noise = torch.from_numpy(_gumbel(np.stack(rows)))
        known = scores.to(device="cpu", dtype=torch.float64)
        if self._has_filters:
            return torch.stack([self._filtered(row.numpy()) for row in known]).add_(noise)
        return known.div(self._settings.temperature).add_(noise)

    def noise(self, position: int, vocab_size: int) -> PositionNoise:
        """Return what `shifted` adds at a position, as compiled code reads it."""
        settings, uniform = self._settings, self._uniform(position, vocab_size)
        return PositionNoise(
            uniform, settings.temperature, settings.top_k, settings.top_p, settings.min_p
        )

    @property
    def _has_filters(self) -> bool:
        """Whether top-k, top-p or min-p drop tokens."""
        settings = self._settings
        return settings.top_k > 0 or settings.top_p < 1 or settings.min_p > 0

    def _uniform(self, position: int, at_least: int) -> FloatArray:
        """Uniform numbers of a position, cached as drafters and the rule use the same ones."""
        row = self._rows.get(position)
        if row is None or len(row) < at_least:
            self._width = max(self._width, at_least)
            row = _generator(self._settings.seed, position).random(self._width)
            self._rows[position] = row
            if len(self._rows) > _CACHED_ROWS:
                del self._rows[next(iter(self._rows))]
        return row

    def _uniform_of(self, position: int, ids: Ids, size: int) -> FloatArray:
        """Uniform numbers of some tokens of a position; few are drawn without the whole row."""
        if position in self._rows or len(ids) * _NOISE_OF_ONE > size:
            return self._uniform(position, size)[ids]
        blocks, places = np.divmod(ids, 4)  # a counter gives four numbers
        generator = _generator(self._settings.seed, position)
        bits = generator.bit_generator
        state: dict[str, Any] = dict(bits.state)
        drawn = []
        for block, place in zip(blocks.tolist(), places.tolist(), strict=True):
            state["state"]["counter"] = np.array([block, 0, position, 0], dtype=np.uint64)
            bits.state = state
            drawn.append(generator.random(4)[place])
        return np.array(drawn)

    def filtered(self, scores: Tensor) -> Tensor:
        """Log-scores after temperature, top-k, top-p and min-p; −inf for what is filtered out.

        Args:
            scores: The target's logits. [vocabulary], any device and float dtype

        Returns:
            [vocabulary], float64, on the CPU; not normalised.

        Raises:
            NumericsError: The largest logit is NaN or infinite.
        """
        return self._filtered(_as_float64(scores))

    def _filtered(self, scores: FloatArray) -> Tensor:
        """Log-scores of a row of numbers; see `filtered`."""
        ids, kept = self._candidates(scores)
        if ids is None:
            return torch.from_numpy(kept)
        whole = np.full(len(scores), -math.inf)
        whole[ids] = kept
        return torch.from_numpy(whole)

    def _candidates(self, scores: FloatArray) -> SampleCandidates:
        """The tokens of a row that pass the filters, with their log-scores."""
        settings = self._settings
        ids, kept = None, scores / settings.temperature
        if 0 < settings.top_k < len(kept):
            worst = torch.from_numpy(kept).topk(settings.top_k).values[-1].item()
            ids, kept = _keep(ids, kept, kept >= worst)
        if settings.top_p < 1:
            ids, kept = _keep_nucleus(ids, kept, settings.top_p)
        if settings.min_p > 0:
            # The ratio of probabilities is exp of the difference, without normalisation.
            ids, kept = _keep(ids, kept, kept >= kept.max() + math.log(settings.min_p))
        return SampleCandidates(ids, kept)

    def _few_candidates(
        self, row: NDArray[np.floating[Any]], best: float
    ) -> SampleCandidates | None:
        """Return the result of `_candidates` without converting all of a float32 row.

        Args:
            row: The logits.
            best: The largest.

        Returns:
            None if the row is of another type or short, or rounding could change the result.
        """
        settings = self._settings
        temperature, size = settings.temperature, len(row)
        is_narrow = row.dtype == np.float32 and temperature >= _MIN_TEMPERATURE_32
        if not is_narrow or size <= _FEW:
            return None
        found: SampleCandidates | None
        if 0 < settings.top_k < size:
            worst = torch.from_numpy(row).topk(settings.top_k).values[-1].item()
            found = _scaled(row, np.flatnonzero(row >= worst), temperature)
            if settings.top_p < 1:
                found = _keep_nucleus(*found, settings.top_p)
        elif settings.top_p < 1:
            found = _find_nucleus(row, best, temperature, settings.top_p)
        else:
            likely = _above(row, best + temperature * math.log(settings.min_p))
            found = _scaled(row, likely, temperature)
        if found is None or not settings.min_p:
            return found
        ids, kept = found
        return _keep(ids, kept, kept >= kept.max() + math.log(settings.min_p))

    def log_probabilities(self, scores: Tensor) -> Tensor:
        """The distribution that `draw` samples from. [vocabulary], float64, on the CPU"""
        return torch.log_softmax(self.filtered(scores), dim=-1)


def _as_float64(scores: Tensor) -> FloatArray:
    """Copy a row of logits to the CPU as float64.

    Raises:
        NumericsError: The largest logit is NaN or infinite.
    """
    row: FloatArray = scores.to("cpu", torch.float64, copy=True).numpy()
    check_finite(float(row.max()))
    return row


def _keep(ids: Ids | None, scores: FloatArray, mask: NDArray[np.bool_]) -> SampleCandidates:
    """The candidates where `mask` is true."""
    places = np.flatnonzero(mask)
    return SampleCandidates(places if ids is None else ids[places], scores[places])


def _keep_nucleus(ids: Ids | None, scores: FloatArray, top_p: float) -> SampleCandidates:
    """Keep the smallest set of best tokens whose probability reaches `top_p`.

    Of tokens as likely as the last one that is kept, those with the lowest ids are kept.
    """
    # With numpy, as torch's threads wait for each other, which takes longer if they share cores.
    probabilities: FloatArray = np.exp(scores - scores.max())
    probabilities /= probabilities.sum()
    least, num_kept = _nucleus_end(probabilities, top_p)
    mask = probabilities > least
    ends = np.flatnonzero(probabilities == least)[: num_kept - int(np.count_nonzero(mask))]
    mask[ends] = True
    return _keep(ids, scores, mask)


def _nucleus_end(probabilities: FloatArray, top_p: float) -> tuple[float, int]:
    """The probability of the nucleus' least likely token, and the number of its tokens.

    Tokens are partitioned at the mean until few are undecided; only these are sorted.
    """
    undecided, above, num_above = probabilities, 0.0, 0
    while len(undecided) > _FEW:
        likelier = undecided >= undecided.mean()
        part = undecided[likelier]
        if len(part) in (0, len(undecided)):  # all are equally likely
            break
        mass = float(part.sum())
        if above + mass >= top_p:
            undecided = part
        else:
            above, num_above, undecided = above + mass, num_above + len(part), undecided[~likelier]
    ordered = np.sort(undecided)[::-1]
    before = above + np.cumsum(ordered) - ordered
    num_kept = int(np.count_nonzero(before < top_p))
    return float(ordered[max(0, num_kept - 1)]), num_above + max(1, num_kept)


def _find_nucleus(
    row: NDArray[np.floating[Any]], best: float, temperature: float, top_p: float
) -> SampleCandidates | None:
    """Return the result of `_keep_nucleus` for a float32 row, computed for its best tokens only.

    Args:
        row: The logits.
        best: The largest.
        temperature: Divides them.
        top_p: Probability of the nucleus.

    Returns:
        None if it has tokens far below the best, or the error of the sum could change it.
    """
    whole = float(np.exp((row - row.dtype.type(best)) / row.dtype.type(temperature)).sum())
    wanted = top_p * whole
    ids = _above(row, best - _SPAN * temperature)
    _, kept = _scaled(row, ids, temperature)
    weights = np.exp(kept - kept.max())
    if len(ids) > _FEW or weights.sum() <= wanted * (1 + _ROUNDING_32):
        return None
    ordered = np.sort(weights)[::-1]
    ends = np.cumsum(ordered)
    num_kept = 1 + int(np.count_nonzero(ends < wanted))
    if np.abs(ends[max(0, num_kept - 2) : num_kept] - wanted).min() <= _ROUNDING_32 * wanted:
        return None
    least = ordered[num_kept - 1]
    mask = weights > least
    # Of equally likely tokens those with the lowest ids are kept.
    mask[np.flatnonzero(weights == least)[: num_kept - int(np.count_nonzero(mask))]] = True
    return SampleCandidates(ids[mask], kept[mask])


def _scaled(row: NDArray[np.floating[Any]], ids: Ids, temperature: float) -> SampleCandidates:
    """The log-scores of some tokens after the temperature."""
    return SampleCandidates(ids, row[ids].astype(np.float64) / temperature)


def _above(row: NDArray[np.floating[Any]], bound: float) -> Ids:
    """Tokens with scores of at least a bound, and those that rounding may have put below."""
    return np.flatnonzero(row >= bound - _ROUNDING_32 * (1 + abs(bound)))


def _within_reach(row: NDArray[np.floating[Any]], uniform: FloatArray, temperature: float) -> Ids:
    """Tokens that noise can make the best: even with the largest noise the others are lower."""
    best = int(row.argmax())
    noise = _gumbel(np.array([uniform[best], uniform.max()]))
    return _above(row, float(row[best]) + temperature * (noise[0] - noise[1]))


def _check(settings: GenerateSettings) -> None:
    """Check temperature, top-k, top-p and min-p."""
    if not 0 < settings.temperature <= 100:
        raise RequestError(
            tr("A temperature of {0} makes no sense.", settings.temperature),
            "Choose one between 0.1 and 2, or the greedy rule for none.",
        )
    if not 0 < settings.top_p <= 1:
        raise RequestError(tr("top-p is {0}.", settings.top_p), "Choose one above 0, at most 1.")
    if not 0 <= settings.min_p <= 1:
        raise RequestError(tr("min-p is {0}.", settings.min_p), "Choose one from 0 (off) to 1.")
    if settings.top_k < 0:
        raise RequestError(tr("top-k is {0}.", settings.top_k), "Choose 0 (off) or more.")
