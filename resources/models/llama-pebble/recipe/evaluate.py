"""The gates of the demo model: bits per byte, loops, stops and twenty questions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from medusa_core.loading.load import load_target
from medusa_core.messages import LoadOptions
from medusa_core.system.prompts import BenchPrompt
from medusa_core.training.answers import OwnAnswer
from recipe.bits import SourceBits, bits_by_source, overall_bits
from recipe.checks import read_checks
from recipe.corpus import repeats
from recipe.export import load_exported
from recipe.network import PebbleNetwork
from recipe.recipe import END
from recipe.self_answers import GenerationOptions, generate_answers
from recipe.tokenizer import encode_prompt, special_id

LOOP_WINDOW, LOOP_GRAM, LOOP_TIMES = 150, 8, 3
STOP_WITHIN = 400
STORY_CATEGORIES = ("stories",)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What `eval` prints.

    Attributes:
        bits_per_byte: answer tokens (and the token that ends them), bits summed over bytes
            summed; None without rows.
        loop_rate: share of answers that repeat an 8-gram three times within 150 tokens, greedy.
        stop_rate: share of answers to non-story prompts that end within 400 tokens, greedy.
        checks: questions answered right, of `checks_total`.
        num_prompts: prompts answered.
        num_skipped: prompts that leave no room for an answer in the context.
        num_rows: rows of the bits per byte.
        mean_answer_tokens: mean length of the answers, cut at 400.
        distinct: of all runs of one, two and three tokens in the answers, the share that differ.
        repeated: share of answer tokens that complete a run of 5 seen before in that answer.
        failed_checks: `question -> answer` of the questions that went wrong.
        bits_by_source: bits per byte of each source.
        loops_by_category: loop rate of each category of prompts.
        stops_by_category: share of answers that end within 400 tokens.
    """

    bits_per_byte: float | None
    loop_rate: float
    stop_rate: float
    checks: int
    checks_total: int
    num_prompts: int
    num_skipped: int
    num_rows: int
    mean_answer_tokens: float
    distinct: tuple[float, ...]
    repeated: float
    seconds: float
    failed_checks: tuple[str, ...]
    bits_by_source: dict[str, float]
    loops_by_category: dict[str, float]
    stops_by_category: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def evaluate(model_dir: Path, prompts: Sequence[BenchPrompt], rows: Path | None) -> Evaluation:
    """Measure all gates.

    Args:
        model_dir: the model.
        prompts: in-domain prompts; their first turns are asked.
        rows: `split.tar.xz` or a folder of `.jsonl` files for the bits per byte.
    """
    started_s = time.monotonic()
    network, tokenizer = load_exported(model_dir)
    encoded = first_turns(tokenizer, prompts)
    room = network.size.max_positions - LOOP_WINDOW
    kept = [index for index, ids in enumerate(encoded) if len(ids) <= room]
    options = GenerationOptions(STOP_WITHIN, special_id(END))
    answers = generate_answers(network, [encoded[i] for i in kept], options)
    loops = [is_loop(answer.answer_ids) for answer in answers]
    plain = [
        answer
        for index, answer in zip(kept, answers, strict=True)
        if prompts[index].category not in STORY_CATEGORIES
    ]
    categories = [prompts[index].category for index in kept]
    failed, num_checks = failed_checks(network, tokenizer), len(read_checks())
    sources: dict[str, SourceBits] = {}
    if rows is not None:
        target = load_target(model_dir, options=LoadOptions("float32"))
        sources = bits_by_source(target, tokenizer, rows)
    num_rows = sum(source.num_rows for source in sources.values())
    return Evaluation(
        bits_per_byte=overall_bits(sources) if num_rows else None,
        loop_rate=sum(loops) / max(1, len(loops)),
        stop_rate=sum(answer.finished for answer in plain) / max(1, len(plain)),
        checks=num_checks - len(failed),
        checks_total=num_checks,
        num_prompts=len(answers),
        num_skipped=len(prompts) - len(kept),
        num_rows=num_rows,
        mean_answer_tokens=_mean_length(answers),
        distinct=tuple(distinct(answers, size) for size in (1, 2, 3)),
        repeated=repeated_share(answers),
        seconds=time.monotonic() - started_s,
        failed_checks=tuple(failed),
        bits_by_source={n: s.bits / s.num_bytes for n, s in sources.items() if s.num_rows},
        loops_by_category=_shares(categories, loops),
        stops_by_category=_shares(categories, [answer.finished for answer in answers]),
    )


def first_turns(tokenizer: Tokenizer, prompts: Sequence[BenchPrompt]) -> list[list[int]]:
    """What the model reads when the first turn of each prompt is asked."""
    return [encode_prompt(tokenizer, [("user", prompt.turns[0])]) for prompt in prompts]


def _shares(categories: Sequence[str], hits: Sequence[bool]) -> dict[str, float]:
    """Share of hits in each category."""
    found: dict[str, list[bool]] = {}
    for category, hit in zip(categories, hits, strict=True):
        found.setdefault(category, []).append(hit)
    return {category: sum(found[category]) / len(found[category]) for category in sorted(found)}


def distinct(answers: Sequence[OwnAnswer], size: int) -> float:
    """Of all runs of `size` tokens, the share that differ (distinct-n).

    Source: Li et al., "A Diversity-Promoting Objective Function" (2016), section 5.
    """
    runs = [run for answer in answers for run in _runs(answer, size)]
    return len(set(runs)) / max(1, len(runs))


def repeated_share(answers: Sequence[OwnAnswer], size: int = 5) -> float:
    """Share of tokens that complete a run of `size` tokens seen before in the same answer."""
    num_repeated = sum(
        len(runs) - len(set(runs)) for runs in (_runs(answer, size) for answer in answers)
    )
    return num_repeated / max(1, sum(len(answer.answer_ids) for answer in answers))


def _runs(answer: OwnAnswer, size: int) -> list[tuple[int, ...]]:
    ids = answer.answer_ids
    return [ids[start : start + size] for start in range(len(ids) - size + 1)]


def _mean_length(answers: Sequence[OwnAnswer]) -> float:
    return sum(len(answer.answer_ids) for answer in answers) / max(1, len(answers))


def is_loop(answer_ids: Sequence[int]) -> bool:
    """Whether an answer repeats an 8-gram of tokens three times within its first 150."""
    return repeats(answer_ids[:LOOP_WINDOW], LOOP_GRAM, LOOP_TIMES)


def failed_checks(network: PebbleNetwork, tokenizer: Tokenizer) -> list[str]:
    """Ask the twenty questions, greedy; `question -> answer` of those that went wrong."""
    checks = read_checks()
    prompts = [encode_prompt(tokenizer, [("user", check.question)]) for check in checks]
    answers = generate_answers(network, prompts, GenerationOptions(60, special_id(END)))
    failed = []
    for check, answer in zip(checks, answers, strict=True):
        text = tokenizer.decode(list(answer.answer_ids), skip_special_tokens=True)
        if not check.accepts(text):
            failed.append(f"{check.question} -> {text}")
    return failed
