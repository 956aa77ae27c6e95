"""Reading the training rows: files to documents, filters, and the mixture."""

from __future__ import annotations

import json
import logging
import lzma
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.recipe import Source

log = logging.getLogger(__name__)

PLAIN = "text"


@dataclass(frozen=True, slots=True)
class Segment:
    """A run of text with the role that speaks it (`text` for a plain document)."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One training row."""

    source: str
    segments: tuple[Segment, ...]

    @property
    def is_chat(self) -> bool:
        """Whether the row has roles."""
        return self.segments[0].role != PLAIN

    @property
    def text(self) -> str:
        """All of its text, joined."""
        return "\n".join(segment.text for segment in self.segments)


def document_from_row(row: dict[str, Any], source: str) -> Document | None:
    """Build a document from one JSON row, or None where the row is empty or malformed."""
    if "messages" in row:
        segments = tuple(Segment(m["role"], m["content"].strip()) for m in row["messages"])
    else:
        segments = (Segment(PLAIN, str(row.get("text", "")).strip()),)
    if not segments or any(not segment.text for segment in segments):
        return None
    return Document(source, segments)


def read_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Read a `.jsonl` or `.jsonl.xz` file row by row."""
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield json.loads(line)


def find_source(data_dir: Path, name: str) -> Path | None:
    """Path of one source's file under `data_dir` or `data_dir/train`, or None."""
    for folder in (data_dir / "train", data_dir):
        for suffix in (".jsonl.xz", ".jsonl"):
            path = folder / f"{name}{suffix}"
            if path.is_file():
                return path
    return None


def read_source(data_dir: Path, name: str) -> list[Document]:
    """Read all acceptable documents of one source, in file order; [] where it is missing."""
    path = find_source(data_dir, name)
    if path is None:
        log.warning("source %s is not in %s: left out", name, data_dir)
        return []
    documents = []
    for row in read_rows(path):
        document = document_from_row(row, name)
        if document is not None and is_acceptable(document):
            documents.append(document)
    return documents


def is_acceptable(document: Document) -> bool:
    """Whether a document has ordinary characters and doesn't go round in circles."""
    text = document.text
    num_odd = sum(1 for char in text if ord(char) > 0x2FF and char not in "‘’“”–—…•→")
    if num_odd > 0.005 * len(text):
        return False
    answers = [s.text for s in document.segments if s.role in ("assistant", PLAIN)]
    return not any(repeats(answer.split(), 6, 3) for answer in answers)


def answers_fit(document: Document, max_chars: int | None) -> bool:
    """Whether no answer of the document is longer than `max_chars` characters."""
    answers = (s.text for s in document.segments if s.role == "assistant")
    return max_chars is None or all(len(answer) <= max_chars for answer in answers)


def shortened(document: Document, max_chars: int) -> Document:
    """The document with the middle of long answers taken out, paragraph by paragraph.

    A small model learns to come to an end only from answers that do so soon; sources of long
    answers alone (scripts) have none.
    """
    segments = (
        Segment(s.role, without_middle(s.text, max_chars)) if s.role == "assistant" else s
        for s in document.segments
    )
    return Document(document.source, tuple(segments))


def without_middle(text: str, max_chars: int) -> str:
    """The first and the last paragraphs of a text, `max_chars` characters at most where they fit.

    The closing ones take up to a third of the room; the first and the last are always kept.
    """
    paragraphs = text.split("\n\n")
    if len(text) <= max_chars or len(paragraphs) < 3:
        return text
    start, stop = 1, len(paragraphs) - 1
    room = max_chars - len(paragraphs[-1])
    while stop > start and len(paragraphs[stop - 1]) <= room - max_chars * 2 // 3:
        stop -= 1
        room -= len(paragraphs[stop])
    room -= len(paragraphs[0])
    while start < stop and len(paragraphs[start]) <= room:
        room -= len(paragraphs[start])
        start += 1
    return "\n\n".join(paragraphs[:start] + paragraphs[stop:])


def repeats(items: Sequence[Any], size: int, times: int) -> bool:
    """Whether some run of `size` items occurs at least `times` times."""
    grams = Counter(tuple(items[i : i + size]) for i in range(len(items) - size + 1))
    return any(count >= times for count in grams.values())


def take_share(documents: Sequence[Document], share: float, from_back: bool) -> list[Document]:
    """Take a share of the rows from the front or the back; above 1 the rows repeat."""
    ordered = list(reversed(documents)) if from_back else list(documents)
    whole, part = divmod(share, 1.0)
    return ordered * int(whole) + ordered[: round(part * len(ordered))]


@dataclass(frozen=True, slots=True)
class Mixture:
    """Documents of each stage, shuffled.

    A source's stages share no row as long as its shares add up to at most 1.
    """

    pretrain: list[Document]
    tune: list[Document]
    polish: list[Document]


def read_mixture(data_dir: Path, sources: Iterable[Source], seed: int) -> Mixture:
    """Read the mixture of all stages.

    Args:
        data_dir: folder with `NAME.jsonl[.xz]`, or with a folder `train` of them.
        sources: shares of each source.
        seed: of the order.
    """
    mixture = Mixture([], [], [])
    for source in sources:
        documents = read_source(data_dir, source.name)
        # the files are sorted by kind, and both ends must hold every kind
        random.Random(f"{seed}-{source.name}").shuffle(documents)
        mixture.pretrain.extend(take_share(documents, source.pretrain_share, from_back=False))
        mixture.tune.extend(take_share(documents, source.tune_share, from_back=True))
        mixture.polish.extend(polish_documents(documents, source))
    for place, stage in enumerate((mixture.pretrain, mixture.tune, mixture.polish)):
        random.Random(seed + place).shuffle(stage)
    return mixture


def polish_documents(documents: Sequence[Document], source: Source) -> list[Document]:
    """A source's rows of the polish: answers of the length that is wanted in a chat."""
    chosen = take_share(documents, source.polish_share, from_back=True)
    if source.is_shortened and source.polish_chars is not None:
        chosen = [shortened(document, source.polish_chars) for document in chosen]
    return [d for d in chosen if answers_fit(d, source.polish_chars)]
