"""Last stage of the weights: from its own answers the model learns to end and not to go in circles.

Source: Welleck et al., "Neural Text Generation with Unlikelihood Training" (2019), section 5.2
(sequence level).
"""

from __future__ import annotations

import logging
import math
import random
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from medusa_core.training.loop import weighted_loss
from medusa_core.training.network import PebbleNetwork
from medusa_core.training.optimizer import Optimizers
from medusa_core.training.packing import Batch, PackedRows, batch_at, document_runs
from medusa_core.training.recipe import PolishRecipe
from medusa_core.training.self_answers import Answer

log = logging.getLogger(__name__)

REPORT_EVERY_S = 10.0
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


@dataclass(frozen=True, slots=True)
class PolishRun:
    """One round.

    Attributes:
        numbers: the polish that it belongs to.
        number: of the round, from 0.
        seed: of the choices.
        equals_id: the token before a sum's result.
        end_id: the token that ends an answer.
        bf16: whether to compute in bfloat16.
    """

    numbers: PolishRecipe
    number: int
    seed: int
    equals_id: int
    end_id: int
    bf16: bool

    @property
    def steps(self) -> range:
        """Its steps, counted through all rounds."""
        num_steps, num_rounds = self.numbers.schedule.num_steps, self.numbers.num_rounds
        return range(
            num_steps * self.number // num_rounds, num_steps * (self.number + 1) // num_rounds
        )


def flaws(
    answers: Sequence[Answer], gram: int, times: int, pieces: Pieces, rng: random.Random
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


class Against(NamedTuple):
    """What is wrong with some answers, in nats; scalars with gradient.

    Attributes:
        repetition: mean of -log(1 - p) over the repeated tokens.
        no_end: mean of -log p of the ends that are missing, those that are likely enough left out.
    """

    repetition: Tensor
    no_end: Tensor


def against(
    network: PebbleNetwork, group: Sequence[Flaw], end_id: int, end_probability: float, bf16: bool
) -> Against:
    """The losses of some flawed answers.

    Args:
        network: the model.
        group: the answers.
        end_id: the token that ends an answer.
        end_probability: from which on an end is likely enough.
        bf16: whether to compute in bfloat16.
    """
    width = max(len(row.ids) for row in group) + 1
    ids = torch.zeros(len(group), width, dtype=torch.int64)
    numbers = torch.full((len(group), width), -1, dtype=torch.int16)
    repeated = torch.zeros(len(group), width, dtype=torch.bool)
    ends = torch.zeros(len(group), width, dtype=torch.bool)
    for index, row in enumerate(group):
        ids[index, : len(row.ids)] = torch.tensor(row.ids)
        numbers[index, : len(row.ids)] = 0
        repeated[index, list(row.repeated)] = True
        if row.end is not None:
            ends[index, row.end] = True
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        hidden = network.hidden_states(ids[:, :-1], document_runs(numbers[:, :-1]))
        looping = network.logits(hidden[repeated[:, 1:]]).float()
        ending = network.logits(hidden[ends[:, 1:]]).float()
    probs = looping.softmax(-1).gather(1, ids[repeated][:, None])
    repetition = -torch.log1p(-probs.clamp(max=0.999)).sum() / max(1, len(probs))
    chances = ending.log_softmax(-1)[:, end_id]
    missing = chances.detach() < math.log(max(end_probability, 1e-30))
    return Against(repetition, -(chances * missing).sum() / max(1, len(chances)))


def only_results(batch: Batch, equals_id: int) -> Batch:
    """The same batch with loss on the result of each sum alone (up to two digits and the end)."""
    equals = batch.input_ids == equals_id
    near = equals.clone()
    for distance in range(1, 4):
        near[:, distance:] |= equals[:, :-distance]
    return Batch(batch.input_ids, batch.target_ids, batch.weights * near, batch.document_ids)


class PolishRows(NamedTuple):
    """Rows of a polish.

    Attributes:
        tune: chat rows as in chat tuning.
        short: chat rows with answers of the length that is wanted.
        sums: small sums.
    """

    tune: PackedRows
    short: PackedRows
    sums: PackedRows


def polish(
    network: PebbleNetwork,
    optimizers: Optimizers,
    rows: PolishRows,
    found: Sequence[Flaw],
    run: PolishRun,
) -> None:
    """Train one round on chat rows and sums and, at each step, against some flawed answers.

    Args:
        network: changed in place.
        optimizers: of the network, with the polish's schedule; its rates fall through all rounds.
        rows: to train on.
        found: flawed answers of the model itself.
        run: which round.
    """
    numbers = run.numbers
    rng = np.random.default_rng([run.seed, run.number])
    reported_s = time.monotonic()
    for step in run.steps:
        loss = _chat_loss(network, rows, step, run)
        by_heart = batch_at(rows.sums, step, numbers.num_sum_rows, 0.0, run.seed)
        results = weighted_loss(network, only_results(by_heart, run.equals_id), bf16=run.bf16)
        (results * numbers.sum_weight).backward()  # type: ignore[no-untyped-call]
        lost = Against(torch.zeros(()), torch.zeros(()))
        if found:
            size = min(len(found), numbers.num_flawed)
            picked = [found[i] for i in rng.choice(len(found), size=size, replace=False)]
            lost = against(network, picked, run.end_id, numbers.end_probability, bf16=run.bf16)
            total = lost.repetition * numbers.repetition_weight + lost.no_end * numbers.end_weight
            total.backward()  # type: ignore[no-untyped-call]
        optimizers.step(step)
        if time.monotonic() - reported_s > REPORT_EVERY_S or step == run.steps[-1]:
            reported_s = time.monotonic()
            log.info(
                "polish: step %d/%d, loss %.3f, results %.3f, repetition %.3f, no end %.3f",
                step + 1,
                numbers.schedule.num_steps,
                loss,
                *(float(part.detach()) for part in (results, *lost)),
            )


def _chat_loss(network: PebbleNetwork, rows: PolishRows, step: int, run: PolishRun) -> float:
    """Mean loss on chat rows, its gradient added."""
    numbers = run.numbers
    counts = (numbers.num_tune_rows, numbers.schedule.num_rows)
    mean = 0.0
    for packed, count in zip((rows.tune, rows.short), counts, strict=True):
        if count:
            batch = batch_at(packed, step, count, 0.0, run.seed)
            loss = weighted_loss(network, batch, bf16=run.bf16) * (count / sum(counts))
            loss.backward()  # type: ignore[no-untyped-call]
            mean += float(loss.detach())
    return mean
