"""Prompts of the chat with tools, in the form of the loaded model."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from medusa_core.errors import GrammarError
from medusa_core.messages import (
    DESCRIBED_JSON,
    ChatMessage,
    GenerateSettings,
    ModelLoaded,
    Role,
    ToolCall,
    ToolCallFormat,
)
from medusa_core.models.text.answer_form import chat_form
from medusa_core.models.text.grammar_limits import MAX_GRAMMAR_CHARS
from medusa_core.tools.call_loop import MOST_ROUNDS
from medusa_core.tools.results import most_tokens
from tests.support.window.fakes import PLAN

TOOLS = (json.dumps({"name": "add", "description": "Adds.", "parameters": {"type": "object"}}),)
ASK = ChatMessage(Role.USER, "2 + 2?")
FACTS = ModelLoaded(
    *("", "", "Fake", 1, 0, 64, 100, "float32", "fp32", PLAN, "cpu", (), (), (), 0.1),
    tool_calls=ToolCallFormat(),
)
SETTINGS = GenerateSettings()


def test_without_tools_nothing_changes() -> None:
    assert chat_form(FACTS, SETTINGS, (ASK,), ()) == ((ASK,), (), "", None)


def test_a_template_that_knows_tools_gets_them() -> None:
    facts = replace(FACTS, special_tokens=((7, "<call>"), (8, "<s>")))
    shape = ToolCallFormat(section_open="<call>")
    form = chat_form(replace(facts, tool_calls=shape), SETTINGS, (ASK,), TOOLS)
    assert (form.messages, form.tools) == ((ASK,), TOOLS)
    assert "add" in form.grammar
    assert form.calls == (shape, TOOLS, ((7, "<call>"),))


def test_other_templates_get_a_description() -> None:
    form = chat_form(replace(FACTS, tool_calls=DESCRIBED_JSON), SETTINGS, (ASK,), TOOLS)
    assert form.tools == ()
    assert form.messages[0].role is Role.SYSTEM
    assert TOOLS[0] in form.messages[0].text
    assert form.grammar


def test_another_machine_gets_no_grammar() -> None:
    facts = replace(FACTS, tool_calls=DESCRIBED_JSON, place="there")
    form = chat_form(facts, SETTINGS, (ASK,), TOOLS)
    assert (form.grammar, form.tools) == ("", ())
    assert form.calls is not None
    schema = replace(SETTINGS, json_schema='{"type": "object"}')
    assert chat_form(facts, schema, (ASK,), ()).grammar == ""


def test_what_may_violate_a_grammar_has_none() -> None:
    given = ChatMessage(Role.ASSISTANT, '{"name": "other"')
    assert chat_form(FACTS, SETTINGS, (ASK, given), TOOLS).grammar == ""
    huge = {"type": "object", "properties": {"x" * MAX_GRAMMAR_CHARS: {}}}
    tools = (json.dumps({"name": "add", "description": "", "parameters": huge}),)
    form = chat_form(FACTS, SETTINGS, (ASK,), tools)
    assert (form.grammar, form.tools) == ("", tools)


def test_a_schema_is_enforced_with_and_without_tools() -> None:
    schema = replace(SETTINGS, json_schema='{"type": "integer"}')
    plain, tools = (chat_form(FACTS, schema, (ASK,), one).grammar for one in ((), TOOLS))
    assert "integer" in plain
    assert "integer" in tools
    assert "add" in tools
    with pytest.raises(GrammarError):
        chat_form(FACTS, replace(SETTINGS, json_schema="{"), (ASK,), ())


def test_long_results_leave_room_in_the_context() -> None:
    call = ToolCall("a", "read", "{}")
    said = ChatMessage(Role.ASSISTANT, "", (), (call,))
    result = ChatMessage(Role.TOOL, "ä" * 5000, tool_name="read", call_id="a")
    facts = replace(FACTS, context_tokens=4096)
    *before, cut = chat_form(facts, SETTINGS, (ASK, said, result), ()).messages
    assert before == [ASK, said]
    note = "\n[The result was cut: 5,904 of its 10,000 bytes are left out.]"
    assert cut.text == "ä" * 2048 + note
    assert cut._replace(content=result.content) == result
    longer = replace(FACTS, context_tokens=16_384)
    assert chat_form(longer, SETTINGS, (ASK, said, result), ()).messages[-1] == result


@pytest.mark.parametrize("num_rounds", [2, MOST_ROUNDS + 1])
def test_many_results_leave_room_for_the_answer(num_rounds: int) -> None:
    facts = replace(FACTS, context_tokens=2048)
    texts = ["short", "1" * 1500, "2" * 900, "3" * 1200]
    rounds = [
        message
        for number, text in enumerate(texts)
        for message in (
            ChatMessage(Role.ASSISTANT, "", (), (ToolCall(f"{number}", "add", f"[{number}]"),)),
            ChatMessage(Role.TOOL, text, tool_name="add", call_id=f"{number}"),
        )
    ]
    messages = chat_form(facts, SETTINGS, (ASK, *rounds), TOOLS, num_rounds).messages
    shown = "\n".join(message.text for message in messages)
    assert "short" in shown, "the longest are cut first"
    kept = {shown.count(digit) for digit in "123" if shown.count(digit) > 300}
    assert len(kept) <= 3
    assert max(kept) - min(kept) < 10
    assert shown.count("of its 1,500 bytes are left out") == 1
    assert 1000 < most_tokens(shown) < 2048 * 3 / 4
    none = chat_form(replace(FACTS, context_tokens=20), SETTINGS, (ASK, *rounds), TOOLS).messages
    assert most_tokens(none[-1].text) < 40


def test_after_the_last_round_of_calls_the_model_has_to_answer() -> None:
    call = ToolCall("a", "add", "{}")
    rounds = (
        ChatMessage(Role.ASSISTANT, "", (), (call,)),
        ChatMessage(Role.TOOL, "4", tool_name="add", call_id="a"),
    )
    offered = chat_form(FACTS, SETTINGS, (ASK, *rounds), TOOLS, MOST_ROUNDS)
    assert (offered.tools, offered.messages) == (TOOLS, (ASK, *rounds))
    quoted = chat_form(FACTS, SETTINGS, (ASK, *rounds), TOOLS, 2, quotes_results=True)
    assert (quoted.tools, quoted.calls) == (TOOLS, offered.calls)
    assert [one.role for one in quoted.messages] == [Role.USER]
    assert "add {} returned:\n4" in quoted.messages[0].text
    last = chat_form(FACTS, SETTINGS, (ASK, *rounds), TOOLS, MOST_ROUNDS + 1)
    assert (last.tools, last.calls, last.grammar) == ((), None, "")
    assert [one.role for one in last.messages] == [Role.USER]
    assert "add {} returned:\n4" in last.messages[0].text
