"""Answers over documents: tokens per step with and without passages, and how often they are cited.

`python -m tests.benchmarks.document_answers MODEL [--faq FOLDER...] [--heads DIR] [--drafter NAME]
[--json FILE]`

Ten questions about this program are asked twice: in a chat that has its documents (`docs/*.md`, by
BM25), and in a chat without them. Each is answered with and without drafts. Answers are greedy, so
those with drafts must equal those without. With `--faq`, questions and documents are those of
`tests.benchmarks.retrieval`, and are asked with documents only.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable, Collection, Sequence
from contextlib import aclosing, closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from medusa_core.chats.conversation import Conversation, new_id
from medusa_core.client import Client
from medusa_core.documents.collections import Collections
from medusa_core.documents.retrieval import passage_room, retrieve
from medusa_core.messages import (
    Generate,
    GenerateSettings,
    GenerationDone,
    LoadModel,
    LoadOptions,
    PassagePart,
    with_passages,
)
from medusa_core.system.resources import docs_dir
from tests.benchmarks.retrieval import copy_docs, is_target

CONTEXT = 4096
MOST_TOKENS = 200
_FAQ_PAGES = 1100
PLAIN = "none"
# Each with the document that answers it.
QUESTIONS = (
    ("How do I change the port of the server?", "server.md"),
    ("Is typical acceptance exact?", "drafts.md"),
    ("Where are conversations stored on Linux?", "privacy.md"),
    ("How can I make a model faster?", "drafts.md"),
    ("How does a model that is larger than memory run?", "larger.md"),
    ("How do I keep everything in one folder?", "privacy.md"),
    ("Which model fits a computer with 8 GiB of memory?", "hardware.md"),
    ("How do I use the engine from Python?", "python.md"),
    ("What can I do if no model loads?", "troubleshooting.md"),
    ("How do I chat in a terminal?", "terminal.md"),
)
_CITATION = re.compile(r"\[(\d+)\]")


class Asked(NamedTuple):
    """A question, and which passages answer it."""

    text: str
    is_right: Callable[[PassagePart], bool]


@dataclass
class Run:
    """One answer.

    Attributes:
        question: The question.
        text: The answer.
        num_tokens: Tokens that were decoded.
        num_steps: Steps that decoded them.
        decode_s: Seconds of these steps.
        num_prompt_tokens: Tokens of the prompt.
        num_passages: Passages that the model read.
        num_right: Passages that answer the question.
        num_cited: Citations that name a passage.
        num_right_cited: Citations that name a passage that answers the question.
        num_unknown: Citations that name none.
    """

    question: str
    text: str
    num_tokens: int
    num_steps: int
    decode_s: float
    num_prompt_tokens: int
    num_passages: int = 0
    num_right: int = 0
    num_cited: int = 0
    num_right_cited: int = 0
    num_unknown: int = 0


async def answer(
    client: Client,
    question: str,
    drafter: str,
    passages: Sequence[PassagePart],
    right: Collection[int],
) -> Run:
    """Answer a question as the chat does.

    Args:
        client: Client of the engine.
        question: The question.
        drafter: Name of the drafter.
        passages: Passages of the prompt.
        right: Numbers of those that answer the question.
    """
    settings = GenerateSettings(drafter, "greedy", 0.0, max_new_tokens=MOST_TOKENS)
    conversation = Conversation()
    turn = conversation.ask(question, settings)
    turn.prompt.content = with_passages(turn.prompt.content, passages)
    request = Generate(conversation.session_id, new_id(), conversation.messages(), settings)
    done = None
    async with aclosing(client.generate(request)) as events:
        async for event in events:
            if isinstance(event, GenerationDone):
                done = event
    assert done is not None  # the last event of an answer
    await client.close_session(conversation.session_id)
    cited = [int(number) for number in _CITATION.findall(done.text)] if passages else []
    numbers = {one.number for one in passages}
    return Run(
        question,
        done.text,
        sum(done.accept_lengths),
        done.num_steps,
        done.decode_s,
        done.num_prompt_tokens,
        len(passages),
        len(right),
        sum(number in numbers for number in cited),
        sum(number in right for number in cited),
        sum(number not in numbers for number in cited),
    )


def figures(runs: Sequence[Run]) -> dict[str, float]:
    """Return the figures of all answers."""
    num_tokens = sum(run.num_tokens for run in runs)
    return {
        "answers": len(runs),
        "prompt_tokens": sum(run.num_prompt_tokens for run in runs),
        "tokens": num_tokens,
        "tokens_per_step": num_tokens / max(1, sum(run.num_steps for run in runs)),
        "tokens_per_s": num_tokens / max(1e-9, sum(run.decode_s for run in runs)),
        "with_right_passage": sum(run.num_right > 0 for run in runs),
        "citing": sum(run.num_cited > 0 for run in runs),
        "citing_right_passage": sum(run.num_right_cited > 0 for run in runs),
        "citations": sum(run.num_cited for run in runs),
        "unknown_citations": sum(run.num_unknown for run in runs),
    }


async def measure(
    load: LoadModel,
    drafter: str,
    collections: Collections,
    collection_id: str,
    questions: Sequence[Asked],
    is_faq: bool,
) -> dict[str, Any]:
    """Answer all questions with and without drafts; those of no FAQ without passages, too."""
    kinds = ("documents",) if is_faq else ("documents", "alone")
    async with Client() as client:
        facts = await client.load(load)
        await client.calibrate()
        drafter = drafter or next(d.name for d in facts.drafters if d.name != PLAIN)
        runs: dict[str, list[Run]] = {}
        for number, (question, is_right) in enumerate(questions):
            room = passage_room(facts.context_tokens, len(question))
            found = retrieve(collections, [collection_id], [question], (), room).passages
            right = [passage.number for passage in found if is_right(passage)]
            # Drafts and none take turns, so that both see the same load.
            for name in dict.fromkeys((drafter, PLAIN) if number % 2 else (PLAIN, drafter)):
                for kind in kinds:
                    read = (found, right) if kind == "documents" else ((), [])
                    run = await answer(client, question, name, *read)
                    runs.setdefault(f"{kind} {name}", []).append(run)
            _show(runs[f"documents {drafter}"][-1])
    equal = {
        kind: sum(
            run.text == other.text
            for run, other in zip(runs[f"{kind} {drafter}"], runs[f"{kind} {PLAIN}"], strict=True)
        )
        for kind in kinds
    }
    return {
        "model": facts.name,
        "drafter": drafter,
        "equal_texts": equal,
        "figures": {name: figures(done) for name, done in runs.items()},
        "runs": {name: [asdict(run) for run in done] for name, done in runs.items()},
    }


def _show(run: Run) -> None:
    """Print an answer over documents."""
    rate = run.num_tokens / max(1, run.num_steps)
    text = " ".join(run.text.split())[:100]
    print(
        f"{run.question[:44]:46}{run.num_cited} cited, {rate:.2f} tokens/step → {text}", flush=True
    )


def _is_of(document: str, passage: PassagePart) -> bool:
    """Whether a passage is of a document."""
    return passage.document == document


def main() -> int:
    """Answer the questions by a model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, help="folder of a model, or a GGUF file")
    parser.add_argument("--heads", type=Path, help="folder of its heads")
    parser.add_argument("--drafter", default="", help="default: the model's")
    parser.add_argument("--faq", type=Path, nargs="+", help="folders of documentation with FAQs")
    parser.add_argument("--questions", type=int, default=0, help="default: all")
    parser.add_argument("--threads", type=int, default=0, help="default: the fastest number")
    parser.add_argument("--json", type=Path, help="file for all figures and answers")
    given = parser.parse_args()
    options = LoadOptions(context_tokens=CONTEXT, sessions=2)
    load = LoadModel(
        "bench", new_id(), given.model, given.heads, options, num_threads=given.threads
    )
    with TemporaryDirectory() as folder, closing(Collections(Path(folder, "index"))) as collections:
        if given.faq:
            faq = copy_docs(given.faq, Path(folder, "docs"), _FAQ_PAGES)
            asked = [Asked(one.text, partial(is_target, question=one)) for one in faq]
            paths = [Path(folder, "docs")]
        else:
            asked = [Asked(text, partial(_is_of, name)) for text, name in QUESTIONS]
            paths = sorted(docs_dir().glob("*.md"))
        made = collections.create("Documents")
        collections.add_paths(made.id, paths)
        collections.update(made.id, lambda _: None, lambda: False)
        asked = asked[:: len(asked) // given.questions] if given.questions else asked
        asked = asked[: given.questions or None]
        found = asyncio.run(
            measure(load, given.drafter, collections, made.id, asked, bool(given.faq))
        )
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1), encoding="utf-8")
    print(f"{found['model']}, {found['drafter']}: equal texts {found['equal_texts']}")
    for name, values in found["figures"].items():
        shown = ", ".join(f"{key} {value:.2f}".removesuffix(".00") for key, value in values.items())
        print(f"{name:20}{shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
