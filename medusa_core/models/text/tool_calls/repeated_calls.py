"""Quote results of tools for models that repeat a call instead of answering.

Small models (measured: Qwen2.5-Coder 0.5B and 1.5B) write the same call again and again once a
prompt offers tools. They answer if the results are quoted in the user's message and no tools are
offered.
"""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.chats.rounds import is_same_call
from medusa_core.messages import ChatMessage, Role, ToolCall, as_content


def with_quoted_results(messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...] | None:
    """Quote the results of calls in the last prompt if the last round only repeated calls.

    Args:
        messages: A conversation that ends with results, or with the beginning of an answer to them.

    Returns:
        The conversation without these calls; None if they aren't repeated.
    """
    prompts = [place for place, message in enumerate(messages) if message.role is Role.USER]
    if not prompts:
        return None
    start = prompts[-1]
    rounds = [message.tool_calls for message in messages[start:] if message.tool_calls]
    begun = messages[-1:] if messages[-1].role is Role.ASSISTANT else ()
    if len(rounds) < 2 or (begun and begun[0].tool_calls):
        return None
    if not all(any(is_same_call(call, other) for other in rounds[-2]) for call in rounds[-1]):
        return None
    quoted = "".join(_quoted(messages[start:]))
    prompt = messages[start]._replace(content=messages[start].content + as_content(quoted))
    return (*messages[:start], prompt, *begun)


def _quoted(messages: Sequence[ChatMessage]) -> list[str]:
    """Return the results of calls as texts; of a repeated call the first."""
    calls: dict[str, ToolCall] = {}
    quoted: list[ToolCall] = []
    texts: list[str] = []
    for message in messages:
        calls |= {call.call_id: call for call in message.tool_calls}
        call = calls.get(message.call_id) if message.role is Role.TOOL else None
        if call is not None and not any(is_same_call(call, other) for other in quoted):
            quoted.append(call)
            arguments = call.arguments or "{}"
            texts.append(f"\n\n{call.name} {arguments} returned:\n{message.text.rstrip()}")
    return texts
