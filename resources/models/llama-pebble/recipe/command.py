"""What the commands of the recipe do."""

from __future__ import annotations

import argparse
from dataclasses import asdict, replace
from typing import Any

from medusa_core.errors import TrainingError
from medusa_core.hub.library.find import installed
from medusa_core.loading.load import load_target
from medusa_core.models.datastore.phrases import write_phrases
from medusa_core.system.prompts import read_prompts
from medusa_core.system.resources import (
    demo_model_dir,
    prompts_dir,
)
from medusa_core.training.phrase_counts import PhraseRecipe, make_phrases
from medusa_core.training.precision import flush_denormals
from recipe.asked import phrase_questions
from recipe.bits import bits_by_format
from recipe.evaluate import evaluate
from recipe.export import load_exported
from recipe.recipe import RECIPES
from recipe.reliability import reliabilities_on
from recipe.run import RunOptions, train_pebble, with_plain_heads, with_steps
from recipe.samples import as_markdown, converse


def train(args: argparse.Namespace) -> bool:
    """Run the recipe on some rows; returns whether it came to its end."""
    recipe = with_steps(RECIPES[args.size], args.pretrain_steps, args.tune_steps)
    if args.plain_heads:
        recipe = with_plain_heads(recipe)
    slice_s, within_s = (
        None if minutes is None else minutes * 60 for minutes in (args.minutes, args.within)
    )
    options = RunOptions(
        args.data, args.out, args.device, args.resume, slice_s, args.compile, within_s
    )
    with flush_denormals():
        return train_pebble(recipe, options)


def write_phrase_table(args: argparse.Namespace) -> None:
    """Count what a model often says in answers to rows like the recipe's, and write the table."""
    numbers = PhraseRecipe()
    if args.answers is not None:
        numbers = replace(numbers, num_answers=args.answers)
    questions = phrase_questions(replace(RECIPES[args.size], phrases=numbers), args.data)
    target = load_target(args.model or demo_model_dir(), args.heads)
    args.out.mkdir(parents=True, exist_ok=True)
    write_phrases(make_phrases(target, questions, numbers), args.out)


def write_answers(args: argparse.Namespace) -> None:
    """Answer the shipped samples, as Markdown."""
    network, tokenizer = load_exported(args.model or demo_model_dir())
    samples = read_prompts(prompts_dir() / "samples.jsonl")
    args.answers.write_text(as_markdown(samples, converse(network, tokenizer, samples)))


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """The gates, by name; those of the heads too where they are given."""
    model_dir = args.model or demo_model_dir()
    prompts = read_prompts(args.prompts or prompts_dir() / "in_domain.jsonl")
    result = evaluate(model_dir, prompts, args.rows).as_dict()
    if args.heads is not None:
        result["heads"] = [asdict(one) for one in reliabilities_on(model_dir, args.heads, prompts)]
    return result


def measure_formats(args: argparse.Namespace) -> dict[str, float]:
    """What each weight format costs, in bits per byte.

    Raises:
        TrainingError: no rows are given.
    """
    if args.rows is None:
        raise TrainingError("Bits per byte are measured on rows.", "Name them with --rows.")
    names = [name.strip() for name in args.formats.split(",") if name.strip()]
    adapter = installed(args.adapter) if args.adapter else None
    return bits_by_format(args.model or demo_model_dir(), args.rows, names, adapter)
