"""What is wrong with the model's own answers: they go round in circles, or don't end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from medusa_core.training.answers import OwnAnswer

FEWEST_TOKENS = 8  # of an answer before it may end


@dataclass(frozen=True, slots=True)
class Flaw:
    """One own answer that goes round in circles, or doesn't come to an end.

    Attributes:
        ids: prompt and answer.
        repeated: indices into `ids` of tokens that complete a run seen before in the answer.
        end: index into `ids` of the token in whose place the answer should have ended; None where
            it needn't.
    """

    ids: tuple[int, ...]
    repeated: tuple[int, ...]
    end: int | None


@dataclass(frozen=True, slots=True)
class Pieces:
    """What tokens are, by their id.

    Attributes:
        begins_word: whether a new word, number, mark or line begins with it.
        ends_sentence: whether a sentence or a line ends with it.
    """

    begins_word: Sequence[bool]
    ends_sentence: Sequence[bool]


def flaws(
    answers: Sequence[OwnAnswer], gram: int, times: int, pieces: Pieces, rng: random.Random
) -> list[Flaw]:
    """Answers that go round in circles or don't end, with what is wrong with them.

    An answer should have ended before it began to repeat itself; one that goes on without
    repeating itself, somewhere in its second half.

    Args:
        answers: own answers.
        gram: tokens of a run.
        times: how often a run must occur to count: names and phrases of a story come twice.
        pieces: of the vocabulary. Only tokens that begin a word are unlearned: what follows the
            beginning of a word belongs to it, and a model that unlearns it can't spell.
        rng: where endless answers should end.
    """
    found = []
    for answer in answers:
        ids, start = answer.answer_ids, len(answer.prompt_ids)
        places = _repeated(ids, gram, times)
        latest = len(ids)
        if places:
            latest = places[0] - gram + 2  # the repeated run may begin with a full stop
        elif not answer.finished:
            latest = rng.randint(len(ids) // 2, len(ids))
        end = _last_end(ids[:latest], pieces) if places or not answer.finished else None
        unlearnt = tuple(start + place for place in places if pieces.begins_word[ids[place]])
        if unlearnt or end is not None:
            whole = answer.prompt_ids + ids
            found.append(Flaw(whole, unlearnt, None if end is None else start + end))
    return found


def _repeated(ids: Sequence[int], gram: int, times: int) -> list[int]:
    """Places that complete a run which came before and comes `times` times in all."""
    ends = range(gram, len(ids) + 1)
    runs = [tuple(ids[stop - gram : stop]) for stop in ends]
    counts = Counter(runs)
    seen: set[tuple[int, ...]] = set()
    places = []
    for stop, run in zip(ends, runs, strict=True):
        if run in seen and counts[run] >= times:
            places.append(stop - 1)
        seen.add(run)
    return places


def _last_end(ids: Sequence[int], pieces: Pieces) -> int | None:
    """Where the last whole sentence of these tokens ends; None before the first few."""
    places = range(len(ids), FEWEST_TOKENS, -1)
    return next((place for place in places if pieces.ends_sentence[ids[place - 1]]), None)
