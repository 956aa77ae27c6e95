"""Quote results of tools for models that don't understand the template's form of them.

Small models (measured: Qwen2.5-Coder 0.5B and 1.5B) write calls without the template's markers, and
then the same call again and again. They answer if the results are quoted in the user's message; if
a model repeats itself even then, no tools are offered. Without the last sentence they explain how
to get such results by a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from medusa_core.chats.rounds import is_same_call
from medusa_core.messages import ChatMessage, Role, ToolCall, as_content
from medusa_core.tools.results import REPEATED, ResultRoom, cut_results

_LAST = "\n\nAnswer from these results, in full sentences."
_NEXT = (
    "\n\nIf these results answer the question, answer in full sentences. Otherwise call another "
    "function."
)
_MOST_SAME = 3  # rounds of the same calls whose results differ


class _Call(NamedTuple):
    """A call with its result."""

    call: ToolCall
    result: str

    def repeats(self, other: _Call) -> bool:
        """Whether it repeats another call, which had the same result."""
        return self.result == other.result and self.is_same(other)

    def is_same(self, other: _Call) -> bool:
        """Whether it has the function and arguments of another call."""
        return is_same_call(self.call, other.call)


def with_quoted_results(
    messages: Sequence[ChatMessage], room: ResultRoom, *, may_call: bool
) -> tuple[ChatMessage, ...]:
    """Quote the results of an answer's calls in the user's message.

    Args:
        messages: A conversation that ends with results, or with the beginning of an answer to them.
        room: Room of the results, which are cut to it.
        may_call: Whether the model is offered tools.

    Returns:
        The conversation without these calls; unchanged if there are none.
    """
    start, begun, rounds = _last_answer(messages)
    if not rounds:
        return tuple(messages)
    found: list[_Call] = []
    for call in chain.from_iterable(rounds):
        if not any(call.repeats(other) for other in found):
            found.append(call)
    results = cut_results([result for _, result in found], room)
    quoted = "".join(
        f"\n\n{call.name} {call.arguments or '{}'} returned:\n{result.rstrip()}"
        for (call, _), result in zip(found, results, strict=True)
    )
    content = messages[start].content + as_content(quoted + (_NEXT if may_call else _LAST))
    return (*messages[:start], messages[start]._replace(content=content), *begun)


def repeats_calls(messages: Sequence[ChatMessage]) -> bool:
    """Return whether a model only repeats its calls.

    It does if a round repeats the calls of the round before, or if two rounds repeat calls of any
    earlier round, with the same results. Reading again what has changed is no repetition, unless
    the same calls are all of three rounds.

    Args:
        messages: A conversation as in `with_quoted_results`.
    """
    return _is_repeating(_last_answer(messages)[2])


def _last_answer(
    messages: Sequence[ChatMessage],
) -> tuple[int, Sequence[ChatMessage], list[list[_Call]]]:
    """Return the place of the last prompt, the beginning of the next round, and earlier rounds.

    An answer that is continued within its calls has no earlier rounds.
    """
    start = max((n for n, one in enumerate(messages) if one.role is Role.USER), default=-1)
    begun = messages[-1:] if start >= 0 and messages[-1].role is Role.ASSISTANT else ()
    is_within_calls = bool(begun) and bool(begun[0].tool_calls)
    rounds = [] if start < 0 or is_within_calls else _rounds(messages[start:])
    return start, begun, rounds


def _rounds(messages: Sequence[ChatMessage]) -> list[list[_Call]]:
    """Return the rounds of calls of an answer, with their results."""
    rounds: list[list[_Call]] = []
    calls: dict[str, ToolCall] = {}  # of one round: servers count ids from 0 in each
    for message in messages:
        if message.tool_calls:
            calls = {call.call_id: call for call in message.tool_calls}
            rounds.append([])
        elif message.role is Role.TOOL and message.call_id in calls:
            result = message.text.removeprefix(REPEATED)
            rounds[-1].append(_Call(calls[message.call_id], result))
    return rounds


def _is_repeating(rounds: Sequence[Sequence[_Call]]) -> bool:
    """Whether the last rounds of an answer only repeat calls."""
    if len(rounds) < 2 or not (rounds[-1] and rounds[-2]):
        return False
    if _repeats(rounds[-1], rounds[-2]):
        return True
    last = rounds[-_MOST_SAME:]
    if len(last) == _MOST_SAME and all(
        any(call.is_same(other) for other in earlier)
        for earlier, later in pairwise(last)
        for call in later
    ):
        return True
    return all(
        len(rounds) > place and _repeats(rounds[-place], list(chain.from_iterable(rounds[:-place])))
        for place in (1, 2)
    )


def _repeats(calls: Sequence[_Call], earlier: Sequence[_Call]) -> bool:
    """Whether each of some calls repeats an earlier one."""
    return all(any(call.repeats(other) for other in earlier) for call in calls)
