"""Bits per byte of the answers in some rows, source by source."""

from __future__ import annotations

import json
import logging
import math
import tarfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from tokenizers import Tokenizer

from medusa_core.errors import TrainingError
from medusa_core.training.packing import ANSWER, EncodedDocument
from medusa_core.training.pebble.attention import document_mask
from medusa_core.training.pebble.corpus import Document, Segment
from medusa_core.training.pebble.network import PebbleNetwork
from medusa_core.training.pebble.tokenizer import encode_documents

log = logging.getLogger(__name__)

ROWS_PER_SOURCE = 60


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
