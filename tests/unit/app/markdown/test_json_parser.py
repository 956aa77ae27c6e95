"""Answers that match a JSON schema: indented code whose characters know their source."""

from __future__ import annotations

import json
import time

import pytest

from app.markdown.json_parser import JsonParser
from app.markdown.model import CodeBlock, Paragraph

TEXT = '{"a b": [1, {}, "x, {y}\\"", []], "_c_": {"d": "*e*"}}'
SHOWN = """\
{
  "a b": [
    1,
    {},
    "x, {y}\\"",
    []
  ],
  "_c_": {
    "d": "*e*"
  }
}"""


def code(text: str, start: int = 0) -> CodeBlock:
    (block,) = JsonParser().parse(text, start).blocks
    assert isinstance(block, CodeBlock)
    return block


def shown(text: str) -> str:
    return "\n".join("".join(run.text for run in line) for line in code(text).lines)


def test_json_is_indented_whatever_its_white_space() -> None:
    assert shown(TEXT) == SHOWN
    assert shown(json.dumps(json.loads(TEXT), indent=7)) == SHOWN
    assert json.loads(shown(TEXT)) == json.loads(TEXT)


@pytest.mark.parametrize("end", range(1, len(TEXT)))
def test_each_beginning_is_open_code_with_all_its_characters(end: int) -> None:
    block = code(TEXT[:end])
    assert block.is_open
    assert "".join(shown(TEXT[:end]).split()) == "".join(TEXT[:end].split())
    assert not code(TEXT).is_open


def test_every_character_comes_from_its_place_in_the_answer() -> None:
    for line in code(TEXT, 100).lines:
        for run in line:
            source = TEXT[run.start - 100 : run.end - 100]
            assert run.text == source if run.is_one_to_one else source == run.text.strip()


def test_other_text_is_markdown() -> None:
    (block,) = JsonParser().parse("**5**").blocks
    assert isinstance(block, Paragraph)


def test_deep_and_wide_values_take_bounded_room() -> None:
    begin = time.thread_time()
    assert len(shown("[" * 6_000)) < 100_000
    assert shown("[" + "1," * 3_000).count("\n") < 1_001
    assert time.thread_time() - begin < 2
