"""Calibration of the heads: whether 70 % of the guesses given a probability of 70 % are right.

Source: Guo et al., "On Calibration of Modern Neural Networks" (2017), sections 2 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.heads.reader import read_head_set
from medusa_core.heads.weights import HeadSet
from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from medusa_core.system.prompts import BenchPrompt
from medusa_core.training.heads import projection_matrix
from medusa_core.training.positions import Positions, collect
from recipe.evaluate import first_turns
from recipe.export import load_exported
from recipe.recipe import END
from recipe.self_answers import GenerationOptions, generate_answers
from recipe.tokenizer import special_id

MAX_NEW_TOKENS = 160
NUM_BINS = 10


@dataclass(frozen=True, slots=True)
class Reliability:
    """Calibration of one head's first guesses.

    Attributes:
        error: expected calibration error: |probability − share that came|, mean over guesses.
        probability: mean probability of the first guesses.
        accuracy: share of them that came.
        bins: for each tenth of probability: mean probability, share that came, number.
    """

    error: float
    probability: float
    accuracy: float
    bins: tuple[tuple[float, float, int], ...]


@torch.inference_mode()
def reliabilities(heads: HeadSet, matrix: Tensor, data: Positions) -> list[Reliability]:
    """One per head.

    Args:
        heads: as they are published.
        matrix: the target's vectors of input and output, [V, H].
        data: positions of own answers.
    """
    found = []
    for number, head in enumerate(heads.heads):
        known = data.targets[:, number] >= 0
        hidden = read = data.hidden[known].float()
        if heads.reads_root:
            read = torch.cat([hidden, matrix[data.roots[known]].float()], dim=-1)
        for weight, bias in head.layers:
            offset = None if bias is None else bias.float()
            hidden = hidden + F.silu(F.linear(read, weight.float(), offset))
            read = hidden
        shared = matrix if heads.projection is None else heads.projection
        projection = shared if head.projection is None else head.projection
        best = F.linear(hidden, projection.float()).softmax(-1).max(-1)
        token_ids = best.indices if heads.token_map is None else heads.token_map[best.indices]
        found.append(reliability(best.values, token_ids == data.targets[known, number]))
    return found


def reliabilities_on(
    model_dir: Path, heads_dir: Path, prompts: Sequence[BenchPrompt]
) -> list[Reliability]:
    """Reliabilities over the model's own greedy answers to some prompts.

    Args:
        model_dir: the model.
        heads_dir: the heads.
        prompts: their first turns are asked.
    """
    heads, _ = read_head_set(heads_dir, None)
    network, tokenizer = load_exported(model_dir)
    room = network.size.max_positions - MAX_NEW_TOKENS
    fitting = [ids for ids in first_turns(tokenizer, prompts) if len(ids) <= room]
    options = GenerationOptions(MAX_NEW_TOKENS, special_id(END))
    answers = generate_answers(network, fitting, options)
    target = load_target(model_dir, options=LoadOptions("float32"))
    data = collect(target, [answer.document for answer in answers], len(heads.heads))
    return reliabilities(heads, projection_matrix(target), data)


def reliability(probabilities: Tensor, came: Tensor) -> Reliability:
    """Sort guesses by probability and count.

    Args:
        probabilities: of each guess, [N].
        came: whether it was right, [N].
    """
    places = (probabilities * NUM_BINS).long().clamp(max=NUM_BINS - 1)
    counts = torch.bincount(places, minlength=NUM_BINS)
    filled = counts.clamp(min=1)
    means = torch.bincount(places, probabilities.double(), NUM_BINS) / filled
    shares = torch.bincount(places, came.double(), NUM_BINS) / filled
    error = ((means - shares).abs() * counts).sum() / max(1, len(came))
    bins = zip(means.tolist(), shares.tolist(), counts.tolist(), strict=True)
    return Reliability(
        float(error), float(probabilities.mean()), float(came.double().mean()), tuple(bins)
    )
