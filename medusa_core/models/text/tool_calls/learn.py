"""Learn a template's format of tool calls by rendering synthetic calls and comparing the texts.

Names, keys and values of the synthetic calls are unique, so they can be located in the prompt; the
text around them is the format. The common text before the names of two calls opens a call, the
common text after both closes one, and the rest encloses all calls or separates two.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from medusa_core.errors import TemplateError
from medusa_core.messages import ChatMessage, Role, ToolCall
from medusa_core.messages.tool_calls import (
    DESCRIBED_JSON,
    KEY,
    ArgumentStyle,
    ArgumentTags,
    Segment,
    Slot,
    ToolCallFormat,
)
from medusa_core.models.text.tool_calls.comparing import (
    header_length,
    num_common,
    num_common_before,
    num_common_end,
    num_outside_tags,
    num_turn_end,
    tag_floor,
)
from medusa_core.models.text.tool_calls.known_formats import known_format, unwritten_format
from medusa_core.models.text.tool_calls.round_trip import check_round_trip

log = logging.getLogger(__name__)

Render = Callable[[Sequence[ChatMessage], bool, tuple[str, ...]], str]

_MOST_S = 4.0  # a hostile template isn't rendered forever; the published ones take 0.1 s at most
_USER, _TEXT, _RESULT = "umberquestion", "plumtext", "quartzresult"
_FIRST_ARGUMENTS = {"amberkey": "hazelvalue", "basilkey": 71421, "cedarkey": "irisvalue"}
_SECOND_ARGUMENTS = {"elderkey": 82532, "fernkey": "junipervalue"}
_FIRST = ToolCall("Ka1Lb2Mc3", "kestrel_call", json.dumps(_FIRST_ARGUMENTS))
_SECOND = ToolCall("Nd4Pe5Qf6", "osprey_call", json.dumps(_SECOND_ARGUMENTS))
_TYPES = {"boolean": True, "number": 1.5, "array": [31337], "object": {"zinnia": 31338}}
_TYPED_ARGUMENTS = {f"{name}linden": value for name, value in _TYPES.items()}
_PYTHON_TAG = "<|python_tag|>"
_PYTHON_QUOTES = ("'", '"')


class _UnclearError(Exception):
    """The format can't be told from the rendered calls."""


def learn_tool_call_format(
    render: Render, source: str, response_ends: Sequence[str] = ()
) -> ToolCallFormat:
    """Learn the format in which a model writes tool calls.

    Args:
        render: Renders messages, with or without generation prompt, and tools.
        source: The template's source.
        response_ends: Tags after an answer's text that aren't part of the calls.

    Returns:
        The format; `DESCRIBED_JSON` if none was found that passes the round trip.
    """
    if (known := known_format(source)) is not None:
        return known
    learner = _Learner(render)
    try:
        found = learner.learn()
        check_round_trip(found, learner.text_of)
    except (_UnclearError, TemplateError, ValueError) as error:
        if (unwritten := unwritten_format(source)) is not None:
            return unwritten
        log.info("tool calls are described as JSON: %s", str(error))
        return DESCRIBED_JSON
    found = _without_response_end(found, response_ends)
    if found.name_key and not found.section_open:
        # Llama 3 may write it before a call, though its template doesn't; Llama 4 may write calls
        # as its template's system message says, not as the template itself.
        mark = _PYTHON_TAG if _PYTHON_TAG in source else ""
        reads_python = found.reads_python or "[func_name1(" in source
        found = found._replace(optional_mark=mark, reads_python=reads_python)
    return found


def _without_response_end(found: ToolCallFormat, ends: Sequence[str]) -> ToolCallFormat:
    """Remove the reasoning format's response tag from the opening of calls."""
    for end in ends:
        if found.section_open.startswith(end):
            return found._replace(section_open=found.section_open.removeprefix(end))
    return found


class _Learner:
    """Learns the format of one template within a time limit."""

    def __init__(self, render: Render) -> None:
        self._render = render
        self._end_s = time.monotonic() + _MOST_S

    def text_of(
        self, messages: Sequence[ChatMessage], opens_answer: bool, tools: tuple[str, ...]
    ) -> str:
        """Render a prompt; an empty text if the template refuses it.

        Raises:
            _UnclearError: The template takes too long.
        """
        if time.monotonic() > self._end_s:
            raise _UnclearError("the template is too slow")
        try:
            return self._render(messages, opens_answer, tools)
        except TemplateError:
            return ""

    def learn(self) -> ToolCallFormat:
        """Render synthetic calls and derive the format from them.

        Raises:
            _UnclearError: The format can't be told from the rendered calls.
        """
        tools = (_tool(_FIRST), _tool(_SECOND))
        question = ChatMessage(Role.USER, _USER)
        opened = self.text_of((question,), True, tools)
        if _FIRST.name not in opened:
            raise _UnclearError("the template doesn't describe functions")
        one, both = self._answer("", _FIRST), self._answer("", _FIRST, _SECOND)
        is_parallel = _SECOND.name in both
        text = both if is_parallel else one
        first = _find(text, _FIRST)
        header = self._header(text, first.start, _after_user(opened))
        end = len(text.rstrip()) - num_turn_end(one or text, self._answer(_TEXT))
        if is_parallel:
            found = _compared(text, first, _find(text, _SECOND), header, end)
        else:
            found = _alone(text, first, header, end)
        if found.style is ArgumentStyle.TAGS:
            found = found._replace(tags=self._with_types(found.tags))
        return found._replace(is_replayed=self._is_replayed())

    def _answer(self, content: str, *calls: ToolCall) -> str:
        """Render an answer; return the text after the question, empty if refused."""
        return self._render_answers(ChatMessage(Role.ASSISTANT, content, tool_calls=calls))

    def _render_answers(self, *answers: ChatMessage) -> str:
        """Render answers to a synthetic question; return the text after the question."""
        question = ChatMessage(Role.USER, _USER)
        tools = (_tool(_FIRST), _tool(_SECOND))
        return _after_user(self.text_of((question, *answers), False, tools))

    def _header(self, text: str, start: int, opened: str) -> int:
        """Return the position at which the text that belongs to the calls begins.

        It is the end of the answer's text if the template renders calls after it, else the end of
        the header that answers without calls have, too.
        """
        plain = self._answer(_TEXT)
        header = max(header_length(text, plain), header_length(text, opened))
        _, found, after = self._answer(_TEXT, _FIRST).partition(_TEXT)
        if found and _FIRST.name in after:
            named = (after.find(one) for one in (_FIRST.name, _FIRST.call_id))
            place = min(at for at in named if at >= 0)
            if num := num_common_end(after[:place], text[:start]):
                header = max(header, start - num)
        return min(header, start)

    def _with_types(self, tags: ArgumentTags) -> ArgumentTags:
        """Add the tags before values of each JSON type, if the template names types."""
        before = dict(tags.after_key_of_others)
        if before["integer"] == tags.after_key:
            return tags
        typed = self._answer("", _FIRST._replace(arguments=json.dumps(_TYPED_ARGUMENTS)))
        for key, value in _TYPED_ARGUMENTS.items():
            rest = typed.partition(key)[2]
            place = rest.find(json.dumps(value))
            if place < 0:
                raise _UnclearError(f"the value of {key} isn't found")
            before[key.removesuffix("linden")] = rest[:place]
        return tags._replace(after_key_of_others=tuple(before.items()))

    def _is_replayed(self) -> bool:
        """Whether the template accepts a tool's result after an answer given as plain text."""
        result = ChatMessage(Role.TOOL, _RESULT, tool_name=_FIRST.name, call_id=_FIRST.call_id)
        answer = ChatMessage(Role.ASSISTANT, _TEXT)
        shown = self._render_answers(answer, result, answer, ChatMessage(Role.USER, _RESULT))
        return _TEXT in shown and _RESULT in shown


class _Written(NamedTuple):
    """Positions of a synthetic call in a rendered text.

    Attributes:
        start: Position of its name or its id, whichever comes first.
        end: Position after its last part.
        head: Fixed texts and slots from `start` to the arguments or the first key.
        tail: Fixed texts and slots from JSON arguments to `end`.
        keys: Positions of the keys; empty if the arguments are JSON.
        values: Positions of the values.
        last_key: Name of the last key.
    """

    start: int
    end: int
    head: tuple[Segment, ...]
    tail: tuple[Segment, ...]
    keys: tuple[tuple[int, int], ...]
    values: tuple[tuple[int, int], ...]
    last_key: str


def _find(text: str, call: ToolCall) -> _Written:
    """Locate a synthetic call in a text.

    Raises:
        _UnclearError: A part of the call is missing.
    """
    arguments: dict[str, Any] = json.loads(call.arguments)
    slots = {call.name: Slot.NAME, call.call_id: Slot.CALL_ID}
    places = [(slots[one.group()], *one.span()) for one in re.finditer("|".join(slots), text)]
    keys = tuple((text.find(key), text.find(key) + len(key)) for key in arguments)
    key_starts = [start for start, _ in keys]
    if not any(slot is Slot.NAME for slot, *_ in places) or min(key_starts) < 0:
        raise _UnclearError("the template doesn't write calls")
    span = _json_span(text, keys[0][0], arguments)
    begin = span[0] if span else keys[0][0]
    before = [place for place in places if place[2] <= begin]
    if not before:
        raise _UnclearError("arguments come before the name")
    start = before[0][1]
    head = _segments(text, before, start, begin)
    last_key = list(arguments)[-1]
    if span:
        after = [place for place in places if place[1] >= span[1]]
        end = after[-1][2] if after else span[1]
        return _Written(start, end, head, _segments(text, after, span[1], end), (), (), last_key)
    values = []
    for (_, key_end), value in zip(keys, arguments.values(), strict=True):
        place = text.find(str(value), key_end)
        if place < 0:
            raise _UnclearError("a value isn't found")
        values.append((place, place + len(str(value))))
    return _Written(start, values[-1][1], head, (), keys, tuple(values), last_key)


def _json_span(text: str, position: int, arguments: dict[str, Any]) -> tuple[int, int] | None:
    """Return the span of the JSON arguments around a position; None if they aren't JSON."""
    start = text.rfind("{", 0, position)
    if start < 0:
        return None
    try:
        value, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return None
    return (start, end) if value == arguments else None


def _segments(
    text: str, places: Sequence[tuple[Slot, int, int]], start: int, end: int
) -> tuple[Segment, ...]:
    """Split a text into fixed segments and slots."""
    found: list[Segment] = []
    for slot, begin, close in places:
        found += [text[start:begin], slot]
        start = close
    return tuple(segment for segment in (*found, text[start:end]) if segment)


def _compared(
    text: str, first: _Written, second: _Written, header: int, end: int
) -> ToolCallFormat:
    """Derive the format from two calls in one answer."""
    opening, num = _opening(text, header, first, second)
    middle = text[first.end : second.start - num].replace(first.last_key, KEY)
    rest = text[second.end : end].replace(second.last_key, KEY)
    num_close = tag_floor(rest, tag_floor(middle, num_common(middle, rest)))
    close = rest[:num_close]
    lead = text[header : first.start - num]
    found = ToolCallFormat(
        section_open=lead.lstrip(),
        call_open=(*opening, *_with_index(first.head, second.head)),
        separator=middle[num_close:],
        section_close=rest[num_close:].rstrip(),
    )
    return _finished(found, text, first, close, header)


def _alone(text: str, call: _Written, header: int, end: int) -> ToolCallFormat:
    """Derive the format from the only call of an answer."""
    lead = text[header : call.start].lstrip()
    found = ToolCallFormat(call_open=(lead, *call.head), separator="", is_parallel=False)
    close = text[call.end : end].replace(call.last_key, KEY)
    return _finished(found, text, call, close.rstrip(), header)


def _finished(
    found: ToolCallFormat, text: str, call: _Written, close: str, header: int
) -> ToolCallFormat:
    """Complete a format with the style of its arguments.

    Args:
        found: The format so far.
        text: The rendered text.
        call: A call in the text.
        close: Text after the last part of the call.
        header: Position at which the text that belongs to the calls begins.
    """
    if found.call_open[0] == "" or not isinstance(found.call_open[0], str):
        found = found._replace(call_open=("", *(one for one in found.call_open if one != "")))
    if not call.keys:
        name_key, arguments_key = _object_keys(text, header, call)
        return found._replace(
            call_close=tuple(one for one in (*call.tail, close) if one),
            name_key=name_key,
            arguments_key=arguments_key,
            call_id=_call_id(found.call_open),
        )
    found = found._replace(name_key="", arguments_key="")
    return _with_tags(found, text, call, close)


def _object_keys(text: str, header: int, call: _Written) -> tuple[str, str]:
    """Return the keys of name and arguments in a JSON call; empty if it isn't JSON."""
    if text.count("{", header, call.start) > 1:  # an object within another
        return "", ""
    start = text.rfind("{", header, call.start)
    while start >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            value, end = None, 0
        if isinstance(value, dict) and end >= call.end:
            names = [key for key, inner in value.items() if inner in (_FIRST.name, _SECOND.name)]
            arguments = [key for key, inner in value.items() if inner == _FIRST_ARGUMENTS]
            if names and arguments:
                return names[0], arguments[0]
        start = text.rfind("{", header, start)
    return "", ""


def _call_id(call_open: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Return the segments that make up a call id: Kimi writes `functions.NAME:INDEX`."""
    first, *rest = call_open
    is_kimi = isinstance(first, str) and first.endswith("functions.")
    kimi = (Slot.NAME, ":", Slot.INDEX)
    return ("functions.", *kimi) if is_kimi and tuple(rest[:3]) == kimi else ()


def _with_tags(found: ToolCallFormat, text: str, call: _Written, close: str) -> ToolCallFormat:
    """Complete a format with the tags around its arguments.

    Args:
        found: The format so far.
        text: The rendered text.
        call: The call with three arguments: a string, a number, a string.
        close: Text after the last value.
    """
    (_, end_1), (start_2, end_2), (start_3, end_3) = call.keys
    value_1, value_2, value_3 = call.values
    after_key, after_other = text[end_1 : value_1[0]], text[end_2 : value_2[0]]
    between_1, between_2 = text[value_1[1] : start_2], text[value_2[1] : start_3]
    if text[end_3 : value_3[0]] != after_key:
        raise _UnclearError("arguments of one type are written in two ways")
    first_key, second_key = text[call.keys[0][0] : end_1], text[start_2:end_2]
    between_1, between_2 = between_1.replace(first_key, KEY), between_2.replace(second_key, KEY)
    quote = after_key.removeprefix(after_other) if after_key.startswith(after_other) else ""
    if quote:
        if not between_1.startswith(quote) or not close.startswith(quote):
            raise _UnclearError("a quotation mark isn't closed")
        between_1, close = between_1.removeprefix(quote), close.removeprefix(quote)
        after_key = after_other
    if between_1 != between_2:
        raise _UnclearError("what stands between arguments depends on their types")
    head = found.call_open[-1]
    if not isinstance(head, str):  # the first key follows the name without anything between
        raise _UnclearError("nothing stands between name and arguments")
    num_before = num_common_before(text, call.keys[0][0], start_2, len(head), len(between_1))
    before_key, head = _cut(head, num_before)
    between = between_1[: len(between_1) - num_before]
    num_after = tag_floor(close, tag_floor(between, num_common(between, close)))
    tags = ArgumentTags(
        before_key=before_key,
        after_key=after_key,
        after_key_of_others=(("integer", after_other),),
        after_value=close[:num_after],
        separator=between[num_after:],
        quote=quote,
    )
    close = close[num_after:]
    style = ArgumentStyle.TAGS
    if quote in _PYTHON_QUOTES and after_key.strip() == "=":
        style = ArgumentStyle.PYTHON
    elif quote:
        style = ArgumentStyle.BARE_KEYS
        if not head.endswith("{") or not close.startswith("}"):
            raise _UnclearError("quoted arguments aren't an object")
        head, close = head[:-1], close[1:]
    elif not tags.after_value.strip():
        raise _UnclearError("nothing ends a value")
    call_open = tuple(one for one in (*found.call_open[:-1], head) if one)
    return found._replace(
        call_open=call_open if isinstance(call_open[0], str) else ("", *call_open),
        call_close=(close,) if close else (),
        style=style,
        tags=tags,
        reads_python=style is ArgumentStyle.PYTHON,
    )


def _cut(text: str, num_end: int) -> tuple[str, str]:
    """Split off the last characters of a text; return them and the text before them."""
    return text[len(text) - num_end :], text[: len(text) - num_end]


def _opening(
    text: str, header: int, first: _Written, second: _Written
) -> tuple[tuple[Segment, ...], int]:
    """Return the common opening of two calls before their first slot, and its length.

    It may contain the index of the call.
    """
    most = min(first.start - header, second.start - first.end)
    num, index = 0, -1
    while num < most:
        pair = text[first.start - num - 1], text[second.start - num - 1]
        if pair[0] != pair[1]:
            if index >= 0 or pair not in (("0", "1"), ("1", "2")):
                break
            index = num
        num += 1
    num = num_outside_tags(text, first.start, second.start, num)
    whole = text[first.start - num : first.start]
    if index < 0 or index >= num:
        return (whole,), num
    place = num - index - 1
    return (whole[:place], Slot.INDEX, whole[place + 1 :]), num


def _with_index(first: tuple[Segment, ...], second: tuple[Segment, ...]) -> tuple[Segment, ...]:
    """Return a call's segments, with the index of the call turned into a slot."""
    found: list[Segment] = []
    for one, other in zip(first, second, strict=False):
        if not isinstance(one, str) or one == other or not isinstance(other, str):
            found.append(one)
            continue
        num = num_common(one, other)
        if (one[num : num + 1], other[num : num + 1]) in (("0", "1"), ("1", "2")):
            found += [part for part in (one[:num], Slot.INDEX, one[num + 1 :]) if part]
        else:
            found.append(one)
    return tuple(found)


def _after_user(text: str) -> str:
    """Return the text after the synthetic question."""
    return text.rpartition(_USER)[2]


def _tool(call: ToolCall) -> str:
    """Describe the function of a synthetic call in JSON."""
    kinds = {str: "string", int: "integer"}
    properties = {
        key: {"type": kinds[type(value)], "description": "What it is"}
        for key, value in json.loads(call.arguments).items()
    }
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    described = {"name": call.name, "description": "What it does", "parameters": parameters}
    return json.dumps(described)
