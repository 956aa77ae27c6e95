"""Calls of functions in answers: every format, however the text is cut; and the grammars."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterable
from itertools import pairwise

import pytest

from medusa_core.chats.tool_calls.events import CallDelta, CallStarted, ContentDelta
from medusa_core.chats.tool_calls.openings import triggers
from medusa_core.chats.tool_calls.parser import ToolCallParser, new_call_id
from medusa_core.chats.tool_calls.python_calls import python_calls
from medusa_core.errors import GrammarError
from medusa_core.messages import (
    THINK_TAGS,
    ChatMessage,
    ReasoningFormat,
    Role,
    StopReason,
    ToolCall,
)
from medusa_core.messages.tool_calls import ArgumentStyle
from medusa_core.models.text.answer_grammar import (
    AnswerRules,
    ReasoningState,
    ToolChoice,
    ToolMode,
    answer_grammar,
)
from medusa_core.models.text.grammar_process import GrammarProcess
from medusa_core.models.text.tool_calls.raw_strings import string_expression
from medusa_core.models.text.tool_calls.tool_prompt import with_described_tools
from medusa_core.server.answer_reader import AnswerReader
from medusa_core.server.chat import AnswerEnd, Finish, TextDelta
from medusa_core.server.dialects.openai_messages import ToolFields
from medusa_core.server.records import validate
from medusa_core.server.session_pool import SessionPool
from tests.support.models.tool_call_templates import TEMPLATES, format_of, written
from tests.support.server.answer_steps import END_ID, done, step
from tests.support.server.grammar_checks import MARK_IDS, matches, token_ids_of

FORMATS = {name: format_of(name) for name in TEMPLATES}
CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Ulm", "Rome"]}, "days": {"type": "integer"}},
    "required": ["city"],
}
WEATHER = json.dumps({"name": "weather", "description": "of a city", "parameters": CITY})
CLOCK = json.dumps({"name": "clock", "description": "", "parameters": {}})
TOOLS = [json.loads(tool) for tool in (WEATHER, CLOCK)]
NAMES = ("weather", "clock")
Found = tuple[str, list[tuple[str, str]]]

_ULM, _CLOCK = ("weather", '{"city": "Ulm"}'), ("clock", "{}")
_UNKNOWN = '<tool_call>{"name": "rm", "arguments": {}}</tool_call>'
READ: list[tuple[str, str, Found]] = [
    (
        "hermes",
        'So:\n<tool_call>\n{"name": "weather", "arguments": {"city": "Ulm"}}\n</tool_call>',
        ("So:", [_ULM]),
    ),
    (
        "hermes",
        (
            '<tool_call>\n{"name": "weather", "arguments": {"city": "Ulm"}}\n</tool_call>\n'
            '<tool_call>{"arguments": {}, "name": "clock"}</tool_call>'
        ),
        ("", [_ULM, _CLOCK]),
    ),
    ("hermes", '{"name": "clock", "arguments": {}}\n</tool_call>', ("", [_CLOCK])),
    ("hermes", '<tool_call>{"name": "clock", "arguments": "{}"}</tool_call>', ("", [_CLOCK])),
    (
        "hermes",
        '```json\n{\n  "name": "clock",\n  "arguments": {}\n}\n```',
        ("", [_CLOCK]),
    ),
    (
        "hermes",
        '{{"name": "weather", "arguments": {"city": "Ulm"}}}\n{"name": "clock", "arguments": {}}',
        ("", [_ULM, _CLOCK]),
    ),
    (
        "hermes",
        '<tool_call>\n{{"name": "clock", "arguments": {}}}\n</tool_call>',
        ("", [_CLOCK]),
    ),
    ("hermes", '{{"name": "rm", "arguments": {}}}', ('{{"name": "rm", "arguments": {}}}', [])),
    (
        "hermes",
        '<tool_call>{"name": "weather", "arguments": {"city": "}\\"{"}}</tool_call> done',
        (" done", [("weather", '{"city": "}\\"{"}')]),
    ),
    ("hermes", _UNKNOWN, (_UNKNOWN, [])),
    ("hermes", "a <tool_ca <tool_call> b", ("a <tool_ca <tool_call> b", [])),
    ("hermes", '<tool_call>{"name": "clock", ', ('<tool_call>{"name": "clock", ', [])),
    ("hermes", '<tool_call>{"name": "clock"; 1}', ('<tool_call>{"name": "clock"; 1}', [])),
    ("llama_3", '{"name": "weather", "parameters": {"city": "Ulm"}}', ("", [_ULM])),
    (
        "llama_3",
        (
            '<|python_tag|>{"name": "weather", "parameters": {"city": "Ulm"}}; '
            '{"name": "clock", "parameters": {}}'
        ),
        ("", [_ULM, _CLOCK]),
    ),
    ("llama_3", '{"city": "Ulm"}', ('{"city": "Ulm"}', [])),
    ("llama_3", "<|python_tag", ("<|python_tag", [])),
    (
        "mistral_list",
        (
            '[TOOL_CALLS][{"name": "weather", "arguments": {"city": "Ulm"}, "id": "a1"}, '
            '{"name": "clock", "arguments": {}}]'
        ),
        ("", [_ULM, _CLOCK]),
    ),
    (
        "mistral_args",
        '[TOOL_CALLS]weather[ARGS]{"city": "Ulm"}[TOOL_CALLS]clock[ARGS]{}',
        ("", [_ULM, _CLOCK]),
    ),
    ("mistral_args", "[TOOL_CALLS]rm[ARGS]{}", ("[TOOL_CALLS]rm[ARGS]{}", [])),
    ("mistral_args", "[TOOL_CALLS]clock[ARGS] now", ("[TOOL_CALLS]clock[ARGS] now", [])),
    ("gemma", '```tool_code\n[weather(city="Ulm"), clock()]\n```', ("", [_ULM, _CLOCK])),
    ("gemma", '{"name": "weather", "parameters": {"city": "Ulm"}}', ("", [_ULM])),
    ("gemma", "clock() is a function.", ("clock() is a function.", [])),
    ("gemma", "[a link](weather)", ("[a link](weather)", [])),
    (
        "json",
        '{"name": "weather", "arguments": {"city": "Ulm"}}\n{"name": "clock", "arguments": {}}',
        ("", [_ULM, _CLOCK]),
    ),
    ("json", "  Just text: {}.  ", ("  Just text: {}.  ", [])),
]


def collected(parts: Iterable[object]) -> Found:
    text, calls = "", []
    for part in parts:
        if isinstance(part, ContentDelta | TextDelta):
            text += part.text
        elif isinstance(part, CallStarted):
            assert part.place == len(calls)
            calls.append([part.name, ""])
        elif isinstance(part, CallDelta):
            calls[part.place][1] += part.text
    return text, [(name, arguments) for name, arguments in calls]


def read(name: str, text: str, cuts: list[int]) -> Found:
    reader = ToolCallParser(FORMATS[name], TOOLS)
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parts = [part for begin, end in pairwise(places) for part in reader.push(text[begin:end])]
    return collected([*parts, *reader.finish()])


def test_calls_are_parsed_from_whole_texts_and_single_characters() -> None:
    for name, text, found in READ:
        assert read(name, text, []) == found
        assert read(name, text, list(range(len(text)))) == found


PIECES = (
    *("<tool_call>", "</tool_call>", "[TOOL_CALLS]", "[ARGS]", "<|python_tag|>", "```"),
    *("```json\n", '{"name": "clock", "arguments": {', "}", "{", '"', "\\", "}}", "[", "]"),
    *(", ", "\n", " ", "weather", "clock()", "(", "word", '"name": "weather"', ";"),
    *('"parameters": {"city": "Ulm"}', ":", "<tool", "ü", ">>>", "<function=", "</"),
    *("<parameter=city>", "</parameter>", "<arg_key>", "</arg_key>", "<arg_value>", ">"),
    *("</arg_value>", "<m:calls>", "<invoke name=", "<|calls|>", "<|call|>", "<|q|>"),
    *("functions.clock", "<|call>call:", "{days:2}", "<call|>", "days", "<:", "</:days>"),
)


def pieces(chance: random.Random) -> str:
    """Strategy of texts with fragments of calls."""
    return "".join(chance.choices(PIECES, k=chance.randint(0, 12)))


def cuts(chance: random.Random) -> list[int]:
    """Strategy of chunk boundaries in a text."""
    return chance.choices(range(300), k=chance.randint(0, 20))


def test_calls_dont_depend_on_the_chunks_of_the_text() -> None:
    chance = random.Random(1)
    for name in sorted(FORMATS) * 6:
        text = pieces(chance)
        found, calls = read(name, text, cuts(chance))
        assert (found, calls) == read(name, text, [])
        assert calls or found == text


def test_damaged_calls_dont_depend_on_the_chunks_of_the_text() -> None:
    chance = random.Random(2)
    for name in sorted(FORMATS) * 5:
        text = "So: " + both_calls(name)
        for _ in range(chance.randint(1, 2)):
            at, length = chance.randrange(len(text)), chance.randint(0, 12)
            text = text[:at] + pieces(chance) + text[at + length :]
        whole = read(name, text, [])
        assert read(name, text, cuts(chance)) == whole
        assert read(name, text, list(range(len(text)))) == whole
        assert whole[1] or whole[0] == text


def test_arguments_are_streamed_while_they_are_written() -> None:
    reader = ToolCallParser(FORMATS["hermes"], TOOLS, lambda: "id")
    assert list(reader.push('<tool_call>{"name": "weather", "arguments"')) == []
    assert list(reader.push(': {"ci')) == [CallStarted(0, "id", "weather"), CallDelta(0, '{"ci')]
    assert list(reader.push('ty": "')) == [CallDelta(0, 'ty": "')]


JSON_FORMATS = sorted(name for name, shape in FORMATS.items() if shape.style is ArgumentStyle.JSON)
JSON_TEXTS = ("", "a", '\\"\n', "é 🦆", "}", "]", "{", "'", "\x7f", "</tool_call")


def json_value(chance: random.Random, depth: int = 0) -> object:
    """Strategy of JSON values."""
    match chance.randrange(7 if depth < 3 else 5):
        case 5:
            return [json_value(chance, depth + 1) for _ in range(chance.randint(0, 3))]
        case 6:
            keys = chance.sample(JSON_TEXTS[:6], chance.randint(0, 3))
            return {key: json_value(chance, depth + 1) for key in keys}
        case _:
            return chance.choice((None, True, 0, -7, 1 << 70, 0.5, *JSON_TEXTS[:7]))


def test_arguments_become_json_on_one_line_however_they_were_written() -> None:
    chance = random.Random(3)
    for name in JSON_FORMATS * 8:
        values = {key: json_value(chance) for key in chance.sample(JSON_TEXTS, 3)}
        indent, is_ascii = chance.choice((None, 1, 2, "\t")), chance.random() < 0.5
        written = json.dumps(values, indent=indent, ensure_ascii=is_ascii).replace("]", " ]")
        spaced = call(name, _ULM[1]).replace(_ULM[1], written)
        wanted = json.dumps(json.loads(written), ensure_ascii=False)
        assert read(name, spaced, cuts(chance)) == ("", [("weather", wanted)]), written


def test_arguments_that_are_almost_json_become_json() -> None:
    for spelled, value in (
        ('"def f():\n\treturn 1"', "def f():\n\treturn 1"),
        (r'"C:\Users, \d+ and \'"', r"C:\Users, \d+ and '"),
        (r'"\ud83e\udd86 \ud83e"', "🦆 \ud83e"),
        ("[1,\n 2,\n]", [1, 2]),
        ('{"a": 1 ,\n}', {"a": 1}),
    ):
        text = f'```json\n{{"name": "weather", "arguments": {{\n  "city":{spelled}\n}}}}\n```'
        for cuts in ([], list(range(len(text)))):
            found, [(_, arguments)] = read("hermes", text, cuts)
            assert (found, json.loads(arguments)) == ("", {"city": value})
            assert arguments.encode()
            assert not re.search(r"\s\s|[\n\t]", arguments)


def test_line_breaks_between_bare_keys_are_dropped() -> None:
    text = call("bare_keys", '{"city": "Ulm", "days": 2}')
    spaced = text.replace("{", "{\n ").replace(",", " ,\n ").replace("}", "\n}")
    assert spaced != text
    for cuts in ([], list(range(len(spaced)))):
        assert read("bare_keys", spaced, cuts) == (
            "",
            [("weather", '{"city": "Ulm", "days": 2}')],
        )


def test_an_object_that_is_no_call_is_streamed_as_text() -> None:
    for text in ('{"name": "Bob", "age', '{"city": "Ulm"'):
        reader = ToolCallParser(FORMATS["json"], TOOLS)
        assert collected(reader.push(text)) == (text, [])


def test_ids_of_calls_have_mistrals_form() -> None:
    ids = {new_call_id() for _ in range(20)}
    assert len(ids) == 20
    assert all(len(one) == 9 and one.isalnum() for one in ids)


def test_python_code_beyond_a_call_is_text() -> None:
    others = ("weather(1)", "weather(**a)", "weather(city=open('x'))", "rm()", "1")
    for text in (*others, "weather(city={1})"):
        assert (text, python_calls(text, NAMES)) == (text, [])


def test_names_that_python_does_not_allow_are_called() -> None:
    calls = (
        "get-time(from=\"a, to='b'\", max-results=3, class={'in': [1, true]})",
        "name_0(is='(x=')",
    )
    assert python_calls(f"[{', '.join(calls)}]", ["get-time", "name_0"]) == [
        ("get-time", '{"from": "a, to=\'b\'", "max-results": 3, "class": {"in": [1, true]}}'),
        ("name_0", '{"is": "(x="}'),
    ]
    begin = time.process_time()
    assert python_calls("f(a=" + '\\"' * 30_000, ["f"]) == []
    assert time.process_time() - begin < 2  # quadratic: a minute


AUTO = ToolChoice()


def grammar(name: str, choice: ToolChoice = AUTO, marks: dict[str, int] | None = None) -> str:
    rules = (FORMATS[name], (WEATHER, CLOCK), choice, "", ReasoningState.NONE, marks or {})
    return answer_grammar(AnswerRules(*rules))


def marks_of(name: str) -> dict[str, int]:
    texts = FORMATS[name].texts
    return {
        mark: number for mark, number in MARK_IDS.items() if any(mark in text for text in texts)
    }


def all_marks(name: str) -> list[dict[str, int]]:
    """Return formats with delimiters as plain text and as tokens."""
    found = marks_of(name)
    return [{}, found] if found else [{}]


REQUIRED = ToolChoice(ToolMode.REQUIRED)
# Calls in forms that no template writes.
UNWRITTEN = {
    "json": '{"name": "%s", "arguments": %s}',
    "gemma": '{"name": "%s", "parameters": %s}',
    "granite_3": '<|tool_call|>[{"name": "%s", "arguments": %s}]',
    "harmony": "<|channel|>commentary to=functions.%s <|constrain|>json<|message|>%s<|call|>",
    "functionary": "%s\n%s",
}
ONE_CALL = ("harmony", "llama_3")


def call(name: str, arguments: str, function: str = "weather") -> str:
    """An answer that is one call."""
    if name in UNWRITTEN:
        return UNWRITTEN[name] % (function, arguments)
    return written(name, "", [(function, arguments)], (WEATHER, CLOCK)).strip()


def both_calls(name: str) -> str:
    """An answer of two calls."""
    first, second = call(name, '{"city": "Ulm"}'), call(name, "{}", "clock")
    if name == "llama_3":
        return f"{first}; {second}"
    if name == "harmony":
        return f"{first}<|start|>assistant{second}"
    if name == "functionary":
        return f"{first}>>>{second}"
    if name == "granite_3":
        return first.removesuffix("]") + ", " + second.removeprefix("<|tool_call|>[")
    if name in UNWRITTEN:
        return f"{first}\n{second}"
    return written(name, "", [_ULM, _CLOCK], (WEATHER, CLOCK)).strip()


def free_text(name: str, text: str) -> str:
    return f"all\n{text}" if name == "functionary" else text


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_grammar_produces_calls_that_the_parser_reads(name: str) -> None:
    for marks in all_marks(name):
        right, wrong = call(name, '{"city": "Ulm", "days": 2}'), call(name, '{"city": "Paris"}')
        forced, free = grammar(name, REQUIRED, marks), grammar(name, marks=marks)
        assert matches(forced, right, marks)
        assert matches(free, right, marks)
        assert read(name, right, []) == ("", [("weather", '{"city": "Ulm", "days": 2}')])
        bad = ("{}", '{"city": "Ulm", "country": 1}', '{"city": "Ulm", "days": "two"}')
        for text in (wrong, *(call(name, arguments) for arguments in bad)):
            assert not matches(forced, text, marks)
            assert not matches(free, text, marks)
        assert not matches(forced, "It rains.", marks)
        for text in ("It rains.", "", '{"name": "Bob"}', "a [x] <y>"):
            assert matches(free, free_text(name, text), marks)
        if triggers(FORMATS[name]):
            before = ">>>" if name == "functionary" else ""
            assert matches(free, free_text(name, f"Well: {before}{right}"), marks)
            assert not matches(free, free_text(name, f"Well: {before}{wrong}"), marks)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_several_calls_are_generated_only_if_allowed(name: str) -> None:
    for marks in all_marks(name):
        first, both = call(name, '{"city": "Ulm"}'), both_calls(name)
        assert read(name, both, []) == ("", [_ULM, _CLOCK])
        for mode in (ToolMode.AUTO, ToolMode.REQUIRED):
            several = grammar(name, ToolChoice(mode), marks)
            assert matches(several, both, marks) == (name not in ONE_CALL)
            alone = grammar(name, ToolChoice(mode, is_parallel=False), marks)
            assert matches(alone, first, marks)
            assert not matches(alone, both, marks)


OBJECT_FORMATS = sorted(name for name, shape in FORMATS.items() if shape.name_key)


def unmarked(name: str, arguments: str, function: str = "weather") -> str:
    """A call as models write it that were trained on code."""
    shape = FORMATS[name]
    pairs = f'"{shape.name_key}": "{function}",\n  "{shape.arguments_key}": {arguments}'
    return f"{{\n  {pairs}\n}}"


@pytest.mark.parametrize("name", OBJECT_FORMATS)
def test_calls_without_their_marks_are_enforced_from_the_name_on(name: str) -> None:
    made, right = grammar(name), unmarked(name, _ULM[1])
    alone = grammar(name, ToolChoice(is_parallel=False))
    for text in (right, f"```json\n{right}\n```", f"```\n{right}\n```", f"\n{right}"):
        assert matches(made, text), text
        assert read(name, text, []) == ("", [_ULM])
        for wrong in ('"Paris"', '"Ulm", "x": 1', "1"):
            assert not matches(made, text.replace('"Ulm"', wrong))
        unknown = text.replace("weather", "rain")
        assert matches(made, unknown)
        assert read(name, unknown, []) == (unknown, [])
    for gap in ("\n", ",\n", ", "):
        both = f"```json\n{right}{gap}{unmarked(name, '{}', 'clock')}\n```"
        assert read(name, both, []) == ("", [_ULM, _CLOCK])
        assert matches(made, both) == (name not in ONE_CALL)
        assert not matches(alone, both)
    for text in ('```json\n{"a": 1}\n```', '```json\n{"city": "Ulm"}\n```', "```\nls\n```"):
        assert matches(made, text)
        assert read(name, text, []) == (text, [])


def test_a_named_function_is_the_only_one_allowed() -> None:
    named = grammar("json", ToolChoice(ToolMode.REQUIRED, "clock"))
    assert matches(named, '{"name": "clock", "arguments": {}}')
    assert not matches(named, call("json", '{"city": "Ulm"}'))


RICH = {
    "type": "object",
    "$defs": {"unit": {"enum": ["C", "F"]}, "size": {"type": "integer", "minimum": 0}},
    "properties": {
        "unit": {"$ref": "#/$defs/unit"},
        "size": {"$ref": "#/$defs/size"},
        "note": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        "anything": {"description": "of any type"},
        "odd": {"type": "integer", "not": {"const": 3}},
        "list": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
    },
    "required": ["size"],
}
RICH_TOOL = json.dumps({"name": "weather", "description": "", "parameters": RICH})


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - UNWRITTEN.keys()))
def test_schemas_of_all_kinds_are_enforced_in_every_format(name: str) -> None:
    rules = (FORMATS[name], (RICH_TOOL,), REQUIRED, "", ReasoningState.NONE, {})
    made = answer_grammar(AnswerRules(*rules))
    values = {"unit": "C", "size": 3, "note": "n", "either": True, "anything": "x", "odd": 5}
    some = ({"size": 3}, {"unit": "F", "size": 0, "list": [{"a": 1}]}, values)
    for wanted in some:
        text = call(name, json.dumps(wanted))
        assert matches(made, text), text
        parser = ToolCallParser(FORMATS[name], [json.loads(RICH_TOOL)])
        _, found = collected([*parser.push(text), *parser.finish()])
        assert [json.loads(arguments) for _, arguments in found] == [wanted]
    for bad in ({"size": -1}, {"size": "x"}, {"unit": "K", "size": 1}, {"unit": "C"}):
        assert not matches(made, call(name, json.dumps(bad))), bad
    assert not matches(made, call(name, '{"size": 1, "either": "no"}'))


STRINGS = {
    "type": "object",
    "properties": {
        "code": {"type": "string", "pattern": "^[A-Z]{2}-\\d{3}$", "maxLength": 6},
        "part": {"type": "string", "pattern": "a.c|^x/"},
        "short": {"type": "string", "minLength": 2, "maxLength": 4},
        "odd": {"type": "string", "pattern": "(?!a)b"},
        "kind": {"enum": ["new", 7, None]},
        "one": {"const": "yes"},
    },
}
STRING_TOOL = json.dumps({"name": "weather", "description": "", "parameters": STRINGS})
VALID_STRINGS = (
    {"code": "AB-123", "part": "-abc-", "short": "äöü", "odd": "c", "kind": "new", "one": "yes"},
    {"code": "ZZ-000", "part": "x/2", "kind": 7},
    {"part": "aac", "short": "ab"},
    {"kind": None},
)
INVALID_STRINGS = (
    *({"code": "AB-1234"}, {"code": "xAB-123"}, {"code": "AB-12"}, {"code": ""}),
    *({"part": "ab"}, {"part": "-x/"}, {"short": "a"}, {"short": "abcde"}),
    *({"kind": "old"}, {"kind": 8}, {"one": "no"}),
)


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - UNWRITTEN.keys()))
def test_strings_match_their_schemas_in_every_format(name: str) -> None:
    marks = marks_of(name)
    rules = (FORMATS[name], (STRING_TOOL,), REQUIRED, "", ReasoningState.NONE, marks)
    made = answer_grammar(AnswerRules(*rules))
    for wanted in VALID_STRINGS:
        text = call(name, json.dumps(wanted, ensure_ascii=False))
        assert matches(made, text, marks), text
        parser = ToolCallParser(FORMATS[name], [json.loads(STRING_TOOL)])
        _, found = collected([*parser.push(text), *parser.finish()])
        assert [json.loads(arguments) for _, arguments in found] == [wanted]
    for bad in INVALID_STRINGS:
        assert not matches(made, call(name, json.dumps(bad)), marks), bad


CHOICES = {"kind": {"enum": [f"kind {number}" for number in range(1500)]}}
CHOICE_TOOL = json.dumps(
    {
        "name": "weather",
        "description": "",
        "parameters": {"type": "object", "properties": CHOICES},
    }
)


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - UNWRITTEN.keys()))
def test_one_of_very_many_texts_is_chosen_in_every_format(name: str) -> None:
    marks = marks_of(name)
    rules = (FORMATS[name], (CHOICE_TOOL,), REQUIRED, "", ReasoningState.NONE, marks)
    made = answer_grammar(AnswerRules(*rules))
    for number in (1, 1499):
        assert matches(made, call(name, json.dumps({"kind": f"kind {number}"})), marks)
    assert not matches(made, call(name, '{"kind": "kind 1500"}'), marks)


PATTERNS = {
    "^a|b$": (("ax", "xb"), ("xa", "bx")),
    "^(?:a|b/c)+$": (("ab/ca",), ("ab",)),
    "\\p{Lu}\\d": (("xÄ1",), ("xä1",)),
    "[^\\s@]+@[^\\s@]+": (("a@b",), ("a @",)),
    "^\\$?\\d{1,3}$": (("$12", "1"), ("1234",)),
    "^[\\w./-]*$": (("a/b-c.d", ""), ("a b",)),
    "^line\nend$": (("line\nend",), ("line",)),
}
# They mean something else in the grammar's dialect, or nothing.
FOREIGN = ("(?=a)", "(?i)a", "a{,3}", "[[a]]", "a\\b", "(^a|b)", "\\1", "[]", "a{9999}", "(?>a)")


def test_patterns_of_schemas_are_searched_in_raw_strings() -> None:
    for pattern, (good, bad) in PATTERNS.items():
        made = f"start: VALUE\nVALUE: {string_expression({'pattern': pattern}, '</p>')}\n"
        assert [text for text in good if not matches(made, text)] == []
        assert [text for text in (*bad, f"{good[0]}</p>") if matches(made, text)] == []


def test_patterns_of_another_dialect_are_not_enforced() -> None:
    assert [one for one in FOREIGN if string_expression({"pattern": one}) != ""] == []


def test_answers_without_calls_match_the_response_schema() -> None:
    for name in FORMATS:
        rules = (FORMATS[name], (WEATHER,), ToolChoice(), '{"type": "integer"}')
        either = answer_grammar(AnswerRules(*rules, ReasoningState.NONE, {}))
        assert matches(either, "5")
        assert matches(either, call(name, '{"city": "Ulm"}'))
        assert not matches(either, "five")


def test_odd_names_of_functions_are_written_as_json() -> None:
    name = 'a "b" \\ü/\n'
    tool = json.dumps({"name": name, "parameters": {}})
    rules = AnswerRules(FORMATS["json"], (tool,), ToolChoice(), "", ReasoningState.NONE, {})
    call = json.dumps({"name": name, "arguments": {}}, ensure_ascii=False)
    assert matches(answer_grammar(rules), call)
    assert collected(ToolCallParser(FORMATS["json"], [json.loads(tool)]).push(call)) == (
        "",
        [(name, "{}")],
    )


def answered(texts: list[tuple[int, bytes]], shown: str, name: str) -> list[object]:
    """The parts of an answer that comes in one step."""
    shape = FORMATS[name]
    marks = {number: mark for mark, number in MARK_IDS.items()}
    reader = AnswerReader(
        THINK_TAGS, frozenset({END_ID}), (), False, ToolCallParser(shape, TOOLS), marks
    )
    first = step(0, tuple(text for _, text in texts), len(shown))
    first = first._replace(token_ids=tuple(token_id for token_id, _ in texts))
    return [*reader.step(first), *reader.finish(done(shown))]


def test_special_tokens_can_delimit_calls() -> None:
    mark, args = MARK_IDS["[TOOL_CALLS]"], MARK_IDS["[ARGS]"]
    texts = [(mark, b""), (1, b"clock"), (args, b""), (2, b"{}"), (END_ID, b"")]
    *parts, end = answered(texts, "clock{}", "mistral_args")
    assert collected(parts) == ("", [_CLOCK])
    assert isinstance(end, AnswerEnd)
    assert end.finish is Finish.TOOL_CALLS


def test_an_answer_cut_within_a_call_ends_by_length() -> None:
    reader = AnswerReader(
        THINK_TAGS, frozenset(), (), False, ToolCallParser(FORMATS["json"], TOOLS)
    )
    text = '{"name": "weather", "arguments": {"ci'
    parts = [*reader.step(step(0, (text.encode(),), len(text)))]
    *_, end = reader.finish(done(text, StopReason.MAX_TOKENS))
    assert collected(parts) == ("", [("weather", '{"ci')])
    assert isinstance(end, AnswerEnd)
    assert end.finish is Finish.LENGTH


def test_calls_within_reasoning_are_ignored() -> None:
    text = '<think><tool_call>{"name": "clock", "arguments": {}}</tool_call></think>No.'
    *parts, end = answered([(1, text.encode())], text, "hermes")
    assert [part.text for part in parts if not part.is_reasoning] == ["No."]
    assert isinstance(end, AnswerEnd)
    assert end.finish is Finish.STOP


HARMONY = ReasoningFormat(
    "<|channel|>analysis<|message|>",
    "<|end|>",
    "<|start|>assistant",
    ("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
    tokens=tuple(
        (MARK_IDS[name], name) for name in ("<|channel|>", "<|message|>", "<|start|>", "<|end|>")
    ),
)
HARMONY_MARKS = {
    name: MARK_IDS[name]
    for name in ("<|channel|>", "<|message|>", "<|start|>", "<|call|>", "<|constrain|>")
}
HARMONY_CALL = (
    '<|channel|>commentary to=functions.weather <|constrain|>json<|message|>{"city": "Ulm"}<|call|>'
)
HARMONY_ANSWERS = {
    HARMONY_CALL: ("", ""),
    f"<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant{HARMONY_CALL}": ("Hm.", ""),
    "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant"
    "<|channel|>commentary<|message|>I look.<|end|><|start|>assistant" + HARMONY_CALL: (
        "Hm.",
        "I look.",
    ),
}


@pytest.mark.parametrize("answer", HARMONY_ANSWERS)
def test_a_call_may_be_one_of_several_messages_of_an_answer(answer: str) -> None:
    thought, text = HARMONY_ANSWERS[answer]
    names = {number: name for name, number in MARK_IDS.items()}
    marks = {number: name for name, number in HARMONY_MARKS.items()}
    ids = token_ids_of(answer, MARK_IDS)
    pieces = [b"" if token_id in names else bytes([token_id]) for token_id in ids]
    shown = b"".join(pieces).decode()
    parser = ToolCallParser(FORMATS["harmony"], TOOLS)
    reader = AnswerReader(HARMONY, frozenset({END_ID}), (), False, parser, marks)
    first = step(0, tuple(pieces), len(shown))._replace(token_ids=tuple(ids))
    *parts, end = [*reader.step(first), *reader.finish(done(shown))]
    thoughts = [part for part in parts if isinstance(part, TextDelta) and part.is_reasoning]
    assert "".join(part.text for part in thoughts) == thought
    assert collected(part for part in parts if part not in thoughts) == (text, [_ULM])
    assert isinstance(end, AnswerEnd)
    assert end.finish is Finish.TOOL_CALLS
    for mode in (ToolMode.AUTO, ToolMode.REQUIRED):
        rules = AnswerRules(
            FORMATS["harmony"],
            (WEATHER, CLOCK),
            ToolChoice(mode),
            "",
            ReasoningState.POSSIBLE,
            HARMONY_MARKS,
            HARMONY,
        )
        made = answer_grammar(rules)
        is_wanted = mode is ToolMode.AUTO or not text
        assert matches(made, answer, MARK_IDS) == is_wanted
        assert not matches(made, answer.replace("Ulm", "Paris"), MARK_IDS)
        final = "<|channel|>final<|message|>It rains."
        assert matches(made, final, MARK_IDS) == (mode is ToolMode.AUTO)


def test_a_system_message_describes_functions_if_the_template_cannot() -> None:
    call = ToolCall("a", "clock", "{}")
    turns = (
        ChatMessage(Role.SYSTEM, "Be brief."),
        ChatMessage(Role.USER, "Time?"),
        ChatMessage(Role.ASSISTANT, "", tool_calls=(call,)),
        ChatMessage(Role.TOOL, "noon", tool_name="clock", call_id="a"),
    )
    described = with_described_tools(turns, (CLOCK,), FORMATS["gemma"], is_parallel=False)
    assert described[0].text.startswith("Be brief.\n\n")
    assert CLOCK in described[0].text
    assert '"parameters": {' in described[0].text
    assert [turn.role for turn in described] == [Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER]
    alone = with_described_tools(turns[1:], (CLOCK,), FORMATS["json"], is_parallel=True)
    assert alone[0].role is Role.SYSTEM


def test_a_session_keeps_the_tokens_of_its_own_call() -> None:
    pool = SessionPool(2)
    question = ChatMessage(Role.USER, "Time?")
    asked = ToolCall("a", "weather", '{"city": "Ulm"}')
    sent = ChatMessage(Role.ASSISTANT, "", tool_calls=(asked,))
    as_written = ChatMessage(Role.ASSISTANT, call("hermes", asked.arguments), (1, 2, 3))
    with pool.lease((question,), ()) as lease:
        lease.update((question, sent), as_written)
    spaced = sent._replace(tool_calls=(asked._replace(arguments='{"city":"Ulm"}'),))
    result = ChatMessage(Role.TOOL, "wet", tool_name="weather", call_id="a")
    with pool.lease((question, spaced, result), ()) as lease:
        assert lease.decoded == (question, as_written, result)
        assert lease.messages == (question, sent, result)
        lease.update((*lease.messages, ChatMessage(Role.ASSISTANT, "It rains.")))
    other = sent._replace(tool_calls=(asked._replace(name="clock"),))
    with pool.lease((question, other, result), ()) as lease:
        assert lease.decoded == (question, other, result)


def test_a_grammar_may_refer_to_tokens_by_id() -> None:
    process = GrammarProcess()
    process.check('start: "a" <[151657]> "b"')
    with pytest.raises(GrammarError):
        process.check('start: "a" <no_such_token> "b"')


def test_allowed_tools_restrict_which_functions_may_be_called() -> None:
    tools = tuple(json.dumps({"name": name}) for name in ("one", "two", "three"))
    nested = {"type": "function", "function": {"name": "two"}}
    for choice in (
        {"type": "allowed_tools", "mode": "required", "tools": [{"name": "two"}]},
        {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [nested]}},
    ):
        allowed, found = validate(ToolFields, {"tool_choice": choice}).choose_tools(tools)
        assert (allowed, found.mode) == (tools[1:2], ToolMode.REQUIRED)
