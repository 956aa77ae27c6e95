"""`medusa train` and `eval`; torch is imported only when a command runs."""

from __future__ import annotations

import argparse
import json
import logging
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

from medusa_core.cli.arguments import check_files
from medusa_core.cli.bench_arguments import write_file
from medusa_core.cli.load_arguments import (
    add_model_arguments,
    model_dirs,
    open_target,
    options_of,
    ready,
)
from medusa_core.cli.program import check_first, log_to_stderr
from medusa_core.errors import TrainingError
from medusa_core.system.resources import demo_model_dir
from medusa_core.system.user_folders import places

if TYPE_CHECKING:
    from medusa_core.loading.target import Target
    from medusa_core.system.jobs.heads_gain import HeadsGain
    from medusa_core.training.ngrams import CountedTexts
    from medusa_core.training.phrase_counts import PhraseRecipe

log = logging.getLogger(__name__)

_IDLE = 19  # lowest priority
_CONTEXT, _SESSIONS = 512, 16  # longest prompt, and answers at once, of --own-answers
_PROGRESS = "medusa_core.training"  # package whose progress is logged


def add_train_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `train`."""
    whats = parser.add_subparsers(required=True, metavar="WHAT", dest="what")
    heads = whats.add_parser("heads", help="heads that make any model faster")
    _add_heads_arguments(heads)
    heads.set_defaults(run=run_heads)
    streams = whats.add_parser("streams", help="streams that run beside a model's last layers")
    _add_streams_arguments(streams)
    streams.set_defaults(run=run_heads, kind="streams")
    phrases = whats.add_parser("phrases", help="a model's phrase table")
    _add_phrases_arguments(phrases)
    phrases.set_defaults(run=run_phrases)
    ngrams = whats.add_parser("ngrams", help="a phrase table of any texts, for any model")
    _add_ngrams_arguments(ngrams)
    ngrams.set_defaults(run=run_ngrams)


def _add_heads_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `train heads`."""
    from medusa_core.training.heads_config import add_heads_arguments

    add_heads_arguments(parser)
    _add_run_arguments(parser)


def _add_streams_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `train streams`."""
    from medusa_core.training.heads_config import add_streams_arguments

    add_streams_arguments(parser)
    _add_run_arguments(parser)


def _add_run_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that all training runs share."""
    from medusa_core.training.heads_config import add_config_arguments

    parser.add_argument("--out", type=Path, required=True, help="output folder")
    add_config_arguments(parser)
    parser.add_argument("--config", type=Path, help="JSON file of names and values")
    parser.add_argument("--resume", action="store_true", help="go on with the run in --out")
    parser.add_argument(
        "--watched", action="store_true", help="pause when standard input ends, for other programs"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="estimate what the run needs; takes a minute or two"
    )
    parser.add_argument("--json", type=Path, help="write the estimate of a dry run to this file")
    check_first(parser, lambda args: check_files([args.json]))


def _add_phrases_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `train phrases`."""
    parser.add_argument("--prompts", type=Path, required=True, help="file of prompts, JSON lines")
    parser.add_argument("--out", type=Path, required=True, help="output folder")
    parser.add_argument("--model", type=Path, help="folder of the model (default: the shipped one)")
    parser.add_argument(
        "--heads", type=Path, help="folder of its Medusa heads; they only make it faster"
    )
    parser.add_argument("--answers", type=int, help="number of answers (default: 48,000)")


def _add_ngrams_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `train ngrams`."""
    parser.add_argument(
        "--data",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="texts, JSON lines of messages or texts, or folders of them",
    )
    parser.add_argument(
        "--own-answers",
        type=int,
        metavar="N",
        help="instead: let the model answer N bundled prompts, while nothing else needs the "
        "processor; the same command goes on after a Ctrl-C",
    )
    parser.add_argument(
        "--max-new-tokens",
        type=int,
        default=192,
        help="longest answer with --own-answers (default: %(default)s)",
    )
    parser.add_argument(
        "--model", type=Path, help="folder or GGUF file of the model (default: the shipped one)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="folder for the table (default with --own-answers: among the program's own files, "
        "where the model finds it by itself)",
    )
    parser.add_argument(
        "--most-tokens",
        type=int,
        default=2_000_000,
        help="most tokens to read (default: %(default)s, which take 1.5 GB of memory)",
    )
    parser.add_argument(
        "--most-contexts",
        type=int,
        default=1_000_000,
        help="most contexts to keep (default: %(default)s, which take about 12 MB)",
    )


def run_ngrams(args: argparse.Namespace) -> int:
    """Build a phrase table from texts."""
    log_to_stderr(_PROGRESS)
    from medusa_core.training.ngrams import MOST_MIXED, save_table
    from medusa_core.training.phrase_counts import PhraseRecipe

    if min(args.most_tokens, args.most_contexts) < 1:
        raise TrainingError("A table of nothing makes no sense.", "Choose bounds of 1 or more.")
    if (args.data is None) == (args.own_answers is None):
        raise TrainingError(
            "A table is counted in texts or in the model's own answers.",
            "Name texts with --data, or a number of answers with --own-answers.",
        )
    recipe = PhraseRecipe(most_contexts=args.most_contexts, most_mixed=MOST_MIXED)
    out, found = (_count_answers if args.data is None else _count_texts)(args, recipe)
    num_bytes = save_table(found.phrases, out)
    rest = "" if found.is_whole else "; the rest was left out (--most-tokens)"
    print(
        f"made: {out}, {len(found.phrases):,} contexts, {num_bytes:,} bytes, of "
        f"{found.num_tokens:,} tokens in {found.num_texts:,} texts{rest}"
    )
    return 0


def _count_texts(args: argparse.Namespace, recipe: PhraseRecipe) -> tuple[Path, CountedTexts]:
    """Count the texts of --data; returns the folder for the table, too.

    Raises:
        TrainingError: No folder is named, or the texts can't be read.
    """
    from medusa_core.training.ngrams import count_texts
    from medusa_core.training.texts import read_texts

    if args.out is None:
        raise TrainingError("There is no folder for the table.", "Name one with --out.")
    model_dir = args.model or demo_model_dir()
    return args.out, count_texts(model_dir, read_texts(args.data), recipe, args.most_tokens)


def _count_answers(args: argparse.Namespace, recipe: PhraseRecipe) -> tuple[Path, CountedTexts]:
    """Let the model answer, and count its answers; returns the folder for the table, too.

    Raises:
        TrainingError: A number makes no sense, or the folder can't be written.
    """
    from medusa_core.loading.load import load_target
    from medusa_core.messages import LoadOptions
    from medusa_core.speculation.tuning.threads import choose_threads
    from medusa_core.training.ngrams import ANSWERS_FILE, answer_prompts, count_answers

    if min(args.own_answers, args.max_new_tokens) < 1:
        raise TrainingError("A table of nothing makes no sense.", "Choose bounds of 1 or more.")
    if hasattr(os, "nice"):
        os.nice(_IDLE)
    options = LoadOptions(
        context_tokens=_CONTEXT + args.max_new_tokens,
        sessions=_SESSIONS,
        datastore_dir=places().learned,
    )
    target = load_target(args.model or demo_model_dir(), None, options)
    choose_threads(target, os.cpu_count() or 1)
    assert target.learned is not None  # by the options
    own_dir = target.learned.table_dir  # token ids of one model, whatever --out is used for
    target.learned.close()
    texts = answer_prompts(target, args.own_answers, args.max_new_tokens, own_dir / ANSWERS_FILE)
    return args.out or own_dir, count_answers(texts, recipe)


def run_heads(args: argparse.Namespace) -> int:
    """Train heads; returns 0 at the end, 3 if the run was paused."""
    from medusa_core.system.jobs.heads_gain import read_gain
    from medusa_core.training.heads_command import plan_heads, train_heads
    from medusa_core.training.heads_plan import plan_text

    log_to_stderr(_PROGRESS)
    if args.dry_run:
        plan = plan_heads(args)
        print(plan_text(plan))
        if args.json is not None:
            write_file(args.json, json.dumps(asdict(plan)) + "\n")
        return 0
    finished = train_heads(args)
    print(f"made: {args.out}" if finished else "paused; go on with --resume")
    if finished and (gain := read_gain(args.out)) is not None:
        print(gain_text(gain))
    return 0 if finished else 3


def gain_text(gain: HeadsGain) -> str:
    """Format the gain of heads, with advice if there is none."""
    brought = f"{gain.tau:.2f} tokens per step, {gain.x_plain:.2f} x plain decoding"
    if gain.pays:
        return brought
    return (
        f"Warning: {brought}: answers aren't faster with these heads, so no model takes them by "
        "itself. Train longer: the same command with another --out and more --minutes."
    )


def run_phrases(args: argparse.Namespace) -> int:
    """Build a phrase table from a model's answers."""
    log_to_stderr(_PROGRESS)
    from medusa_core.loading.load import load_target
    from medusa_core.models.datastore.phrases import write_phrases
    from medusa_core.system.prompts import read_prompts
    from medusa_core.training.phrase_counts import PhraseRecipe, first_questions, make_phrases

    numbers = PhraseRecipe()
    if args.answers is not None:
        numbers = replace(numbers, num_answers=args.answers)
    questions = first_questions(read_prompts(args.prompts))[: numbers.num_answers]
    target = load_target(args.model or demo_model_dir(), args.heads)
    args.out.mkdir(parents=True, exist_ok=True)
    write_phrases(make_phrases(target, questions, numbers), args.out)
    return 0


def add_eval_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `eval`."""
    whats = parser.add_subparsers(required=True, metavar="WHAT", dest="what")
    heads = whats.add_parser("heads", help="acceptance rate and speed-up of heads")
    add_model_arguments(heads)
    heads.add_argument("--prompts", type=Path, required=True, help="file of prompts, JSON lines")
    heads.add_argument("--limit", type=int, help="most prompts, in turns from each category")
    heads.add_argument("--max-new-tokens", type=int, default=128, help="longest answer")
    heads.add_argument("--json", type=Path, help="write all figures to this file")
    check_first(heads, lambda args: check_files([args.json]))
    heads.set_defaults(run=run_eval_heads)


def run_eval_heads(args: argparse.Namespace) -> int:
    """Measure heads and print their gain; with an adapter also its effect on the text."""
    from medusa_core.engine.likelihood import bits_per_byte
    from medusa_core.system.prompts import read_prompts
    from medusa_core.training.heads_eval import AdapterEffect, eval_text, evaluate_heads

    log_to_stderr(_PROGRESS)
    prompts = read_prompts(args.prompts, args.limit)
    questions = [turn for prompt in prompts for turn in prompt.turns]
    # One after the other, since both may not fit into memory.
    alone = bits_per_byte(_open_alone(args), questions) if args.adapter else 0.0
    target = open_target(args)

    def print_progress(done: int, total: int) -> None:
        """Log how many prompts are done."""
        log.info("%d of %d prompts", done, total)

    found = evaluate_heads(target, prompts, args.max_new_tokens, print_progress)
    print(eval_text(found))
    figures = found.as_json()
    if args.adapter:
        effect = AdapterEffect(alone, bits_per_byte(target, questions))
        figures["bits_per_byte"] = {"none": effect.without, "adapter": effect.with_it}
        print(effect.text)
    if args.json is not None:
        write_file(args.json, json.dumps(figures, indent=2) + "\n")
    return 0


def _open_alone(args: argparse.Namespace) -> Target:
    """Load the model without heads and adapter."""
    from medusa_core.loading.load import load_target

    model_dir, _ = model_dirs(args)
    options = replace(options_of(args), adapter_dir=None, takes_own_heads=False)
    return ready(args, load_target(model_dir, None, options))


COMMANDS = {"train": add_train_arguments, "eval": add_eval_arguments}
