"""Calls in the text of an answer: they are in no span, whatever the format and the pieces."""

from __future__ import annotations

import json

import pytest

from medusa_core.chats.answer_text import AnswerText
from medusa_core.chats.conversation import Answer
from medusa_core.chats.reasoning import AnswerSpan
from medusa_core.chats.rounds import Round
from medusa_core.chats.tool_calls.call_reader import CallForm
from medusa_core.messages import (
    TARGET,
    THINK_TAGS,
    GenerateSettings,
    StepDone,
    StepTimes,
    ToolCallFormat,
)
from medusa_core.models.text.tool_calls.known_formats import known_format
from tests.support.models.tool_call_templates import TEMPLATES, format_of, written

TOOLS = (
    json.dumps(
        {
            "name": "add",
            "description": "Adds.",
            "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
        }
    ),
)
FORMATS = sorted(TEMPLATES.keys() - {"gemma", "harmony", "functionary", "granite_3", "json"})
HERMES = ToolCallFormat(
    call_open=('\n<tool_call>\n{"name": "', *ToolCallFormat().call_open[1:]),
    call_close=("}\n</tool_call>",),
)
CALL = '<tool_call>\n{"name": "add", "arguments": {"n": 1}}\n</tool_call>'


def streamed(
    shape: ToolCallFormat, pieces: list[str], ids: list[int] | None = None, **form: object
) -> AnswerText:
    content = AnswerText(THINK_TAGS)
    content.expect_calls(CallForm(shape, TOOLS, **form))  # type: ignore[arg-type]
    num_bytes = 0
    for number, piece in enumerate(pieces):
        num_bytes += len(piece.encode())
        done = StepDone(
            *("s", "a", number, ((ids or [7] * len(pieces))[number],), (piece.encode(),)),
            *((TARGET,), num_bytes, 1, (TARGET,), StepTimes(0, 0, 0, 0), 1, 1),
        )
        before = list(content.spans)
        content.append(done)
        if before:
            *others, last = content.spans[: len(before)]
            assert others == before[:-1], "only the last span grows"
            assert last._replace(end=before[-1].end) == before[-1]
            assert last.end >= before[-1].end
    content.finish()
    return content


def in_pieces(text: str, step: int) -> list[str]:
    return [text[at : at + step] for at in range(0, len(text), step)]


@pytest.mark.parametrize("step", [1, 5, 10_000])
@pytest.mark.parametrize("name", FORMATS)
def test_a_call_of_every_format_is_in_no_span(name: str, step: int) -> None:
    said = "" if name in ("python_alone", "llama_3") else "<think>Hm.</think>Let me add: 1 < 2."
    text = written(name, said, [("add", '{"n": 1}')], TOOLS).rstrip()
    content = streamed(format_of(name), in_pieces(text, step))
    assert content.text == text
    assert content.answer == ("Let me add: 1 < 2." if said else "")
    assert [(call.name, json.loads(call.arguments)) for call in content.calls] == [
        ("add", {"n": 1})
    ]


def test_calls_without_the_markers_of_their_format_are_known() -> None:
    bare = '{"name": "add", "arguments": {"n": 1}}'
    for shape, text, is_unmarked in (
        (HERMES, CALL, False),
        (HERMES, f"```json\n{bare}\n```", True),
        (HERMES, "No call.", False),
        (ToolCallFormat(), bare, False),  # its form has no markers
    ):
        content = streamed(shape, in_pieces(text, 5))
        assert content.has_unmarked_calls == is_unmarked
        answer = Answer([Round("a"), Round("b", content)], GenerateSettings())
        assert answer.has_unmarked_calls == is_unmarked


@pytest.mark.parametrize("step", [1, 4, 10_000])
def test_text_around_calls_keeps_its_positions(step: int) -> None:
    text = f"First.\n{CALL}\n{CALL}\nThen <tool>."
    content = streamed(HERMES, in_pieces(text, step))
    shown = [text[span.start : span.end] for span in content.spans]
    assert list(map(str.strip, shown)) == ["First.", "Then <tool>."]
    assert len(content.calls) == 2


@pytest.mark.parametrize("rest", ["", '"n": 1', '"n": }'])
def test_an_unfinished_call_is_shown_as_text(rest: str) -> None:
    text = f'Yes.\n<tool_call>\n{{"name": "add", "arguments": {{{rest}'
    content = streamed(HERMES, in_pieces(text, 3))
    assert (content.answer, content.calls) == (text, ())


def test_a_whole_call_before_an_unfinished_one_stays_a_call() -> None:
    text = f'Yes.\n{CALL}\n<tool_call>\n{{"name": "add", "arguments": {{"n'
    content = streamed(HERMES, in_pieces(text, 3))
    assert len(content.calls) == 1
    assert content.answer.startswith("Yes.")
    assert content.answer.endswith('{"name": "add", "arguments": {"n')
    assert '{"n": 1}' not in content.answer


def test_a_call_of_an_unknown_function_is_a_call_too() -> None:
    content = streamed(HERMES, in_pieces(CALL.replace('"add"', '"rm"'), 3))
    assert [call.name for call in content.calls] == ["rm"]
    content = streamed(format_of("xml"), ["<tool_call>\n<function=rm>\n</function>\n</tool_call>"])
    assert [call.name for call in content.calls] == ["rm"]
    text = '{"name": "rm", "arguments": {}}'
    assert streamed(HERMES, in_pieces(text, 3)).answer == text, "no marker says that it is a call"


def test_markers_that_are_tokens_have_no_characters() -> None:
    """As LFM2 writes calls; a marker without a call leaves the text around it."""
    shape = known_format("<|im_start|> List of tools: ")
    assert shape is not None
    markers = ((90, "<|tool_call_start|>"), (91, "<|tool_call_end|>"))
    pieces, ids = ["Well", ".", "", "[add(", "n=1)", "]", "", " Done"], [7, 7, 90, 7, 7, 7, 91, 7]
    content = streamed(shape, pieces, ids, markers=markers)
    assert [(call.name, call.arguments) for call in content.calls] == [("add", '{"n": 1}')]
    assert (content.text, content.answer.split()) == ("Well.[add(n=1)] Done", ["Well.", "Done"])
    pieces, ids = ["Well", "", " I ", "won't", ""], [7, 90, 7, 7, 91]
    content = streamed(shape, pieces, ids, markers=markers)
    assert (content.calls, content.answer) == ((), "Well I won't")
    assert content.spans == [AnswerSpan(0, 12, is_reasoning=False)]


def test_a_round_has_the_calls_of_its_text_at_its_end() -> None:
    round_ = Round("r", streamed(HERMES, [f"Yes.\n{CALL}"]))
    round_.end()
    assert [one.call.name for one in round_.calls] == ["add"]
    (answer, result) = round_.messages(keeps_reasoning=True)
    assert (answer.text, answer.tool_calls[0].name) == ("Yes.", "add")
    assert result.text == "The call was not run."
