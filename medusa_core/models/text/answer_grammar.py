"""The Lark grammar of an answer: reasoning, tool calls, text or JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import NamedTuple

from medusa_core.messages import THINK_TAGS, ReasoningFormat
from medusa_core.messages.tool_calls import ToolCallFormat
from medusa_core.models.text.schema_rules import json_rule
from medusa_core.models.text.tool_calls.grammar import ToolCallGrammar
from medusa_core.models.text.tool_calls.raw_strings import text_pattern

_ANY = r"/(.|\n)*/"
_START = re.compile(r'"(?:[^"\\]|\\.)*"|/(?:[^/\\\n]|\\.)*/|\bstart\b')
_GAP = r"GAP: /[ \n]{0,4}/"


class ToolMode(str, Enum):
    """Whether the model may call functions."""

    AUTO = "auto"
    NONE = "none"
    REQUIRED = "required"


class ToolChoice(NamedTuple):
    """Which functions may be called.

    Attributes:
        mode: Whether functions may or must be called.
        name: The only function that may be called; empty for any.
        is_parallel: Whether one answer may have several calls.
    """

    mode: ToolMode = ToolMode.AUTO
    name: str = ""
    is_parallel: bool = True


class ReasoningState(Enum):
    """Whether an answer begins with reasoning, which the grammar leaves free."""

    NONE = 0
    BEGUN = 1  # the prompt ends with the start tag
    POSSIBLE = 2


class AnswerRules(NamedTuple):
    """Everything that constrains an answer: reasoning, tools, schema or grammar.

    Attributes:
        tool_format: Format of tool calls; None for no calls.
        tools: See `ChatRequest.tools`.
        choice: Which functions may be called.
        schema: JSON schema of an answer without calls; empty for any text.
        grammar: Lark grammar of an answer without calls; empty for any text.
        reasoning_state: Whether reasoning comes first.
        marker_ids: Special tokens of the call format: ids by names.
        reasoning: Format of the reasoning.
    """

    tool_format: ToolCallFormat | None
    tools: tuple[str, ...]
    choice: ToolChoice
    schema: str
    reasoning_state: ReasoningState
    marker_ids: Mapping[str, int]
    reasoning: ReasoningFormat = THINK_TAGS
    grammar: str = ""


def answer_grammar(rules: AnswerRules) -> str:
    """Return the grammar of an answer as Lark for llguidance; empty for free text."""
    if rules.grammar and rules.reasoning_state is ReasoningState.NONE:
        return rules.grammar
    if rules.tool_format is None and not rules.schema and not rules.grammar:
        return ""
    thought = {
        ReasoningState.NONE: "",
        ReasoningState.BEGUN: "thought ",
        ReasoningState.POSSIBLE: "thought? ",
    }
    lines = [f"start: {thought[rules.reasoning_state]}body", *_Body(rules).lines()]
    if rules.reasoning_state is not ReasoningState.NONE:
        lines += _reasoning_rules(rules)
    return "\n".join(lines) + "\n"


class _Body:
    """Grammar rules of an answer without its reasoning."""

    def __init__(self, rules: AnswerRules) -> None:
        self._rules = rules
        name = rules.choice.name
        functions = [
            function for function in map(json.loads, rules.tools) if name in ("", function["name"])
        ]
        self._calls = (
            None
            if rules.tool_format is None
            else ToolCallGrammar(
                rules.tool_format, functions, rules.marker_ids, is_parallel=rules.choice.is_parallel
            )
        )

    def lines(self) -> Iterator[str]:
        """Yield the rule `body` and those that it uses."""
        rules, calls = self._rules, self._calls
        before, after = _around_answer(rules)
        if calls is None:
            yield "body: free"
        elif rules.choice.mode is ToolMode.REQUIRED:
            yield f"body: {calls.required}"
        elif calls.trigger and not rules.schema:
            yield from self._calls_in_text(calls, before)
        else:
            unmarked = f" | {calls.unmarked}" if calls.unmarked and not rules.schema else ""
            yield f"body: {calls.required} | free{unmarked}"
        if calls is not None:
            yield from calls.lines()
        if rules.grammar:
            yield f"free: {before}constraint{after}"
            yield as_rule(rules.grammar, "constraint")
            return
        yield f"free: {before}{json_rule(rules.schema) if rules.schema else 'TEXT'}{after}"
        if not rules.schema:
            yield f"TEXT: {_ANY}{self._exclusions()}"

    def _calls_in_text(self, calls: ToolCallGrammar, lead: str) -> Iterator[str]:
        """Yield the rules of text in which a trigger begins calls."""
        shape, reasoning = calls.shape, self._rules.reasoning
        text = f"{_literal(shape.text_mark.removeprefix(shape.opening))} " if shape.is_open else ""
        body = "(lead calls)* free" if calls.takes_several else "lead calls | free"
        forms = [f"{text}({body})"]
        # With a tag before text, or a trigger at the end of the prompt, a call at the beginning of
        # the answer doesn't match "text and a call".
        if lead or shape.is_open:
            forms.append(calls.required)
        if calls.unmarked:
            forms.append(calls.unmarked)
        yield f"body: {' | '.join(forms)}"
        # Each of several messages has a header, a call included.
        turn = f"{_tag_rule(reasoning.end, reasoning)} {_tag_rule(reasoning.header, reasoning)} "
        if calls.is_token:
            header = f"({turn})? " if reasoning.header else ""
            yield f"lead: free {header}{calls.literal(calls.trigger)}"
        else:
            yield "lead[lazy]: LEAD"
            yield f"LEAD: /(.|\\n)*{text_pattern(calls.trigger)}/{self._exclusions()}"

    def _exclusions(self) -> str:
        """Return a regex that excludes text that would be parsed as reasoning or a call."""
        beginnings = []
        start, reasoning = self._rules.reasoning.start, self._rules.reasoning
        is_spelled = all(token_id is None for _, token_id in _tag_parts(start, reasoning))
        if self._rules.reasoning_state is ReasoningState.POSSIBLE and is_spelled:
            beginnings.append(text_pattern(start))
        if self._calls is not None and not (self._calls.trigger and self._rules.schema):
            beginnings += filter(None, (self._calls.unmarked_beginnings,))
        alternatives = "|".join(beginnings)
        return f" & ~/\\s*({alternatives})(.|\\n)*/" if beginnings else ""


def _reasoning_rules(rules: AnswerRules) -> Sequence[str]:
    """Return the rules of reasoning up to its end tag and the white space after it."""
    reasoning = rules.reasoning
    is_begun = rules.reasoning_state is ReasoningState.BEGUN
    end = _tag_parts(reasoning.end, reasoning)
    after = f"{_tag_rule(reasoning.header, reasoning)} GAP" if reasoning.header else "GAP"
    place = next((place for place, (_, token_id) in enumerate(end) if token_id is not None), None)
    start = _tag_parts(reasoning.start, reasoning)
    has_token = any(token_id is not None for _, token_id in start)
    if place is None and not has_token:
        begin = "" if is_begun else rf"\s*{text_pattern(reasoning.start)}"
        lines = ["thought: thinking GAP"]
    else:
        begin = ""
        lead = "" if is_begun else f"{_parts_rule(start)} "
        if place is not None:
            # Text of the end tag before its first token can't be told from reasoning.
            closing = _parts_rule(end[place:])
            return [f"thought: {lead}THOUGHT {closing} {after}", f"THOUGHT: {_ANY}", _GAP]
        lines = [f"thought: {lead}thinking {after}"]
    return [
        *lines,
        "thinking[lazy]: THINKING",
        rf"THINKING: /{begin}(.|\n)*{text_pattern(reasoning.end)}/",
        _GAP,
    ]


def _around_answer(rules: AnswerRules) -> tuple[str, str]:
    """Return the rules of the tags before and after text."""
    reasoning = rules.reasoning
    if rules.reasoning_state is ReasoningState.NONE:
        return "", ""
    responses = " | ".join(_tag_rule(tag, reasoning) for tag in reasoning.responses)
    # With headers, each message of an answer needs a tag.
    before = f"({responses}){'' if reasoning.header else '?'} " if responses else ""
    ends = " | ".join(_tag_rule(tag, reasoning) for tag in reasoning.response_ends)
    return before, f" ({ends})?" if ends else ""


def _tag_rule(tag: str, reasoning: ReasoningFormat) -> str:
    """Return the rule body of a tag."""
    return _parts_rule(_tag_parts(tag, reasoning))


def _tag_parts(tag: str, reasoning: ReasoningFormat) -> list[tuple[str, int | None]]:
    """Split a tag into special tokens, with their ids, and text."""
    ids = {name: token_id for token_id, name in reasoning.tokens}
    names = sorted(ids, key=len, reverse=True)
    if not names:
        return [(tag, None)]
    parts = re.split(f"({'|'.join(map(re.escape, names))})", tag)
    return [(part, ids.get(part)) for part in parts if part]


def _parts_rule(parts: Sequence[tuple[str, int | None]]) -> str:
    """Return the rule body of special tokens and text in sequence."""
    return " ".join(
        _literal(text) if token_id is None else f"<[{token_id}]>" for text, token_id in parts
    )


def _literal(text: str) -> str:
    """Return a Lark string literal; empty for an empty text."""
    return json.dumps(text, ensure_ascii=False) if text else ""


def as_rule(grammar: str, name: str) -> str:
    """Rename the rule `start` of a Lark grammar, so that it can be part of a larger one.

    Args:
        name: New name of the rule.
    """
    lines = [line for line in grammar.splitlines() if not line.lstrip().startswith("%llguidance")]
    return _START.sub(
        lambda found: name if found.group() == "start" else found.group(), "\n".join(lines)
    )
