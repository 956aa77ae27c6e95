"""Last stage of the weights: the model learns not to repeat itself, from its own repetitions.

Source: Welleck et al., "Neural Text Generation with Unlikelihood Training" (2019), section 5.2
(sequence level).
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from medusa_core.training.loop import weighted_loss
from medusa_core.training.network import PebbleNetwork
from medusa_core.training.optimizer import Optimizers
from medusa_core.training.packing import Batch, PackedRows, batch_at, document_runs
from medusa_core.training.recipe import Recipe
from medusa_core.training.self_answers import Answer

log = logging.getLogger(__name__)

REPORT_EVERY_S = 10.0


@dataclass(frozen=True, slots=True)
class Repetition:
    """One own answer with the places at which it repeats itself.

    Attributes:
        ids: prompt and answer.
        places: indices into `ids` of tokens that complete a run seen before in the answer.
    """

    ids: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PolishRun:
    """One round.

    Attributes:
        recipe: numbers.
        number: of the round, from 0.
        equals_id: the token before a sum's result.
    """

    recipe: Recipe
    number: int
    equals_id: int

    @property
    def steps(self) -> range:
        """Its steps, counted through all rounds."""
        polish = self.recipe.polish
        num_steps, num_rounds = polish.schedule.num_steps, polish.num_rounds
        return range(
            num_steps * self.number // num_rounds, num_steps * (self.number + 1) // num_rounds
        )


def repetitions(
    answers: Sequence[Answer], gram: int, times: int, begins_word: Sequence[bool]
) -> list[Repetition]:
    """Answers that go round in circles, with the tokens to unlearn.

    Args:
        answers: own answers.
        gram: tokens of a run.
        times: how often a run must occur to count: names and phrases of a story come twice.
        begins_word: by token id. Only such tokens are unlearned: what follows the beginning of a
            word belongs to it, and a model that unlearns it can't spell.

    Returns:
        One for each answer that has such tokens: those that complete such a run for the second
        time or later.
    """
    found = []
    for answer in answers:
        start = len(answer.prompt_ids)
        ends = range(gram, len(answer.answer_ids) + 1)
        runs = [answer.answer_ids[stop - gram : stop] for stop in ends]
        counts = Counter(runs)
        seen: set[tuple[int, ...]] = set()
        places = []
        for stop, run in zip(ends, runs, strict=True):
            if run in seen and counts[run] >= times and begins_word[run[-1]]:
                places.append(start + stop - 1)
            seen.add(run)
        if places:
            found.append(Repetition(answer.prompt_ids + answer.answer_ids, tuple(places)))
    return found


def unlikelihood(network: PebbleNetwork, group: Sequence[Repetition], bf16: bool) -> Tensor:
    """Mean of -log(1 - p) over the repeated tokens; a scalar with gradient."""
    width = max(len(row.ids) for row in group)
    ids = torch.zeros(len(group), width, dtype=torch.int64)
    numbers = torch.full((len(group), width), -1, dtype=torch.int16)
    repeated = torch.zeros(len(group), width, dtype=torch.bool)
    for index, row in enumerate(group):
        ids[index, : len(row.ids)] = torch.tensor(row.ids)
        numbers[index, : len(row.ids)] = 0
        repeated[index, list(row.places)] = True
    chosen = repeated[:, 1:]
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        hidden = network.hidden_states(ids[:, :-1], document_runs(numbers[:, :-1]))
        logits = network.logits(hidden[chosen])
    probs = logits.float().softmax(-1).gather(1, ids[:, 1:][chosen][:, None])
    return -torch.log1p(-probs.clamp(max=0.999)).mean()


def only_results(batch: Batch, equals_id: int) -> Batch:
    """The same batch with loss on the result of each sum alone (up to two digits and the end)."""
    equals = batch.input_ids == equals_id
    near = equals.clone()
    for distance in range(1, 4):
        near[:, distance:] |= equals[:, :-distance]
    return Batch(batch.input_ids, batch.target_ids, batch.weights * near, batch.document_ids)


def polish(
    network: PebbleNetwork,
    optimizers: Optimizers,
    rows: PackedRows,
    sums: PackedRows,
    found: Sequence[Repetition],
    run: PolishRun,
) -> None:
    """Train one round on chat rows and sums and, at each step, against some repetitions.

    Args:
        network: changed in place.
        optimizers: of the network, with the polish's schedule; its rates fall through all rounds.
        rows: chat rows of the polish.
        sums: rows of small sums.
        found: repetitions of the model itself.
        run: which round.
    """
    numbers = run.recipe.polish
    seed = run.recipe.seed
    rng = np.random.default_rng([seed, run.number])
    reported_s = time.monotonic()
    for step in run.steps:
        batch = batch_at(rows, step, numbers.schedule.num_rows, 0.0, seed)
        loss = weighted_loss(network, batch, bf16=True)
        loss.backward()  # type: ignore[no-untyped-call]
        by_heart = batch_at(sums, step, numbers.num_sum_rows, 0.0, seed)
        results = weighted_loss(network, only_results(by_heart, run.equals_id), bf16=True)
        (results * numbers.sum_weight).backward()  # type: ignore[no-untyped-call]
        against = torch.zeros(())
        if found:
            size = min(len(found), numbers.num_repetitions)
            picked = rng.choice(len(found), size=size, replace=False)
            against = unlikelihood(network, [found[i] for i in picked], bf16=True)
            (against * numbers.weight).backward()  # type: ignore[no-untyped-call]
        optimizers.step(step)
        if time.monotonic() - reported_s > REPORT_EVERY_S or step == run.steps[-1]:
            reported_s = time.monotonic()
            log.info(
                "polish: step %d/%d, loss %.3f, results %.3f, unlikelihood %.3f",
                step + 1,
                numbers.schedule.num_steps,
                float(loss.detach()),
                float(results.detach()),
                float(against.detach()),
            )
