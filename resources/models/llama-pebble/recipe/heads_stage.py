"""The heads' stage: own answers, heads on them, accuracies on held-out ones, trees."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from medusa_core.heads.writer import write_heads
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions
from medusa_core.training.accuracy import true_ranks
from medusa_core.training.answers import OwnAnswer
from medusa_core.training.heads import HeadsModule, MedusaSizes, heads_loss, projection_matrix
from medusa_core.training.heads_run import frequent_tokens
from medusa_core.training.loop import LoopOptions, train
from medusa_core.training.optimizer import cosine_rate
from medusa_core.training.positions import Positions, collect
from medusa_core.training.precision import trains_in_bf16
from medusa_core.training.trees import write_trees
from recipe.asked import tuning_prompts
from recipe.export import load_exported
from recipe.muon import heads_optimizers
from recipe.network import PebbleNetwork
from recipe.packing import PackedRows
from recipe.prepare import load_tokenizer
from recipe.recipe import END, HeadRecipe, Recipe
from recipe.self_answers import GenerationOptions, generate_answers
from recipe.tokenizer import special_id

log = logging.getLogger(__name__)

NUM_HELD_OUT = 300


def make_heads(recipe: Recipe, run_dir: Path, model_dir: Path, folder: Path) -> None:
    """Train the heads and write them with their trees.

    Args:
        recipe: numbers.
        run_dir: holds the packed rows of chat tuning; keeps the answers and the checkpoint.
        model_dir: the finished model: what ships is what heads serve.
        folder: receives heads and trees.
    """
    numbers = recipe.heads
    answers = own_answers(load_exported(model_dir)[0], recipe, run_dir)
    target = load_target(model_dir, options=LoadOptions("float32"))

    def positions(some: Sequence[OwnAnswer]) -> Positions:
        return collect(target, [answer.document for answer in some], numbers.form.num_heads)

    training = [answer for made in answers.values() for answer in made[NUM_HELD_OUT:]]
    data = positions(training)
    heads = new_heads(target, numbers.form, data)
    train_heads(heads, data, numbers, recipe.seed, run_dir / "heads.pt")
    token_ids = frequent_tokens(training, numbers.num_columns) if numbers.num_columns else None
    num_ranks = numbers.trees.num_ranks
    ranks = {
        temperature: true_ranks(
            heads, positions(made[:NUM_HELD_OUT]), num_ranks, token_ids, temperature
        )
        for temperature, made in answers.items()
    }
    name = numbers.form.format_name(has_all_tokens=token_ids is None)
    write_heads(heads.weights(token_ids), name, folder, model_dir.name)
    write_trees(folder, ranks, numbers.trees)


def new_heads(target: Target, form: MedusaSizes, positions: Positions) -> HeadsModule:
    """Heads that have yet to learn anything, where the target is.

    Args:
        target: lends its projection and its token vectors.
        form: of the heads.
        positions: of the training; roots are made as large as their states.
    """
    vectors = target.shared_weights.embedding.matrix()
    scale = float(_size(positions.hidden) / _size(vectors)) if form.reads_root else 1.0
    return HeadsModule(form, projection_matrix(target), vectors, scale).to(target.precision.device)


def _size(vectors: Tensor) -> Tensor:
    """Root of the mean square."""
    return vectors.float().pow(2).mean().sqrt()


def train_heads(
    heads: HeadsModule, data: Positions, numbers: HeadRecipe, seed: int, checkpoint: Path
) -> None:
    """Train all heads at once: Muon for matrices, AdamW for the rest."""
    log.info("%d positions for the heads", len(data))
    num_steps = max(1, len(data) // numbers.batch_size) * numbers.num_epochs
    optimizers = heads_optimizers(heads, numbers, cosine_rate(num_steps))
    bf16 = trains_in_bf16("cpu")

    def loss_at(step: int) -> Tensor:
        return heads_loss(heads, data.batch(step, numbers.batch_size, seed), bf16)

    train(heads, optimizers, loss_at, LoopOptions(checkpoint, num_steps, numbers.batch_size))


def own_answers(
    network: PebbleNetwork, recipe: Recipe, run_dir: Path
) -> dict[float, list[OwnAnswer]]:
    """By temperature, answers to prompts of the tuning rows; the first of each are held out."""
    path = run_dir / "answers.pt"
    if path.is_file():
        kept = torch.load(path, weights_only=True)
        return {
            temperature: [OwnAnswer(tuple(p), tuple(a), bool(f), int(s)) for p, a, f, s in made]
            for temperature, made in kept.items()
        }
    numbers = recipe.heads.num_answers
    num_prompts = sum(numbers.values()) + NUM_HELD_OUT * len(numbers)
    rows = PackedRows.load(run_dir / "tune.npz")
    prompts = tuning_prompts(rows, num_prompts, recipe, recipe.seed, load_tokenizer(run_dir))
    answers = {}
    for temperature, number in numbers.items():
        questions, prompts = prompts[: number + NUM_HELD_OUT], prompts[number + NUM_HELD_OUT :]
        options = GenerationOptions(
            recipe.heads.max_new_tokens, special_id(END), temperature, seed=recipe.seed
        )
        answers[temperature] = generate_answers(network, questions, options)
    torch.save(
        {
            temperature: [
                (list(a.prompt_ids), list(a.answer_ids), a.finished, a.seed) for a in made
            ]
            for temperature, made in answers.items()
        },
        path,
    )
    return answers
