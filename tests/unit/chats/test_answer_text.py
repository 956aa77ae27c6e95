"""The text of an answer: decoded and parsed once, whatever reads it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from medusa_core.chats import answer_text
from medusa_core.chats.answer_text import NO_TOKEN, AnswerText, PartText
from medusa_core.chats.reasoning import AnswerSpan, Part, ReasoningParser
from medusa_core.messages import (
    TARGET,
    THINK_TAGS,
    ReasoningFormat,
    StepDone,
    StepTimes,
)


def step(number: int, pieces: tuple[bytes, ...], num_visible: int, seconds: float = 1) -> StepDone:
    return StepDone(
        *("s", "a", number, (7,) * len(pieces), pieces, (TARGET,) * len(pieces)),
        *(num_visible, 1, (TARGET,), StepTimes(0, 0, 0, 0), seconds, 1),
    )


def streamed(*pieces: str) -> AnswerText:
    content, num_bytes = AnswerText(), 0
    for number, piece in enumerate(pieces):
        num_bytes += len(piece.encode())
        content.append(step(number, (piece.encode(),), num_bytes))
    return content


class CountingParser(ReasoningParser):
    """Counts the characters that it is given."""

    num_chars = 0

    def push(
        self, text: str, token_id: int = -1, *, is_reasoning: bool = False
    ) -> Iterator[tuple[str, Part]]:
        CountingParser.num_chars += len(text)
        yield from super().push(text, token_id, is_reasoning=is_reasoning)


class CountingText(AnswerText):
    """Counts the characters that are copied out of it."""

    num_copied = 0

    def slice(self, start: int, end: int) -> str:
        found = super().slice(start, end)
        CountingText.num_copied += len(found)
        return found


def test_a_token_costs_the_same_however_long_the_answer_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two views read an answer of 8,000 tokens, and each character is decoded and parsed once."""
    monkeypatch.setattr(answer_text, "ReasoningParser", CountingParser)
    CountingParser.num_chars = CountingText.num_copied = 0
    content, num_bytes = CountingText(), 0
    parts = [PartText(content, is_reasoning=is_reasoning) for is_reasoning in (True, False)]
    num_read, costs = [0, 0], []
    for number in range(8_000):
        piece = {0: "<think>", 4_000: "</think>"}.get(number, "word ")
        num_bytes += len(piece)
        before = CountingParser.num_chars + CountingText.num_copied
        content.append(step(number, (piece.encode(),), num_bytes))
        for i, part in enumerate(parts):
            num_read[i] = max(num_read[i], part.start)
            num_read[i] += len(part[num_read[i] :])
        costs.append(CountingParser.num_chars + CountingText.num_copied - before)
    assert CountingParser.num_chars == num_bytes
    assert max(costs) <= 4 * len("</think>")
    assert sum(costs[-1_000:]) <= sum(costs[1_000:2_000])
    content.finish()
    assert (len(parts[0].text), len(parts[1].text)) == (3_999 * 5, 3_999 * 5)


def test_parts_keep_their_positions_and_know_their_tokens() -> None:
    content = streamed("<think>", "h\u00fcm", " so", "</think>", "\n\n", "Yes", ".")
    assert (content.text, content.answer) == ("<think>h\u00fcm so</think>\n\nYes.", "Yes.")
    thought, answer = (PartText(content, is_reasoning=inside) for inside in (True, False))
    assert (thought.text, thought.start, len(thought)) == ("h\u00fcm so", 7, 13)
    assert (answer.text, answer.start, len(answer)) == ("Yes.", 23, 27)
    assert answer[answer.start : answer.start + 2] == "Ye"
    assert [content.owner(char) for char in (7, 9, 10, 23, 26, 27)] == [1, 1, 2, 5, 6, NO_TOKEN]
    assert content.reasoning_s == 3, "of the steps up to the end of the thought"


def test_what_lies_between_two_parts_reads_as_line_ends() -> None:
    tags = ((1, "<a>"), (2, "</a>"), (3, "<m>"), (4, "<f>"))
    content = AnswerText(ReasoningFormat("<a>", "</a>", "<m>", ("<f>",), tokens=tags))
    ids = {name: token_id for token_id, name in tags}
    num_bytes = 0
    pieces = ("<a>", "One", "</a>", "<m>", "<f>", "Two", "</a>", "<m>", "<a>", "Three")
    for number, piece in enumerate((*pieces, "</a>", "<m>", "<f>", "Four")):
        num_bytes += len(piece)
        one = step(number, (piece.encode(),), num_bytes)
        content.append(one._replace(token_ids=(ids.get(piece, 7),)))
    content.finish()
    answer = PartText(content, is_reasoning=False)
    gap = content.text.index("Four") - content.text.index("Two") - 3
    assert answer[answer.start :] == "Two" + "\n" * gap + "Four"
    assert answer.text == "Two\n\nFour"


def test_steps_of_a_stored_answer_are_read_when_its_tokens_are_needed() -> None:
    reads = []

    def read() -> tuple[StepDone, ...]:
        reads.append(1)
        return (step(0, (b"On", b"e t", b"wo"), 5),)

    content = AnswerText.stored("One t", (AnswerSpan(0, 5, False),), read)
    assert (content.text, content.answer, reads) == ("One t", "One t", [])
    assert content.visible_tokens == (7, 7)
    assert content.visible_tokens == (7, 7)
    assert len(reads) == 1
    assert [content.owner(char) for char in range(5)] == [0, 0, 1, 1, 1]


def test_text_that_the_steps_dont_give_has_no_token() -> None:
    content = AnswerText.stored("One three", None, lambda: [step(0, (b"One", b" two"), 7)])
    content.load_steps()
    assert [content.owner(char) for char in (0, 4, 5, 8)] == [0, 1, NO_TOKEN, NO_TOKEN]


def test_a_cut_answer_ends_with_what_may_be_shown() -> None:
    content = AnswerText()
    content.append(step(0, (b"One", b" tw\xc3\xa9"), 6))
    content.finish()
    assert (content.text, content.is_finished) == ("One tw", True)
    assert content.visible_tokens == (7,)


def test_tokens_end_with_the_text_that_may_be_shown() -> None:
    for num_visible, num_tokens in ((3, 2), (6, 2), (7, 3), (10, 4)):
        content = AnswerText()
        content.append(step(0, (b"One", b"", b" two", b" th"), num_visible))
        assert len(content.visible_tokens) == num_tokens
    assert AnswerText().visible_tokens == ()


def test_the_format_may_become_known_before_the_first_step() -> None:
    content = AnswerText()
    content.expect(THINK_TAGS, begins_inside=True)
    content.append(step(0, (b"hm</think>Yes",), 13))
    assert (content.answer, content.is_reasoning) == ("Yes", False)
