"""What an answer must match: a schema, calls of functions, thoughts before them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple

from medusa_core.chats.thinking import CLOSE, OPEN
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
    """

    shape: CallShape | None
    tools: tuple[str, ...]
    choice: ToolChoice
    schema: str
    thoughts: Thoughts
    mark_ids: Mapping[str, int]


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
        yield f"free: {json_rule(rules.schema) if rules.schema else 'TEXT'}"
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
        if self._rules.thoughts is Thoughts.POSSIBLE:
            beginnings.append(_pattern(OPEN))
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
    ids = rules.mark_ids
    is_begun = rules.thoughts is Thoughts.BEGUN
    if CLOSE in ids:
        begin = "" if is_begun else f"{_mark_rule(OPEN, ids)} "
        return [f"thought: {begin}THOUGHT {_mark_rule(CLOSE, ids)} GAP", f"THOUGHT: {_ANY}", _GAP]
    begin = "" if is_begun else rf"\s*{_pattern(OPEN)}"
    return [
        "thought: thinking GAP",
        "thinking[lazy]: THINKING",
        rf"THINKING: /{begin}(.|\n)*{_pattern(CLOSE)}/",
        _GAP,
    ]


def _mark_rule(mark: str, ids: Mapping[str, int]) -> str:
    """A mark: a token by its number, or text."""
    return f"<[{ids[mark]}]>" if mark in ids else _literal(mark)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _literal(text: str) -> str:
    return _quoted(text) if text else ""


def _pattern(text: str) -> str:
    return re.escape(text).replace("/", r"\/")
