"""Answers as the engine reports them, cut into tokens and steps in any way."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

from hypothesis import strategies as st
from PySide6.QtGui import QTextDocument

from app.chat.messages.answer_document import AnswerDocument
from app.chat.messages.answer_message import AnswerMessage
from app.markdown.bounds import Bounds
from app.theme.appearance import Appearance
from app.theme.text_style import MarkStyle
from medusa_core.chats import conversation as chats
from medusa_core.chats.answer_text import AnswerText
from medusa_core.chats.rounds import Round
from medusa_core.messages import (
    TARGET,
    GenerateSettings,
    GenerationDone,
    StepDone,
    TokenSource,
)
from tests.support.messages import DONE, STEP
from tests.support.window.markdown_samples import TEMPLATES, fill
from tests.support.window.rendered import STYLE

# Whatever is longer than a few words passes one of them.
TIGHT_BOUNDS = (
    Bounds(turn=16, check=8, line=12, block=40, code=60, formatted=200),
    Bounds(turn=50, check=1, line=400, block=30, code=15, formatted=400),
    Bounds(turn=7, check=5, line=30, block=400, code=400, formatted=25),
)


class Answer(NamedTuple):
    """An answer as the engine reports it."""

    steps: list[StepDone]
    done: GenerationDone


def step(
    number: int, pieces: tuple[bytes, ...], sources: tuple[TokenSource, ...], num_visible_bytes: int
) -> StepDone:
    ids = tuple(range(len(pieces)))
    changes = {"step": number, "token_ids": ids, "pieces": pieces, "sources": sources}
    return STEP._replace(**changes, num_visible_bytes=num_visible_bytes)


def generation_done(text: str, num_tokens: int = 1) -> GenerationDone:
    ids = tuple(range(num_tokens))
    return replace(DONE, text=text, token_ids=ids)


def pieces_of(text: str, lengths: list[int]) -> list[bytes]:
    """Cut a text into pieces as a detokenizer does: a character goes to whom completes it."""
    data = text.encode()
    pieces: list[bytes] = []
    start = cut = 0
    for i in range(len(data)):
        length = lengths[i % len(lengths)]
        cut = min(cut + length, len(data))
        end = cut
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end -= 1
        pieces.append(data[start : max(end, start)])
        start = max(end, start)
        if cut == len(data):
            break
    return pieces


@st.composite
def answers(draw: st.DrawFn, documents: st.SearchStrategy[str]) -> Answer:
    """Answers cut into random tokens of random origin, in random steps; some end at a stop."""
    text = draw(documents)
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=7))
    heads = draw(st.lists(st.integers(0, 4), min_size=1, max_size=7))
    step_lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    num_held_back = draw(st.integers(0, 4))
    pieces = pieces_of(text, lengths)
    # The stop string cuts inside the last tokens.
    num_stopped_chars = draw(st.integers(0, 5))
    shown = text[: len(text) - num_stopped_chars] if num_stopped_chars < len(text) else text
    return make_answer(pieces, heads, step_lengths, num_held_back, shown)


def make_answer(
    pieces: list[bytes], heads: list[int], step_lengths: list[int], num_held_back: int, shown: str
) -> Answer:
    num_shown_bytes = len(shown.encode())
    ends = list(accumulate(map(len, pieces)))
    steps: list[StepDone] = []
    first = 0
    while first < len(pieces):
        end = min(len(pieces), first + step_lengths[len(steps) % len(step_lengths)])
        sources = tuple(
            TokenSource("medusa", head) if (head := heads[i % len(heads)]) else TARGET
            for i in range(first, end)
        )
        is_last = end == len(pieces)
        visible = ends[end - 1] - (0 if is_last else num_held_back)
        visible = min(max(0, visible), num_shown_bytes)
        steps.append(step(len(steps), tuple(pieces[first:end]), sources, visible))
        first = end
    return Answer(steps, generation_done(shown, len(pieces)))


class StreamedDocument(AnswerDocument):
    """Shows an answer whose steps come one by one."""

    def __init__(
        self,
        document: QTextDocument,
        style: MarkStyle = STYLE,
        bounds: Bounds | None = None,
    ) -> None:
        self.content = AnswerText()
        super().__init__(self.content, document, style, bounds)

    def append(self, *steps: StepDone) -> None:
        self.content.append(*steps)
        self.refresh()

    def finish(self, done: GenerationDone | None = None) -> None:
        self.content.finish(None if done is None else done.text)
        self.refresh()


class StreamedMessage(AnswerMessage):
    """The message of such an answer."""

    def __init__(self, appearance: Appearance, content: AnswerText | None = None) -> None:
        first = Round("a", content or AnswerText())
        answer = chats.Answer([first], GenerateSettings(), model="Fake", is_running=True)
        super().__init__(answer, appearance)

    def append(self, step: StepDone) -> None:
        self.content.append(step)
        self.refresh()

    def finish(self, done: GenerationDone | None = None) -> None:
        self.answer.end(done)
        self.refresh()


def stream(
    answer: Answer, style: MarkStyle = STYLE, bounds: Bounds | None = None
) -> StreamedDocument:
    view = StreamedDocument(QTextDocument(), style, bounds=bounds)
    for one in answer.steps:
        view.append(one)
    return ended(view, answer.done)


def ended(view: StreamedDocument, done: GenerationDone) -> StreamedDocument:
    """A view after the end of its answer, and as many turns as showing it takes."""
    view.finish(done)
    while view.is_behind:
        view.show_more()
    return view


ALL_KINDS = fill(list(TEMPLATES), ["\n\n"] * len(TEMPLATES))


def answer_of_all_kinds() -> Answer:
    pieces = pieces_of(ALL_KINDS, [4, 1, 7, 3])
    return make_answer(pieces, [0, 1, 2, 0, 3, 1], [1, 3, 2], 0, ALL_KINDS)
