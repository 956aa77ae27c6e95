"""Forms of tool calls, learned from chat templates."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from medusa_core.chats.tool_calls.events import CallDelta, CallStarted, ContentDelta
from medusa_core.chats.tool_calls.openings import triggers
from medusa_core.chats.tool_calls.parser import ToolCallParser
from medusa_core.errors import TemplateError
from medusa_core.messages import (
    DESCRIBED_JSON,
    ChatMessage,
    Role,
    ToolCall,
    ToolCallFormat,
)
from medusa_core.messages.tool_calls import ArgumentStyle, Slot
from medusa_core.models.text.template import ChatTemplate
from medusa_core.models.text.tool_calls.learn import learn_tool_call_format
from medusa_core.models.text.tool_calls.round_trip import check_round_trip
from medusa_core.system.resources import demo_model_dir, resources_dir
from tests.support.models.tool_call_templates import (
    TEMPLATES,
    format_of,
    learned,
    rendered,
    written,
)

UNWRITTEN = ("json", "gemma", "harmony", "functionary", "granite_3")
PYTHON = {"python", "python_alone"}
WRITTEN = sorted(TEMPLATES.keys() - UNWRITTEN)
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "either": {"type": ["string", "integer"]},
        "count": {"type": "integer"},
        "is_new": {"type": "boolean"},
        "place": {"type": "object"},
        "list": {"type": "array"},
    },
}
TOOLS = (
    {"name": "save", "description": "Saves.", "parameters": SCHEMA},
    {"name": "save_all", "description": "Saves all.", "parameters": {}},
)
TEXTS = tuple(map(json.dumps, TOOLS))
STYLES = {
    "xml": ArgumentStyle.TAGS,
    "glm": ArgumentStyle.TAGS,
    "invoke": ArgumentStyle.TAGS,
    "typed": ArgumentStyle.TAGS,
    "nested": ArgumentStyle.TAGS,
    "recipient": ArgumentStyle.TAGS,
    "python": ArgumentStyle.PYTHON,
    "python_alone": ArgumentStyle.PYTHON,
    "bare_keys": ArgumentStyle.BARE_KEYS,
}
Found = tuple[str, list[tuple[str, object]]]


def parsed(name: str, text: str, step: int = 1) -> Found:
    """Text and calls of an answer that comes in pieces; arguments that are cut stay text."""
    parser = ToolCallParser(format_of(name), TOOLS)
    pieces = [text[at : at + step] for at in range(0, len(text), step)]
    events = [event for piece in pieces for event in parser.push(piece)]
    content, calls = "", []
    for event in (*events, *parser.finish()):
        if isinstance(event, ContentDelta):
            content += event.text
        elif isinstance(event, CallStarted):
            calls.append([event.name, ""])
        elif isinstance(event, CallDelta):
            calls[event.place][1] += event.text
    return content, [(name, _loaded(arguments)) for name, arguments in calls]


def _loaded(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


@pytest.mark.parametrize("name", WRITTEN)
def test_a_call_format_is_learned_from_a_template(name: str) -> None:
    found = format_of(name)
    assert found != DESCRIBED_JSON
    assert found.style is STYLES.get(name, ArgumentStyle.JSON)
    assert found.is_described
    assert found.is_parallel == (name != "llama_3")


VALUES = {
    "text": 'Große "42" {x}, [y]',
    "either": 7,
    "count": -3,
    "is_new": False,
    "place": {"at": [1, "b"], "deep": {"c": "d"}},
    "list": ["a", 2, ["b"]],
}
ODD_TEXTS = (
    "42",
    "true",
    "null",
    '{"a": 1}',
    "",
    " ",
    " spaces ",
    "line\nline",
    "ends\n",
    "\nbegins",
    "<tool_call>",
    "[TOOL_CALLS]",
    "</parameter> and </arg_value>",
    "a < b > c & d",
    '"',
    "\\",
    "日本語 🦆",
)


@pytest.mark.parametrize("step", [1, 3, 10_000])
@pytest.mark.parametrize("name", WRITTEN)
def test_calls_of_every_format_are_parsed_with_their_types(name: str, step: int) -> None:
    values = {**VALUES, "text": "Große 42 {x}"} if name in PYTHON else VALUES
    calls = [("save", json.dumps(values, ensure_ascii=False))]
    if format_of(name).is_parallel:
        calls += [("save_all", "{}"), ("save", '{"count": 0}')]
    wanted = [(one, json.loads(arguments)) for one, arguments in calls]
    text, found = parsed(name, written(name, "", calls, TEXTS), step)
    assert (text.strip(), found) == ("", wanted)
    if triggers(format_of(name)):
        text, found = parsed(name, written(name, "I save <it>.", calls, TEXTS), step)
        assert (text.strip(), found) == ("I save <it>.", wanted)


@pytest.mark.parametrize("name", sorted(set(WRITTEN) - PYTHON))
def test_a_string_argument_is_kept_verbatim(name: str) -> None:
    for value in ODD_TEXTS:
        call = ("save", json.dumps({"text": value, "count": 1}))
        _, found = parsed(name, written(name, "", [call], TEXTS))
        assert found == [("save", {"text": value, "count": 1})], value


@pytest.mark.parametrize("name", WRITTEN)
def test_a_call_of_an_unknown_function_is_text(name: str) -> None:
    answer = written(name, "", [("remove", '{"text": "x"}')], TEXTS)
    assert parsed(name, answer) == (answer, [])


@pytest.mark.parametrize("name", WRITTEN)
def test_an_incomplete_call_is_text_until_its_arguments_begin(name: str) -> None:
    answer = written(name, "", [("save", '{"text": "some words"}')], TEXTS)
    whole = parsed(name, answer)[1]
    starts = 0
    for end in range(len(answer)):
        text, calls = parsed(name, answer[:end])
        assert len(calls) <= 1
        if calls:
            starts += 1
            assert calls[0][0] == "save"
            assert text.strip() == ""
        else:
            assert text == answer[:end]
    assert starts or name in PYTHON  # which is read as a whole
    assert parsed(name, answer)[1] == whole


@pytest.mark.parametrize("name", WRITTEN)
def test_a_quoted_call_mark_is_text(name: str) -> None:
    opening = format_of(name).opening.strip()
    for text in (f"Write `{opening}` before it.", f"{opening}", f"{opening}?", f"a {opening} b"):
        assert parsed(name, text) == (text, [])


def test_text_is_streamed_while_it_is_written() -> None:
    parser = ToolCallParser(format_of("xml"), TOOLS)
    start = "<tool_call>\n<function=save>\n<parameter=text>\n"
    assert [event for event in parser.push(start) if isinstance(event, CallStarted)]
    assert list(parser.push("ab\nc</para")) == [CallDelta(0, "ab\\nc")]
    assert list(parser.push("graph>")) == [CallDelta(0, "</paragraph>")]


def test_calls_without_their_marks_are_recognised() -> None:
    call = "<function=save>\n<parameter=count>\n1\n</parameter>\n</function>"
    for text in (call, f"{call}\n</tool_call>", f"<tool_call>{call}"):
        assert parsed("xml", text) == ("", [("save", {"count": 1})])
    invoke = '<invoke name="save"><p name="count">1</p></invoke>'
    assert parsed("invoke", invoke) == ("", [("save", {"count": 1})])
    bare = '```json\n{"name": "save", "arguments": {"count": 1}}\n```'
    assert parsed("xml", bare) == ("", [("save", {"count": 1})])


def test_values_without_a_schema_are_json_where_possible() -> None:
    text = "<tool_call>save_all\n<arg_key>a</arg_key><arg_value>1</arg_value>"
    text += "<arg_key>b</arg_key><arg_value>one</arg_value></tool_call>"
    assert parsed("glm", text) == ("", [("save_all", {"a": 1, "b": "one"})])


def test_cdata_and_python_values_are_parsed() -> None:
    start = "<tool_call>\n<function=save>\n"
    text = start + "<parameter=text><![CDATA[</parameter>]]></parameter>\n</function>"
    assert parsed("xml", text) == ("", [("save", {"text": "</parameter>"})])
    text = start + "<parameter=place>\n{'a': [True, None]}\n</parameter>\n</function>"
    assert parsed("xml", text) == ("", [("save", {"place": {"a": [True, None]}})])


def test_call_ids_are_those_that_the_model_wrote() -> None:
    def ids(name: str, text: str) -> list[str]:
        events = ToolCallParser(format_of(name), TOOLS, lambda: "new").push(text)
        return [event.call_id for event in events if isinstance(event, CallStarted)]

    kimi = "<|calls|><|call|>functions.save:3<|args|>{}<|/call|><|/calls|>"
    assert ids("kimi", kimi) == ["functions.save:3"]
    assert ids("mistral_ids", "[TOOL_CALLS]save[CALL_ID]abcdefgh1[ARGS]{}") == ["abcdefgh1"]
    assert ids("hermes", '<tool_call>{"name": "save", "arguments": {}}') == ["new"]


@pytest.mark.parametrize(
    "text",
    [
        "<|channel|>commentary to=functions.save <|constrain|>json<|message|>{}<|call|>",
        "<|channel|>commentary to=functions.save<|message|>{}",
        " to=functions.save<|channel|>commentary json<|message|>{}<|call|>",
    ],
)
def test_the_recipient_of_a_message_may_come_before_its_channel(text: str) -> None:
    assert parsed("harmony", text) == ("", [("save", {})])


def test_a_prompt_may_end_with_the_mark_of_a_call() -> None:
    assert parsed("functionary", 'save\n{"count": 1}') == ("", [("save", {"count": 1})])
    assert parsed("functionary", "all\nHello >>> you") == ("Hello >>> you", [])
    text = 'all\nI save.\n>>>save\n{"count": 1}'
    assert parsed("functionary", text) == ("I save.", [("save", {"count": 1})])
    assert parsed("functionary", "nobody\nHello") == ("nobody\nHello", [])


def test_a_format_that_doesnt_round_trip_is_not_used(caplog: pytest.LogCaptureFixture) -> None:
    source = TEMPLATES["glm"].replace("{{- '\\n</tool_call>' }}", "")
    broken = TEMPLATES["hermes"].replace("f.name +", "f.name | replace('_', '') +")
    assert source != TEMPLATES["glm"]
    assert broken != TEMPLATES["hermes"]
    with caplog.at_level(logging.INFO):
        assert learned(broken) == DESCRIBED_JSON
    assert "tool calls are described as JSON" in caplog.text


def test_a_template_without_functions_gets_them_in_a_system_message() -> None:
    assert format_of("json") == DESCRIBED_JSON
    silent = TEMPLATES["hermes"].replace("{{ t | tojson }}", "")
    assert learned(silent) == DESCRIBED_JSON


def test_a_failing_or_endless_template_is_given_up() -> None:
    def fails(turns: Sequence[ChatMessage], opens: bool, tools: tuple[str, ...]) -> str:
        raise TemplateError("It fails.", "Mend it.")

    assert learn_tool_call_format(fails, "{{ tools }}") == DESCRIBED_JSON
    num = 0

    def counted(turns: Sequence[ChatMessage], opens: bool, tools: tuple[str, ...]) -> str:
        nonlocal num
        num += 1
        return rendered(TEMPLATES["typed"], turns, opens, tools)

    learn_tool_call_format(counted, TEMPLATES["typed"])
    assert num <= 20

    def slow(turns: Sequence[ChatMessage], opens: bool, tools: tuple[str, ...]) -> str:
        clock.append(clock[-1] + 3)
        return rendered(TEMPLATES["typed"], turns, opens, tools)

    clock = [time.monotonic()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(time, "monotonic", lambda: clock[-1])
        assert learn_tool_call_format(slow, "") == DESCRIBED_JSON
    assert len(clock) < 5


def test_whether_an_answer_may_be_replayed_as_text_is_learned() -> None:
    assert format_of("hermes").is_replayed
    counts = TEMPLATES["mistral_args"].replace(
        "{%- for m in messages %}",
        "{%- set plain = messages | selectattr('role', 'ne', 'tool')"
        " | rejectattr('tool_calls', 'defined') | list %}"
        "{%- for m in plain %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
        "{{ raise_exception('turns alternate') }}{% endif %}{% endfor %}"
        "{%- for m in messages %}",
    )
    assert learned(counts) == format_of("mistral_args")._replace(is_replayed=False)


def test_a_call_ends_before_the_eos_token() -> None:
    harmony = format_of("harmony").without_end(frozenset({"<|call|>", "<|return|>"}))
    assert harmony.call_close == ("",)
    kimi = format_of("kimi")
    assert kimi.without_end(frozenset({"<|/calls|>"})).section_close == ""
    assert kimi.without_end(frozenset({"<|/call|>"})).section_close == ""
    assert kimi.without_end(frozenset({"<|im_end|>"})) == kimi


@pytest.mark.parametrize("path", sorted((resources_dir() / "templates").iterdir()), ids=str)
def test_formats_of_shipped_templates_round_trip(path: Path) -> None:
    template = ChatTemplate(path.read_text(encoding="utf-8"), {"bos_token": "", "eos_token": ""})
    check(template)


def test_the_demo_model_has_a_call_format() -> None:
    source = (demo_model_dir() / "chat_template.jinja").read_text(encoding="utf-8")
    check(ChatTemplate(source, {"bos_token": "", "eos_token": ""}))


def check(template: ChatTemplate) -> None:
    found: ToolCallFormat = template.tool_calls
    if found == DESCRIBED_JSON:
        return
    check_round_trip(found, lambda turns, opens, tools: template.render(turns, opens, tools=tools))
    assert Slot.NAME in found.call_open


OMITTING = {
    "LFM2": (
        "{# <|im_start|> List of tools: #}",
        (
            '<|tool_call_start|>[save(text="a \\"b\\"", count=-3, is_new=True, list=[1, None]), '
            "save_all()]<|tool_call_end|>"
        ),
    ),
    "Granite 3.3": (
        "{# <|tool_call|> #}",
        (
            '<|tool_call|>[{"name": "save", "arguments": {"text": "a \\"b\\"", "count": -3, '
            '"is_new": true, "list": [1, null]}}, {"name": "save_all", "arguments": {}}]'
        ),
    ),
}


@pytest.mark.parametrize("name", OMITTING)
def test_calls_that_a_template_omits_are_written_in_the_models_format(name: str) -> None:
    comment, wanted = OMITTING[name]
    source = (
        comment + "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}"
        "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    )
    template = ChatTemplate(source, {})
    values = {"text": 'a "b"', "count": -3, "is_new": True, "list": [1, None]}
    calls = (ToolCall("1", "save", json.dumps(values)), ToolCall("2", "save_all", "{}"))
    turns = (
        ChatMessage(Role.USER, "Save."),
        ChatMessage(Role.ASSISTANT, "Well: ", tool_calls=calls),
        ChatMessage(Role.TOOL, "done", tool_name="save", call_id="1"),
        ChatMessage(Role.TOOL, "all done", tool_name="save_all", call_id="2"),
    )
    fitting = template.conversations.fit(turns, template.render, has_tools=True)
    prompt = template.render(fitting, tools=TEXTS)
    assert prompt == f"savesave_all<user>Save.<assistant>Well: {wanted}<tool>done<tool>all done"
    parser = ToolCallParser(template.tool_calls, TOOLS)
    events = [*parser.push(wanted), *parser.finish()]
    found = [json.loads(one.text) for one in events if isinstance(one, CallDelta)]
    assert found == [values, {}]
