"""What an answer must match: a schema, calls of functions, thoughts before them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from medusa_core.messages import THINK_TAGS, ReasoningFormat
from medusa_core.models.text.tool_calls.call_shape import CallShape
from medusa_core.server.chat import ToolChoice, ToolMode
from medusa_core.server.json_schema import arguments_rule, json_rule

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
        thoughts: Before it.
        mark_ids: Tokens without text that are marks, by their names.
        reasoning: How thoughts are set apart.
    """

    shape: CallShape | None
    tools: tuple[str, ...]
    choice: ToolChoice
    schema: str
    thoughts: Thoughts
    mark_ids: Mapping[str, int]
    reasoning: ReasoningFormat = THINK_TAGS


def answer_grammar(rules: AnswerRules) -> str:
    """The grammar of an answer, as Lark for llguidance; empty where it may be anything.

    Args:
        rules: What it must match.
    """
    if rules.shape is None and not rules.schema:
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
        functions = map(json.loads, rules.tools)
        self._functions = [one for one in functions if not name or one["name"] == name]

    def lines(self) -> Iterator[str]:
        """All rules that `body` needs."""
        rules = self._rules
        if rules.shape is None:
            yield "body: free"
        elif rules.choice.mode is ToolMode.REQUIRED:
            yield f"body: {self._calls(rules.shape)}"
        elif rules.shape.mark and not rules.schema:
            yield from self._calls_in_text(rules.shape)
        else:
            yield f"body: {self._calls(rules.shape)} | free"
        if rules.shape is not None:
            yield from self._call(rules.shape)
        before, behind = _around_answer(rules)
        yield f"free: {before}{json_rule(rules.schema) if rules.schema else 'TEXT'}{behind}"
        if not rules.schema:
            yield f"TEXT: {_ANY}{self._exclusions(rules.shape)}"

    def _calls(self, shape: CallShape) -> str:
        """An answer of calls alone."""
        optional = ""
        if shape.optional_mark and shape.optional_mark in self._rules.mark_ids:
            optional = f"{self._mark(shape.optional_mark)}? "
        first = f"{optional}{self._mark(shape.mark)} calls".strip()
        if shape.between or not shape.mark or not self._rules.choice.is_parallel:
            return first
        return f"{first} ({_literal(shape.gap)} {self._mark(shape.mark)} calls)*"

    def _calls_in_text(self, shape: CallShape) -> Iterator[str]:
        """An answer in which a mark begins a call."""
        several = self._rules.choice.is_parallel and not shape.between
        bare = f" | item {self._mark(shape.close)}?" if self._may_be_bare(shape) else ""
        yield f"body: {'(lead calls)* free' if several else 'lead calls | free'}{bare}"
        if shape.mark in self._rules.mark_ids:
            yield f"lead: free {self._mark(shape.mark)}"
        else:
            yield "lead[lazy]: LEAD"
            yield f"LEAD: /(.|\\n)*{_pattern(shape.mark)}/{self._exclusions(shape)}"

    def _call(self, shape: CallShape) -> Iterator[str]:
        """What stands behind a mark."""
        more = f" ({_literal(shape.between)} item)*"
        repeats = shape.between and self._rules.choice.is_parallel
        parts = [_literal(shape.before), f"item{more if repeats else ''}", _literal(shape.behind)]
        yield f"calls: {' '.join(filter(None, (*parts, self._mark(shape.close))))}"
        yield f"item: {' | '.join(f'call_{place}' for place in range(len(self._functions)))}"
        for place, function in enumerate(self._functions):
            yield f"call_{place}: {self._item(shape, function, place)}"
            yield f"arguments_{place}: {arguments_rule(function.get('parameters') or {})}"

    def _item(self, shape: CallShape, function: Mapping[str, Any], place: int) -> str:
        if shape.arguments_mark:
            mark = self._mark(shape.arguments_mark)
            return f"{_literal(function['name'])} {mark} arguments_{place}"
        head = f'{{"name": {_quoted(function["name"])}, "{shape.arguments_key}": '
        return f"{_literal(head)} arguments_{place} {_literal('}')}"

    def _exclusions(self, shape: CallShape | None) -> str:
        """How free text may not begin, since it would be something else."""
        beginnings = []
        start, reasoning = self._rules.reasoning.start, self._rules.reasoning
        is_spelled = all(number is None for _, number in _tag_parts(start, reasoning))
        if self._rules.thoughts is Thoughts.POSSIBLE and is_spelled:
            beginnings.append(_pattern(start))
        if shape is not None and self._may_be_bare(shape):
            beginnings += [_pattern(f'{{"name": {_quoted(one["name"])}') for one in self._functions]
        alternatives = "|".join(beginnings)
        return f" & ~/\\s*({alternatives})(.|\\n)*/" if beginnings else ""

    def _may_be_bare(self, shape: CallShape) -> bool:
        """May calls be the whole answer, without a mark? Then no text begins as one does."""
        return not shape.arguments_mark and not (shape.mark and self._rules.schema)

    def _mark(self, mark: str) -> str:
        return _mark_rule(mark, self._rules.mark_ids)


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
        begin = "" if is_begun else rf"\s*{_pattern(reasoning.start)}"
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
        rf"THINKING: /{begin}(.|\n)*{_pattern(reasoning.end)}/",
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


def _mark_rule(mark: str, ids: Mapping[str, int]) -> str:
    """A mark: a token by its number, or text."""
    return f"<[{ids[mark]}]>" if mark in ids else _literal(mark)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _literal(text: str) -> str:
    return _quoted(text) if text else ""


def _pattern(text: str) -> str:
    return re.escape(text).replace("/", r"\/")
