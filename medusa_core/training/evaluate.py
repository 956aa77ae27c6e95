"""The gates of the demo model: bits per byte, loops, stops and twenty questions."""

from __future__ import annotations

import json
import logging
import math
import tarfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from tokenizers import Tokenizer

from medusa_core.errors import TrainingError
from medusa_core.prompts import Prompt
from medusa_core.training.checks import CHECKS
from medusa_core.training.corpus import Document, Segment, repeats
from medusa_core.training.network import PebbleNetwork
from medusa_core.training.packing import ANSWER, EncodedDocument, document_mask
from medusa_core.training.recipe import END, ModelSize
from medusa_core.training.self_answers import Answer, GenerationOptions, generate_answers
from medusa_core.training.tokenizer import encode_documents, encode_prompt, special_id

log = logging.getLogger(__name__)

ROWS_PER_SOURCE = 60
LOOP_WINDOW, LOOP_GRAM, LOOP_TIMES = 150, 8, 3
STOP_WITHIN = 400
STORY_CATEGORIES = ("stories",)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What `eval pebble` prints.

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


def load_exported(folder: Path) -> tuple[PebbleNetwork, Tokenizer]:
    """Read an exported demo model into the trainable network, in float32.

    Raises:
        TrainingError: a file is missing.
    """
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise TrainingError(
                f"{folder} holds no {name}.", "Name a folder written by `train pebble`."
            )
    config = json.loads((folder / "config.json").read_text())
    size = ModelSize(
        config["hidden_size"],
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["intermediate_size"],
        config["vocab_size"],
        config["max_position_embeddings"],
        config["rope_theta"],
        config["rms_norm_eps"],
    )
    network = PebbleNetwork(size)
    network.load_state_dict(
        {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}
    )
    return network.eval(), Tokenizer.from_file(str(folder / "tokenizer.json"))


def evaluate(
    network: PebbleNetwork, tokenizer: Tokenizer, prompts: Sequence[Prompt], rows: Path | None
) -> Evaluation:
    """Measure all gates.

    Args:
        network: the model.
        tokenizer: its tokenizer.
        prompts: in-domain prompts; their first turns are asked.
        rows: `split.tar.xz` or a folder of `.jsonl` files for the bits per byte.
    """
    started_s = time.monotonic()
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
    failed = failed_checks(network, tokenizer)
    sources = {} if rows is None else bits_by_source(network, tokenizer, rows)
    num_rows = sum(source.num_rows for source in sources.values())
    return Evaluation(
        bits_per_byte=overall_bits(sources) if num_rows else None,
        loop_rate=sum(loops) / max(1, len(loops)),
        stop_rate=sum(answer.finished for answer in plain) / max(1, len(plain)),
        checks=len(CHECKS) - len(failed),
        checks_total=len(CHECKS),
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


def first_turns(tokenizer: Tokenizer, prompts: Sequence[Prompt]) -> list[list[int]]:
    """What the model reads when the first turn of each prompt is asked."""
    return [encode_prompt(tokenizer, [("user", prompt.turns[0])]) for prompt in prompts]


def _shares(categories: Sequence[str], hits: Sequence[bool]) -> dict[str, float]:
    """Share of hits in each category."""
    found: dict[str, list[bool]] = {}
    for category, hit in zip(categories, hits, strict=True):
        found.setdefault(category, []).append(hit)
    return {category: sum(found[category]) / len(found[category]) for category in sorted(found)}


def distinct(answers: Sequence[Answer], size: int) -> float:
    """Of all runs of `size` tokens, the share that differ (distinct-n).

    Source: Li et al., "A Diversity-Promoting Objective Function" (2016), section 5.
    """
    runs = [run for answer in answers for run in _runs(answer, size)]
    return len(set(runs)) / max(1, len(runs))


def repeated_share(answers: Sequence[Answer], size: int = 5) -> float:
    """Share of tokens that complete a run of `size` tokens seen before in the same answer."""
    num_repeated = sum(
        len(runs) - len(set(runs)) for runs in (_runs(answer, size) for answer in answers)
    )
    return num_repeated / max(1, sum(len(answer.answer_ids) for answer in answers))


def _runs(answer: Answer, size: int) -> list[tuple[int, ...]]:
    ids = answer.answer_ids
    return [ids[start : start + size] for start in range(len(ids) - size + 1)]


def _mean_length(answers: Sequence[Answer]) -> float:
    return sum(len(answer.answer_ids) for answer in answers) / max(1, len(answers))


def is_loop(answer_ids: Sequence[int]) -> bool:
    """Whether an answer repeats an 8-gram of tokens three times within its first 150."""
    return repeats(answer_ids[:LOOP_WINDOW], LOOP_GRAM, LOOP_TIMES)


def failed_checks(network: PebbleNetwork, tokenizer: Tokenizer) -> list[str]:
    """Ask the twenty questions, greedy; `question -> answer` of those that went wrong."""
    prompts = [encode_prompt(tokenizer, [("user", check.question)]) for check in CHECKS]
    answers = generate_answers(network, prompts, GenerationOptions(60, special_id(END)))
    failed = []
    for check, answer in zip(CHECKS, answers, strict=True):
        text = tokenizer.decode(list(answer.answer_ids), skip_special_tokens=True)
        if not check.accepts(text):
            failed.append(f"{check.question} -> {text}")
    return failed


@dataclass(frozen=True, slots=True)
class SourceBits:
    """Bits of the answers of one source, the UTF-8 bytes they have, and the number of rows."""

    bits: float
    num_bytes: int
    num_rows: int


@torch.inference_mode()
def bits_by_source(
    network: PebbleNetwork, tokenizer: Tokenizer, rows: Path
) -> dict[str, SourceBits]:
    """Bits of the answers, float32, over the first rows of each source.

    Args:
        network: the model.
        tokenizer: its tokenizer.
        rows: `split.tar.xz` or a folder of `.jsonl` files.
    """
    found = {}
    for name, lines in read_split(rows):
        chosen = _first_fitting(lines, name, tokenizer, network.size.max_positions)
        nats = sum(
            _answer_nats(network, [e for _, e in chosen[i : i + 8]])
            for i in range(0, len(chosen), 8)
        )
        size = sum(answer_bytes(document) for document, _ in chosen)
        found[name] = SourceBits(nats / math.log(2), size, len(chosen))
        if chosen:
            log.info("%s: %.3f bits per byte", name, found[name].bits / max(1, size))
    return found


def overall_bits(sources: Mapping[str, SourceBits]) -> float:
    """Bits per byte of all sources together."""
    num_bytes = sum(source.num_bytes for source in sources.values())
    return sum(source.bits for source in sources.values()) / max(1, num_bytes)


def read_split(rows: Path) -> Iterator[tuple[str, list[str]]]:
    """(source name, lines) of each `.jsonl` of a folder or of a tar archive, by name.

    Raises:
        TrainingError: there are none.
    """
    found: dict[str, list[str]] = {}
    if rows.is_dir():
        for path in rows.rglob("*.jsonl"):
            found[path.stem] = path.read_text(encoding="utf-8").splitlines()
    elif rows.is_file():
        with tarfile.open(rows) as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isfile() else None
                if content is not None and member.name.endswith(".jsonl"):
                    found[Path(member.name).stem] = content.read().decode().splitlines()
    if not found:
        raise TrainingError(f"{rows} holds no .jsonl rows.", "Name a split.tar.xz or its folder.")
    yield from sorted(found.items())


def fitting_rows(
    rows: Path, tokenizer: Tokenizer, context: int
) -> list[tuple[Document, EncodedDocument]]:
    """The rows that bits per byte are measured on, of all sources."""
    return [
        row
        for name, lines in read_split(rows)
        for row in _first_fitting(lines, name, tokenizer, context)
    ]


def _first_fitting(
    lines: Iterable[str], name: str, tokenizer: Tokenizer, context: int
) -> list[tuple[Document, EncodedDocument]]:
    """The first chat rows that fit the context."""
    chosen: list[tuple[Document, EncodedDocument]] = []
    for line in lines:
        row = json.loads(line)
        if len(chosen) == ROWS_PER_SOURCE:
            break
        if "messages" not in row:
            continue
        segments = tuple(Segment(m["role"], m["content"].strip()) for m in row["messages"])
        document = Document(name, segments)
        encoded = encode_documents(tokenizer, [document])[0]
        if len(encoded.ids) <= context:
            chosen.append((document, encoded))
    return chosen


def answer_bytes(document: Document) -> int:
    """UTF-8 bytes of the answers of a row."""
    return sum(len(s.text.encode()) for s in document.segments if s.role == "assistant")


def _answer_nats(network: PebbleNetwork, group: Sequence[EncodedDocument]) -> float:
    """Nats of all answer tokens of some rows."""
    width = max(len(row.ids) for row in group)
    ids = torch.zeros(len(group), width, dtype=torch.int64)
    numbers = torch.full((len(group), width), -1, dtype=torch.int16)
    answer = torch.zeros(len(group), width, dtype=torch.bool)
    for index, row in enumerate(group):
        ids[index, : len(row.ids)] = torch.from_numpy(row.ids.astype("int64"))
        numbers[index, : len(row.ids)] = 0
        answer[index, : len(row.ids)] = torch.from_numpy(row.kinds == ANSWER)
    hidden = network.hidden_states(ids[:, :-1], document_mask(numbers[:, :-1]))
    chosen = answer[:, 1:]
    logits = network.logits(hidden[chosen])
    return float(F.cross_entropy(logits, ids[:, 1:][chosen], reduction="sum"))
