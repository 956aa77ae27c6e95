"""Quote results of tools for models that are to answer rather than to call again.

Small models (measured: Qwen2.5-Coder 0.5B and 1.5B) write the same call again and again once a
prompt offers tools. They answer if the results are quoted in the user's message and no tools are
offered. Without the last sentence they explain how to get such results by a program.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from medusa_core.chats.rounds import is_same_call
from medusa_core.messages import ChatMessage, Role, ToolCall, as_content
from medusa_core.tools.results import REPEATED, ResultRoom, cut_results

_LAST = "\n\nAnswer from these results, in full sentences."
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
    messages: Sequence[ChatMessage], room: ResultRoom, *, is_last: bool = False
) -> tuple[ChatMessage, ...] | None:
    """Quote the results of calls in the last prompt if the model is to call no more tools.

    It repeats itself if a round repeats the calls of the round before, or if two rounds repeat
    calls of any earlier round, with the same results. Reading again what has changed is no
    repetition, unless the same calls are all of three rounds.

    Args:
        messages: A conversation that ends with results, or with the beginning of an answer to them.
        room: Room of the results, which are cut to it.
        is_last: Whether the model is to answer even if it doesn't repeat itself.

    Returns:
        The conversation without these calls; None if the model may go on with calls.
    """
    prompts = [place for place, message in enumerate(messages) if message.role is Role.USER]
    if not prompts:
        return None
    start = prompts[-1]
    begun = messages[-1:] if messages[-1].role is Role.ASSISTANT else ()
    rounds = _rounds(messages[start:])
    is_over = _is_repeating(rounds) or (is_last and bool(rounds))
    if not is_over or (begun and begun[0].tool_calls):
        return None
    found: list[_Call] = []
    for call in chain.from_iterable(rounds):
        if not any(call.repeats(other) for other in found):
            found.append(call)
    results = cut_results([result for _, result in found], room)
    quoted = "".join(
        f"\n\n{call.name} {call.arguments or '{}'} returned:\n{result.rstrip()}"
        for (call, _), result in zip(found, results, strict=True)
    )
    prompt = messages[start]._replace(content=messages[start].content + as_content(quoted + _LAST))
    return (*messages[:start], prompt, *begun)


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
