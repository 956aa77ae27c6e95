"""What an answer must match: a schema, calls of functions, thoughts before them."""

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
from medusa_core.server.chat import ToolChoice, ToolMode
from medusa_core.server.constraints import as_rule

_ANY = r"/(.|\n)*/"
_GAP = r"GAP: /[ \n]{0,4}/"


class Thoughts(Enum):
    """Thoughts before an answer, which a grammar leaves free."""

    NONE = 0
    BEGUN = 1  # the prompt ends with the mark of a thought
    POSSIBLE = 2


class AnswerRules(NamedTuple):
    """What an answer must match.

    Attributes:
        shape: How the model writes calls; None where it may not call anything.
        tools: As `ChatRequest.tools`.
        choice: Which of them may be called.
        schema: Of the answer, where it is no call; empty for any text.
        grammar: Of an answer without calls, as Lark; empty for any text.
        thoughts: Before it.
        mark_ids: Tokens without text that are marks, by their names.
        reasoning: How thoughts are set apart.
    """

    shape: ToolCallFormat | None
    tools: tuple[str, ...]
    choice: ToolChoice
    schema: str
    thoughts: Thoughts
    mark_ids: Mapping[str, int]
    reasoning: ReasoningFormat = THINK_TAGS
    grammar: str = ""


def answer_grammar(rules: AnswerRules) -> str:
    """The grammar of an answer, as Lark for llguidance; empty where it may be anything.

    Args:
        rules: What it must match.
    """
    if rules.grammar and rules.thoughts is Thoughts.NONE:
        return rules.grammar
    if rules.shape is None and not rules.schema and not rules.grammar:
        return ""
    thought = {Thoughts.NONE: "", Thoughts.BEGUN: "thought ", Thoughts.POSSIBLE: "thought? "}
    lines = [f"start: {thought[rules.thoughts]}body", *_Body(rules).lines()]
    if rules.thoughts is not Thoughts.NONE:
        lines += _thought(rules)
    return "\n".join(lines) + "\n"


class _Body:
    """The rules of an answer without its thoughts."""

    def __init__(self, rules: AnswerRules) -> None:
        self._rules = rules
        name = rules.choice.name
        functions = [one for one in map(json.loads, rules.tools) if not name or one["name"] == name]
        self._calls = (
            None
            if rules.shape is None
            else ToolCallGrammar(
                rules.shape, functions, rules.mark_ids, is_parallel=rules.choice.is_parallel
            )
        )

    def lines(self) -> Iterator[str]:
        """All rules that `body` needs."""
        rules, calls = self._rules, self._calls
        before, after = _around_answer(rules)
        if calls is None:
            yield "body: free"
        elif rules.choice.mode is ToolMode.REQUIRED:
            yield f"body: {calls.required}"
        elif calls.trigger and not rules.schema:
            yield from self._calls_in_text(calls, before)
        else:
            yield f"body: {calls.required} | free"
        if calls is not None:
            yield from calls.lines()
        if rules.grammar:
            yield f"free: {before}constraint{after}"
            yield as_rule(rules.grammar, "constraint")
            return
        yield f"free: {before}{json_rule(rules.schema) if rules.schema else 'TEXT'}{after}"
        if not rules.schema:
            yield f"TEXT: {_ANY}{self._exclusions()}"

    def _calls_in_text(self, calls: ToolCallGrammar, before: str) -> Iterator[str]:
        """An answer in which a trigger begins a call."""
        shape, reasoning = calls.shape, self._rules.reasoning
        text = f"{_literal(shape.text_mark.removeprefix(shape.opening))} " if shape.is_open else ""
        body = "(lead calls)* free" if calls.takes_several else "lead calls | free"
        forms = [f"{text}({body})"]
        # Where something stands before text, or the prompt ends with the trigger, a call that is
        # the beginning of the answer isn't text and a call.
        if before or shape.is_open:
            forms.append(calls.required)
        if calls.bare:
            forms.append(calls.bare)
        yield f"body: {' | '.join(forms)}"
        # Each of several messages has a header, the one that is a call, too.
        turn = f"{_tag_rule(reasoning.end, reasoning)} {_tag_rule(reasoning.header, reasoning)} "
        if calls.is_token:
            header = f"({turn})? " if reasoning.header else ""
            yield f"lead: free {header}{calls.literal(calls.trigger)}"
        else:
            yield "lead[lazy]: LEAD"
            yield f"LEAD: /(.|\\n)*{text_pattern(calls.trigger)}/{self._exclusions()}"

    def _exclusions(self) -> str:
        """How free text may not begin, since it would be something else."""
        beginnings = []
        start, reasoning = self._rules.reasoning.start, self._rules.reasoning
        is_spelled = all(number is None for _, number in _tag_parts(start, reasoning))
        if self._rules.thoughts is Thoughts.POSSIBLE and is_spelled:
            beginnings.append(text_pattern(start))
        if self._calls is not None and not (self._calls.trigger and self._rules.schema):
            beginnings += map(text_pattern, self._calls.bare_beginnings)
        alternatives = "|".join(beginnings)
        return f" & ~/\\s*({alternatives})(.|\\n)*/" if beginnings else ""


def _thought(rules: AnswerRules) -> Sequence[str]:
    """A thought up to its end, and the space behind it."""
    reasoning = rules.reasoning
    is_begun = rules.thoughts is Thoughts.BEGUN
    end = _tag_parts(reasoning.end, reasoning)
    after = f"{_tag_rule(reasoning.header, reasoning)} GAP" if reasoning.header else "GAP"
    place = next((place for place, (_, number) in enumerate(end) if number is not None), None)
    start = _tag_parts(reasoning.start, reasoning)
    has_token = any(number is not None for _, number in start)
    if place is None and not has_token:
        begin = "" if is_begun else rf"\s*{text_pattern(reasoning.start)}"
        lines = ["thought: thinking GAP"]
    else:
        begin = ""
        lead = "" if is_begun else f"{_parts_rule(start)} "
        if place is not None:
            # Text before the first token can't be told from the thought's own.
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
    """Tags that a model may write before an answer that isn't a call, and after it."""
    reasoning = rules.reasoning
    if rules.thoughts is Thoughts.NONE:
        return "", ""
    responses = " | ".join(_tag_rule(tag, reasoning) for tag in reasoning.responses)
    # Each message of an answer needs one.
    before = f"({responses}){'' if reasoning.header else '?'} " if responses else ""
    ends = " | ".join(_tag_rule(tag, reasoning) for tag in reasoning.response_ends)
    return before, f" ({ends})?" if ends else ""


def _tag_rule(tag: str, reasoning: ReasoningFormat) -> str:
    return _parts_rule(_tag_parts(tag, reasoning))


def _tag_parts(tag: str, reasoning: ReasoningFormat) -> list[tuple[str, int | None]]:
    """The parts of a tag: each a token of the vocabulary, or text."""
    ids = {name: number for number, name in reasoning.tokens}
    names = sorted(ids, key=len, reverse=True)
    if not names:
        return [(tag, None)]
    parts = re.split(f"({'|'.join(map(re.escape, names))})", tag)
    return [(part, ids.get(part)) for part in parts if part]


def _parts_rule(parts: Sequence[tuple[str, int | None]]) -> str:
    return " ".join(_literal(text) if number is None else f"<[{number}]>" for text, number in parts)


def _literal(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text else ""
