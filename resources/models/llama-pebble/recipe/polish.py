"""Last stage of the weights: from its own answers the model learns to end and not to go in circles.

Source: Welleck et al., "Neural Text Generation with Unlikelihood Training" (2019), section 5.2
(sequence level).
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from medusa_core.training.loop import REPORT_EVERY_S
from medusa_core.training.optimizer import Optimizers
from recipe.attention import document_runs
from recipe.flaws import Flaw
from recipe.network import PebbleNetwork
from recipe.packing import Batch, PackedRows, batch_at
from recipe.recipe import PolishRecipe
from recipe.stages import weighted_loss

log = logging.getLogger(__name__)


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
    return replace(batch, weights=batch.weights * near)


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
