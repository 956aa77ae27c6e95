"""Reasoning apart from the answer, however the text comes, in every format."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise, product

import pytest

from medusa_core.chats.answer_text import AnswerText, find_spans, text_spans
from medusa_core.chats.reasoning import (
    NO_TOKEN_ID,
    AnswerSpan,
    Part,
    ReasoningParser,
    answer_text,
    reasoning_text,
)
from medusa_core.messages import (
    NO_REASONING,
    REASONING,
    TARGET,
    THINK_TAGS,
    ReasoningFormat,
    StepDone,
    StepTimes,
)

GPT_OSS = ReasoningFormat(
    "<|channel|>analysis<|message|>",
    "<|end|>",
    "<|start|>assistant",
    ("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
)
APRIEL = ReasoningFormat(
    "Here are my reasoning steps:",
    "[BEGIN FINAL RESPONSE]",
    response_ends=("[END FINAL RESPONSE]",),
)
GRANITE = ReasoningFormat(responses=("<response>",), response_ends=("</response>",))
COHERE = ReasoningFormat(
    "<|START_THINKING|>",
    "<|END_THINKING|>",
    responses=("<|START_RESPONSE|>", "<|START_TEXT|>"),
    response_ends=("<|END_RESPONSE|>", "<|END_TEXT|>"),
)
TWO_MESSAGES = ReasoningFormat(
    "to=self<|message|>", "<|eom|>", "<|start|>assistant", ("to=user<|message|>",), ("<|eot|>",)
)
PLAIN_PAIRS = {
    "think": THINK_TAGS,
    "mistral": ReasoningFormat("[THINK]", "[/THINK]"),
    "apertus": ReasoningFormat("<|inner_prefix|>", "<|inner_suffix|>"),
    "gemma 4": ReasoningFormat("<|channel>thought", "<channel|>"),
    "seed": ReasoningFormat("<seed:think>", "</seed:think>"),
    "minimax": ReasoningFormat("<mm:think>", "</mm:think>"),
    "hunyuan": ReasoningFormat("<think:opensource>", "</think:opensource>"),
}
# A format, what its model writes, and the reasoning and the answer in that.
CASES: dict[str, tuple[ReasoningFormat, str, str, str]] = {
    **{
        name: (tags, f"\n{tags.start}Hm, <b>so</b>.{tags.end}\n\nFour.", "Hm, <b>so</b>.", "Four.")
        for name, tags in PLAIN_PAIRS.items()
    },
    **{
        f"{name}, none": (tags, "  <b>bold</b> [T] <|", "", "  <b>bold</b> [T] <|")
        for name, tags in PLAIN_PAIRS.items()
    },
    "gpt-oss": (
        GPT_OSS,
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
            "<|channel|>final<|message|>Four."
        ),
        "Hm.",
        "Four.",
    ),
    "gpt-oss, final alone": (GPT_OSS, "<|channel|>final<|message|>Four.", "", "Four."),
    "gpt-oss, twice": (
        GPT_OSS,
        (
            "<|channel|>analysis<|message|>One.<|end|><|start|>assistant"
            "<|channel|>commentary<|message|>Wait.<|end|><|start|>assistant"
            "<|channel|>analysis<|message|>Two.<|end|><|start|>assistant"
            "<|channel|>final<|message|>Four."
        ),
        "One.\n\nTwo.",
        "Wait.\n\nFour.",
    ),
    "gpt-oss, a call": (
        GPT_OSS,
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
            "<|channel|>commentary to=functions.clock <|constrain|>json<|message|>{}"
        ),
        "Hm.",
        "<|channel|>commentary to=functions.clock <|constrain|>json<|message|>{}",
    ),
    "apriel": (
        APRIEL,
        (
            "Here are my reasoning steps:\nHm. [BEGIN\n[BEGIN FINAL RESPONSE]\nFour.\n"
            "[END FINAL RESPONSE]\n"
        ),
        "\nHm. [BEGIN\n",
        "Four.\n",
    ),
    "granite": (
        GRANITE,
        "<think>Hm.</think>\n<response>\nA <response> of four.</response>",
        "Hm.",
        "A <response> of four.",
    ),
    "granite, response alone": (GRANITE, "<response>Four.</response>", "", "Four."),
    "cohere": (
        COHERE,
        "<|START_THINKING|>Hm.<|END_THINKING|><|START_RESPONSE|>Four.<|END_RESPONSE|>",
        "Hm.",
        "Four.",
    ),
    "two messages": (
        TWO_MESSAGES,
        " to=self<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Four.<|eot|>",
        "Hm.",
        "Four.",
    ),
    "no reasoning": (NO_REASONING, " <think>\nHm.</think> x", "", " <think>\nHm.</think> x"),
    "never ends": (THINK_TAGS, "<think>Hm </thin", "Hm </thin", ""),
    "a tag in the answer": (
        THINK_TAGS,
        "<think>a</think>Write <think>b</think>.",
        "a",
        "Write <think>b</think>.",
    ),
}
TOKEN = re.compile(r"<[^<>\s][^<>\n]{0,40}>|\[/?[A-Z][A-Z_ ]{1,40}\]")
BY_TOKENS = [name for name in CASES if name not in ("apriel", "granite", "a tag in the answer")]

Piece = tuple[str, int]


def with_ids(tags: ReasoningFormat) -> ReasoningFormat:
    names = sorted({name for tag in tags.tags for name in TOKEN.findall(tag)})
    return tags._replace(tokens=tuple((900 + n, name) for n, name in enumerate(names)))


def cut(text: str, cuts: Sequence[int]) -> list[Piece]:
    places = [0, *sorted(min(place, len(text)) for place in cuts), len(text)]
    return [(text[begin:end], NO_TOKEN_ID) for begin, end in pairwise(places) if begin < end]


def as_tokens(text: str, tags: ReasoningFormat, shown: bool) -> list[Piece]:
    """Tags as tokens, and each character between them as a piece."""
    ids = {name: number for number, name in tags.tokens}
    pieces: list[Piece] = []
    for part in re.split(f"({'|'.join(map(re.escape, ids))})", text):
        if part in ids:
            pieces.append((part if shown else "", ids[part]))
        else:
            pieces += [(character, NO_TOKEN_ID) for character in part]
    return pieces


def parsed(
    tags: ReasoningFormat, pieces: Sequence[Piece], inside: bool = False
) -> list[tuple[str, Part]]:
    parser = ReasoningParser(tags, inside)

    def parts() -> Iterator[tuple[str, Part]]:
        for text, token_id in pieces:
            yield from parser.push(text, token_id)
        yield from parser.finish()

    return list(parts())


def joined(parts: Sequence[tuple[str, Part]]) -> tuple[str, str]:
    """Reasoning and answer; messages of one kind that tags part are paragraphs."""
    found: dict[Part, str] = {Part.REASONING: "", Part.ANSWER: ""}
    last: Part | None = None
    for text, part in parts:
        assert text
        if part is Part.TAG:
            last = None
            continue
        gap = "\n\n" if found[part] and last is not part else ""
        found[part] += gap + text
        last = part
    return found[Part.REASONING], found[Part.ANSWER]


def spans_by(tags: ReasoningFormat, pieces: Sequence[Piece]) -> tuple[str, str]:
    reader = AnswerText(tags)
    for one in steps([(text.encode(), token_id) for text, token_id in pieces]):
        before = list(reader.spans)
        reader.append(one)
        if before:  # nothing that was shown is shown as something else
            assert reader.spans[: len(before) - 1] == before[:-1]
            assert reader.spans[len(before) - 1]._replace(end=0) == before[-1]._replace(end=0)
            assert reader.spans[len(before) - 1].end >= before[-1].end
    reader.finish()
    whole = "".join(text for text, _ in pieces)
    return reasoning_text(whole, reader.spans), answer_text(whole, reader.spans)


def test_text_tags_are_found_in_one_piece_and_character_by_character() -> None:
    for name, (tags, text, *parts) in CASES.items():
        if name == "gpt-oss, twice":
            continue  # where tags are spelled, nothing opens the reasoning again
        wanted = (name, *parts)
        assert (name, *joined(parsed(tags, cut(text, [])))) == wanted
        assert (name, *joined(parsed(tags, cut(text, range(len(text)))))) == wanted
        assert (name, *spans_by(tags, cut(text, range(len(text))))) == wanted


@pytest.mark.parametrize("shown", [False, True], ids=["special", "with text"])
def test_token_tags_are_found(shown: bool) -> None:
    for name in BY_TOKENS:
        tags, text, thought, answer = CASES[name]
        tags = with_ids(tags)
        pieces = as_tokens(text, tags, shown)
        if not shown:  # what isn't shown isn't in the answer either
            answer = re.sub("|".join(re.escape(token) for _, token in tags.tokens), "", answer)
        assert (name, *joined(parsed(tags, pieces))) == (name, thought, answer)
        assert (name, *spans_by(tags, pieces)) == (name, thought, answer)


def test_the_parts_of_a_text_dont_depend_on_its_chunks() -> None:
    chance = random.Random(1)
    for name, inside in product(sorted(CASES) * 3, (False, True)):
        tags, text, _, _ = CASES[name]
        whole = joined(parsed(tags, cut(text, []), inside))
        cuts = chance.choices(range(len(text) + 9), k=chance.randint(1, 9))
        assert joined(parsed(tags, cut(text, cuts), inside)) == whole, (name, cuts)


PIECES = ("<think>", "</think>", "<thi", "</", "<", " ", "\n", "word", "ü", "nk>")


def test_no_character_is_lost_or_duplicated() -> None:
    chance = random.Random(2)
    texts = ["".join(chance.choices(PIECES, k=chance.randint(0, 12))) for _ in range(100)]
    for text, inside in product(("<think>a</think>\n\n", *texts), (False, True)):
        cuts = chance.choices(range(60), k=chance.randint(0, 9))
        parts = parsed(THINK_TAGS, cut(text, cuts), inside)
        assert "".join(part for part, _ in parts) == text
        assert joined(parts) == joined(parsed(THINK_TAGS, cut(text, []), inside)), (text, cuts)


@pytest.mark.parametrize(
    ("text", "thought", "answer"),
    [
        ("so far", "so far", ""),
        ("a\n</think>\n\nb", "a\n", "b"),
        ("a </think> b", "a ", "b"),
        ("<think>a</think>b", "a", "b"),
    ],
)
def test_an_answer_that_begins_inside_its_reasoning_is_reasoning_until_the_end_tag(
    text: str, thought: str, answer: str
) -> None:
    assert joined(parsed(THINK_TAGS, cut(text, range(len(text))), inside=True)) == (thought, answer)


@pytest.mark.parametrize("shown", [False, True], ids=["special", "with text"])
def test_if_tags_are_tokens_their_spelled_form_is_text(shown: bool) -> None:
    tags = with_ids(THINK_TAGS)
    (close, _), (opening, _) = tags.tokens

    def token(number: int) -> Piece:
        return (dict(tags.tokens)[number] if shown else "", number)

    spelled = cut("The tag </think> closes.", range(30))
    pieces = [token(opening), *spelled, token(close), *cut("<think> opens.", range(30))]
    assert joined(parsed(tags, pieces)) == ("The tag </think> closes.", "<think> opens.")
    assert joined(parsed(tags, spelled)) == ("", "The tag </think> closes.")
    assert joined(parsed(tags, cut("<think>a</think>b", [1, 9]))) == ("", "<think>a</think>b")


def test_an_end_tag_in_an_answer_of_one_message_is_text() -> None:
    tags = with_ids(THINK_TAGS)
    pieces = as_tokens("<think>a</think>b</think>c", tags, shown=True)
    assert joined(parsed(tags, pieces)) == ("a", "b</think>c")


def test_late_tags_belong_to_the_answer() -> None:
    for text in (
        (
            "Reasoning models write this form:\n\n```\n<think>\nthe thought\n</think>\n"
            "the answer\n```\n\nThat is all."
        ),
        "Tags:\n</think>\nis the closing one.",
        *("", " ", "a <think>b</think>", "Write </think> to end it.", "<b>", "<thinker>a", "<thi"),
    ):
        assert answer_text(text, text_spans(text)) == text
        assert reasoning_text(text, text_spans(text)) == ""
    inside = find_spans((), "I think hard about it.</think>The answer is 4.", THINK_TAGS, True)
    assert inside == (AnswerSpan(0, 22, True), AnswerSpan(30, 46, False))


def test_reasoning_of_a_remote_answer_is_what_its_server_marks() -> None:
    reader = AnswerText()
    pieces = [("<think>\n", TARGET), ("The tag </think> closes.", REASONING)]
    pieces += [("\n</think>\n\n", TARGET), ("<think> opens.", TARGET)]
    made = steps([(text.encode(), NO_TOKEN_ID) for text, _ in pieces])
    for one, (_, source) in zip(made, pieces, strict=True):
        reader.append(one._replace(sources=(source,)))
    reader.finish()
    whole = "".join(text for text, _ in pieces)
    assert reasoning_text(whole, reader.spans) == "\nThe tag </think> closes.\n"
    assert answer_text(whole, reader.spans) == "<think> opens."


def steps(pieces: Sequence[tuple[bytes, int]], num_held: int = 0) -> tuple[StepDone, ...]:
    made, num_bytes = [], 0
    for number, (piece, token_id) in enumerate(pieces):
        num_bytes += len(piece)
        made.append(
            StepDone(
                *("s", "r", number, (token_id,), (piece,), (TARGET,)),
                *(max(0, num_bytes - num_held), 1, (TARGET,), StepTimes(0, 0, 0, 0), 0.0, 1),
            )
        )
    return tuple(made)


def test_spans_include_text_held_back_at_the_end_of_a_step() -> None:
    tags = with_ids(THINK_TAGS)
    (close, _), (opening, _) = tags.tokens
    pieces = [(b"<think>", opening), ("ü".encode(), 1), (b"</think>", close), (b"Yes", 2)]
    text = "<think>ü</think>Yes"
    for num_held in (0, 2, 5, 50):
        spans = find_spans(steps(pieces, num_held), text, tags)
        assert (reasoning_text(text, spans), answer_text(text, spans)) == ("ü", "Yes")
    lost = find_spans(steps(pieces[2:]), text, tags)  # its steps are damaged
    assert (reasoning_text(text, lost), answer_text(text, lost)) == ("ü", "Yes")
