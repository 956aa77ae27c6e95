"""Bits per UTF-8 byte of the answers in some rows, by the engine itself."""

from __future__ import annotations

import json
import logging
import math
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from medusa_core.errors import TrainingError
from medusa_core.loading.load import load_target
from medusa_core.loading.target import Target
from medusa_core.messages import LoadOptions, WeightFormats
from medusa_core.training.documents import ANSWER, EncodedDocument
from recipe.corpus import Document, Segment
from recipe.export import load_exported
from recipe.tokenizer import encode_documents

log = logging.getLogger(__name__)

ROWS_PER_SOURCE = 60


@dataclass(frozen=True, slots=True)
class SourceBits:
    """Bits of the answers of one source, the UTF-8 bytes they have, and the number of rows."""

    bits: float
    num_bytes: int
    num_rows: int


def bits_by_source(target: Target, tokenizer: Tokenizer, rows: Path) -> dict[str, SourceBits]:
    """Bits of the answers, over the first rows of each source that fit the context.

    Args:
        target: the model, loaded in float32 or in a weight format.
        tokenizer: its tokenizer, as the recipe wants it.
        rows: `split.tar.xz` or a folder of `.jsonl` files.

    Raises:
        TrainingError: there are no rows.
    """
    found = {}
    for name, lines in read_split(rows):
        chosen = _first_fitting(lines, name, tokenizer, target.config.context_tokens)
        nats = sum(_answer_nats(target, encoded) for _, encoded in chosen)
        size = sum(_answer_bytes(document) for document, _ in chosen)
        found[name] = SourceBits(nats / math.log(2), size, len(chosen))
        if chosen:
            log.info("%s: %.3f bits per byte", name, found[name].bits / max(1, size))
    return found


def bits_by_format(
    model_dir: Path, rows: Path, formats: Sequence[str], adapter_dir: Path | None = None
) -> dict[str, float]:
    """Bits per byte of all sources together, as each weight format gives them.

    Args:
        model_dir: the model.
        rows: as in `bits_by_source`.
        formats: names of weight formats, for all linear layers.
        adapter_dir: folder of a LoRA that the model is loaded with, or None.

    Raises:
        ModelError: the model can't be used.
        RequestError: there is no such format.
        TrainingError: there are no rows.
    """
    _, tokenizer = load_exported(model_dir)
    found = {}
    for name in formats:
        options = LoadOptions(formats=WeightFormats(name), adapter_dir=adapter_dir)
        target = load_target(model_dir, options=options)
        found[name] = overall_bits(bits_by_source(target, tokenizer, rows))
        log.info("%s: %.4f bits per byte", name, found[name])
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


def _answer_bytes(document: Document) -> int:
    """UTF-8 bytes of the answers of a row."""
    return sum(len(s.text.encode()) for s in document.segments if s.role == "assistant")


@torch.inference_mode()
def _answer_nats(target: Target, row: EncodedDocument) -> float:
    """Nats of the answer tokens of a row."""
    ids = torch.from_numpy(row.ids.astype(np.int64))
    hidden = target.runner.extend(ids[:-1].tolist(), target.runner.new_cache(len(ids)))
    chosen = torch.from_numpy(row.kinds == ANSWER)[1:]
    logits = target.runner.logits(hidden[chosen]).float()
    return float(F.cross_entropy(logits, ids[1:][chosen], reduction="sum"))
