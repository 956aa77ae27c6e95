"""Phrase tables: n-gram statistics of a model's answers to many prompts.

The probability of a token after a context is its relative frequency, interpolated with its
probability after the context without the oldest token: the rarer a context and the more diverse its
followers, the more weight for the shorter context (Witten and Bell, "The zero-frequency problem",
1991, method C). Contexts that add nothing to the shorter one are left out.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medusa_core.errors import TrainingError
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, Role
from medusa_core.models.datastore.phrases import (
    Follower,
    PhraseTable,
    make_table,
)
from medusa_core.runtime.tree.tables import (
    Accuracies,
    temperature_bucket,
)
from medusa_core.speculation.tuning.calibration import measure_costs
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.threads import choose_threads
from medusa_core.system.prompts import BenchPrompt
from medusa_core.training.answers import own_answers, questions_at

log = logging.getLogger(__name__)

NUM_HELD_OUT = 300
_DEPTHS = 6


@dataclass(frozen=True, slots=True)
class PhraseRecipe:
    """Settings of a phrase table.

    Attributes:
        num_answers: Answers to count.
        temperatures: Sampling temperatures at which accuracy is measured, besides greedy answers.
        max_new_tokens: Maximum length of an answer.
        longest: Tokens of the longest context.
        least_count: Minimum occurrences of a follower.
        most_followers: Maximum followers per context.
        least_chance: Minimum probability of a follower.
        least_news: Minimum summed difference to the shorter context's probabilities.
        most_contexts: Maximum number of contexts, the most frequent ones; 0 for all.
        most_mixed: Followers of a shorter context that are interpolated into longer ones; 0 for
            all, which takes unbounded memory in texts of any kind.
    """

    num_answers: int = 48_000
    temperatures: tuple[float, ...] = (0.7, 1.0)
    max_new_tokens: int = 300
    longest: int = 8
    least_count: int = 2
    most_followers: int = 4
    least_chance: float = 0.03
    least_news: float = 0.5
    most_contexts: int = 0
    most_mixed: int = 0


class OwnText(NamedTuple):
    """An answer and the tokens before it.

    Attributes:
        token_ids: Last tokens of the prompt, then the answer's.
        start: Index of the answer's first token.
    """

    token_ids: tuple[int, ...]
    start: int


def first_questions(prompts: Iterable[BenchPrompt]) -> list[tuple[ChatMessage, ...]]:
    """Return conversations of each prompt's first question alone."""
    return [(ChatMessage(Role.USER, prompt.turns[0]),) for prompt in prompts]


def own_texts(
    target: Target,
    prompts: Sequence[Sequence[ChatMessage]],
    numbers: PhraseRecipe,
    row_policy: RowPolicy,
    temperature: float = 0.0,
) -> Iterator[OwnText]:
    """Generate the model's answers; return them with the tokens before them."""
    questions = questions_at(prompts, temperature)
    for answer in own_answers(target, questions, numbers.max_new_tokens, row_policy):
        prompt_ids = answer.prompt_ids[-numbers.longest :]
        yield OwnText((*prompt_ids, *answer.answer_ids), len(prompt_ids))


def make_phrases(
    target: Target, prompts: Sequence[Sequence[ChatMessage]], numbers: PhraseRecipe
) -> PhraseTable:
    """Return a table of a model's answers, with its accuracy on held-out answers.

    Raises:
        TrainingError: There are too few answers.
    """
    num_held_out = min(NUM_HELD_OUT, len(prompts) // 10)
    choose_threads(target, os.cpu_count() or 1)
    row_policy = RowPolicy(target, measure_costs(target))
    texts = list(own_texts(target, prompts[num_held_out:], numbers, row_policy))
    if num_held_out == 0 or not texts:
        raise TrainingError(
            f"A phrase table can't be counted in {len(texts)} answers.", "Name more prompts."
        )
    phrases = count_phrases(texts, numbers)
    for temperature in (0.0, *numbers.temperatures):
        held_out = own_texts(target, prompts[:num_held_out], numbers, row_policy, temperature)
        bucket = temperature_bucket(temperature) if temperature else 0.0
        phrases.accuracies[bucket] = rank_shares(phrases, held_out)
    log.info("%d contexts, %d followers", len(phrases), len(phrases.tokens))
    for bucket, rows in phrases.accuracies.items():
        for depth, row in enumerate(rows, start=1):
            shares = " ".join(f"{share:.3f}" for share in row)
            log.info("at %.1f, %d ahead: %s", bucket, depth, shares)
    return phrases


# Probabilities of all known followers, by the key of the context.
_Chances = dict[int, dict[int, float]]


def count_phrases(texts: Sequence[OwnText], numbers: PhraseRecipe) -> PhraseTable:
    """Return a table of frequent phrases in texts.

    Raises:
        TrainingError: Nothing is frequent enough.
    """
    kept: dict[int, Sequence[Follower]] = {}
    totals: dict[int, int] = {}
    shorter: _Chances = {}
    for size in range(1, numbers.longest + 1):
        chances: _Chances = {}
        for context in _contexts(texts, size, numbers.least_count):
            before = shorter.get(context.shorter, {})
            mixed = _mixed(context, before)
            chances[context.key] = _bounded(mixed, numbers.most_mixed)
            news = sum(abs(chance - before.get(token, 0.0)) for token, chance in mixed.items())
            if size == 1 or news >= numbers.least_news:
                kept[context.key] = _likeliest(mixed, numbers)
                totals[context.key] = context.total
        shorter = chances
    kept = {key: followers for key, followers in kept.items() if followers}
    if not kept:
        raise TrainingError("Nothing is said twice in these texts.", "Name more of them.")
    if 0 < numbers.most_contexts < len(kept):
        often = sorted(kept, key=lambda key: (-totals[key], key))[: numbers.most_contexts]
        kept = {key: kept[key] for key in often}
    return make_table(kept, numbers.longest)


def _bounded(chances: dict[int, float], num_followers: int) -> dict[int, float]:
    """Keep the `num_followers` likeliest followers; 0 keeps all."""
    if not 0 < num_followers < len(chances):
        return chances
    return dict(nsmallest(num_followers, chances.items(), key=lambda item: (-item[1], item[0])))


def _likeliest(chances: dict[int, float], numbers: PhraseRecipe) -> list[Follower]:
    """Return the followers to store: the likeliest above the recipe's threshold."""
    ordered = sorted(chances.items(), key=lambda item: (-item[1], item[0]))
    return [
        Follower(token_id, chance)
        for token_id, chance in ordered[: numbers.most_followers]
        if chance >= numbers.least_chance
    ]


class _Context(NamedTuple):
    """Counted followers of one n-gram context.

    Attributes:
        key: Key of the context.
        shorter: Key without its oldest token; 0 for a single token.
        total: Occurrences.
        kinds: Number of distinct followers.
        counts: Occurrences of the frequent followers.
    """

    key: int
    shorter: int
    total: int
    kinds: int
    counts: dict[int, int]


def _mixed(context: _Context, shorter: dict[int, float]) -> dict[int, float]:
    """Return the probabilities after a context, interpolated with the shorter context's."""
    share = context.total / (context.total + context.kinds)
    mixed = {token_id: (1 - share) * chance for token_id, chance in shorter.items()}
    for token_id, count in context.counts.items():
        mixed[token_id] = mixed.get(token_id, 0.0) + share * count / context.total
    return mixed


def _contexts(texts: Sequence[OwnText], size: int, least_count: int) -> Iterator[_Context]:
    """Return the contexts of `size` tokens within answers that have a frequent next token."""
    keys, shorter, tokens = _windows(texts, size)
    pairs = keys.astype(np.uint64) << np.uint64(32) | tokens.astype(np.uint64)
    pairs, places, counts = np.unique(pairs, return_index=True, return_counts=True)
    owners = (pairs >> np.uint64(32)).astype(np.uint32)
    if not len(owners):  # larger than any text
        return
    bounds = np.append(np.flatnonzero(np.r_[True, owners[1:] != owners[:-1]]), len(owners))
    totals = np.add.reduceat(counts, bounds[:-1])
    for start, end, total in zip(bounds[:-1], bounds[1:], totals, strict=True):
        often = counts[start:end] >= least_count
        if often.any():
            yield _Context(
                int(owners[start]),
                int(shorter[places[start]]),
                int(total),
                int(end - start),
                dict(
                    zip(
                        tokens[places[start:end][often]].tolist(),
                        counts[start:end][often].tolist(),
                        strict=True,
                    )
                ),
            )


class _Windows(NamedTuple):
    """All occurrences of contexts of one length: keys, shorter keys, and followers."""

    keys: NDArray[np.uint32]
    shorter: NDArray[np.uint32]
    tokens: NDArray[np.uint32]


def _windows(texts: Sequence[OwnText], size: int) -> _Windows:
    """Return the windows of `size` tokens before each answer token, with hashed keys."""
    columns: list[_Windows] = []
    for text in texts:
        ids = np.array(text.token_ids, dtype=np.uint32)
        first = max(text.start, size)  # followers
        ends = np.arange(first, len(ids))
        key = np.zeros(len(ends), dtype=np.uint32)
        before = key
        for back in range(1, size + 1):
            before, key = key, _next_keys(key, ids[ends - back])
        columns.append(_Windows(key, before, ids[ends]))
    return _Windows(*(np.concatenate(column) for column in zip(*columns, strict=True)))


def _next_keys(keys: NDArray[np.uint32], tokens: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Extend hash keys of contexts by one more token before them; vectorised `next_key`."""
    mixed = keys * np.uint32(0x9E3779B1) + tokens + np.uint32(1)
    mixed = (mixed ^ mixed >> np.uint32(16)) * np.uint32(0x7FEB352D)
    mixed = (mixed ^ mixed >> np.uint32(15)) * np.uint32(0x846CA68B)
    return mixed ^ mixed >> np.uint32(16)


def rank_shares(phrases: PhraseTable, texts: Iterable[OwnText], num_ranks: int = 4) -> Accuracies:
    """Return the accuracy of each rank at each depth, given that the ones before were right."""
    right = [[0] * num_ranks for _ in range(_DEPTHS)]
    tried = [0] * _DEPTHS
    for token_ids, start in texts:
        ranks = [
            _rank(phrases, token_ids[:end], token_ids[end]) for end in range(start, len(token_ids))
        ]
        for place in range(len(ranks)):
            for depth, rank in enumerate(ranks[place : place + _DEPTHS]):
                tried[depth] += 1
                if not 0 <= rank < num_ranks:
                    break
                right[depth][rank] += 1
    return tuple(
        tuple(round(count / max(1, number), 4) for count in row)
        for row, number in zip(right, tried, strict=True)
    )


def _rank(phrases: PhraseTable, context: Sequence[int], token_id: int) -> int:
    """Return the rank of a token among the followers; −1 if it isn't one."""
    found = [
        follower.token_id for follower in phrases.followers(reversed(context[-phrases.longest :]))
    ]
    return found.index(token_id) if token_id in found else -1
