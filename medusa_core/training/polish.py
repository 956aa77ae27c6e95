"""Last stage of the weights: the model learns not to repeat itself, from its own repetitions.

Source: Welleck et al., "Neural Text Generation with Unlikelihood Training" (2019), section 5.2
(sequence level).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from medusa_core.training.loop import weighted_loss
from medusa_core.training.network import PebbleNetwork
from medusa_core.training.optimizer import Optimizers
from medusa_core.training.packing import Batch, PackedRows, batch_at, document_mask
from medusa_core.training.recipe import PolishRecipe, Recipe
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
    """One round: the recipe, the seed of its batches, and the token before a sum's result."""

    recipe: Recipe
    seed: int
    equals_id: int


def repetitions(answers: Sequence[Answer], gram: int) -> list[Repetition]:
    """Answers that repeat runs of `gram` tokens, with the tokens that complete a repeated run."""
    found = []
    for answer in answers:
        start = len(answer.prompt_ids)
        seen: set[tuple[int, ...]] = set()
        places = []
        for stop in range(gram, len(answer.answer_ids) + 1):
            run = answer.answer_ids[stop - gram : stop]
            if run in seen:
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
        hidden = network.hidden_states(ids[:, :-1], document_mask(numbers[:, :-1]))
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
    rows: PackedRows,
    sums: PackedRows,
    found: Sequence[Repetition],
    run: PolishRun,
) -> None:
    """Train a few steps on chat rows and sums and, at each step, against some repetitions.

    Args:
        network: chat-tuned weights, changed in place.
        rows: rows of chat tuning.
        sums: rows of small sums.
        found: repetitions of the model itself.
        run: numbers; the learning rate falls to 0.
    """
    numbers: PolishRecipe = run.recipe.polish
    optimizers = Optimizers(network, numbers.schedule)
    rng = np.random.default_rng(run.seed)
    reported_s = time.monotonic()
    for step in range(numbers.schedule.num_steps):
        batch = batch_at(rows, step, numbers.schedule.num_rows, 0.0, run.seed)
        loss = weighted_loss(network, batch, bf16=True)
        loss.backward()  # type: ignore[no-untyped-call]
        by_heart = batch_at(sums, step, numbers.num_sum_rows, 0.0, run.seed)
        results = weighted_loss(network, only_results(by_heart, run.equals_id), bf16=True)
        (results * numbers.sum_weight).backward()  # type: ignore[no-untyped-call]
        against = torch.zeros(())
        if found:
            size = min(len(found), numbers.num_repetitions)
            picked = rng.choice(len(found), size=size, replace=False)
            against = unlikelihood(network, [found[i] for i in picked], bf16=True)
            (against * numbers.weight).backward()  # type: ignore[no-untyped-call]
        optimizers.step(step)
        if time.monotonic() - reported_s > REPORT_EVERY_S or step + 1 == numbers.schedule.num_steps:
            reported_s = time.monotonic()
            log.info(
                "polish: step %d/%d, loss %.3f, results %.3f, unlikelihood %.3f",
                step + 1,
                numbers.schedule.num_steps,
                float(loss.detach()),
                float(results.detach()),
                float(against.detach()),
            )
