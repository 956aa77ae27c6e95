"""A command to answer as the body of a chat completion."""

from __future__ import annotations

import json
from typing import Any

from medusa_core.errors import RequestError
from medusa_core.messages import ChatMessage, Generate, GenerateSettings, Role

_GREEDY = "greedy"


def chat_body(request: Generate, model_id: str) -> dict[str, Any]:
    """What is sent: the conversation, and of the settings those that the API or its servers know.

    What is as usual isn't sent: servers have their own usual, and some refuse names that they don't
    know.

    Raises:
        RequestError: It asks for what can't be asked of another machine.
    """
    _check(request)
    body: dict[str, Any] = {
        "model": model_id,
        "messages": [_message(one) for one in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        **_sampling(request.settings),
        **_length(request.settings),
    }
    if request.tools:
        body["tools"] = [_tool(text) for text in request.tools]
    if request.settings.thinks is not None:
        body["chat_template_kwargs"] = {"enable_thinking": request.settings.thinks}
    return body


def _check(request: Generate) -> None:
    """Refuse what only the engine of this computer can do."""
    lack = ""
    if request.prompt_ids:
        lack = "go on behind tokens"
    elif request.grammar:
        lack = "follow a grammar"
    elif request.num_logprobs >= 0:
        lack = "tell how likely tokens are"
    elif request.keep_tokens is not None:
        lack = "keep a part of an answer"
    if lack:
        raise RequestError(
            f"A model of another machine can't {lack}.", "Load a model of this computer for that."
        )


def _sampling(settings: GenerateSettings) -> dict[str, Any]:
    usual = GenerateSettings()
    if settings.rule == _GREEDY or settings.temperature == 0:
        values: dict[str, Any] = {"temperature": 0}
    else:
        values = {"temperature": settings.temperature, "seed": settings.seed}
        if settings.top_p != usual.top_p:
            values["top_p"] = settings.top_p
        if settings.top_k != usual.top_k:
            values["top_k"] = settings.top_k
        if settings.min_p != usual.min_p:
            values["min_p"] = settings.min_p
    for name in ("presence_penalty", "frequency_penalty"):
        if getattr(settings, name):
            values[name] = getattr(settings, name)
    if settings.repetition_penalty != usual.repetition_penalty:
        # llama-server's name for it, and vLLM's.
        values["repeat_penalty"] = values["repetition_penalty"] = settings.repetition_penalty
    return values


def _length(settings: GenerateSettings) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if settings.max_new_tokens:
        values["max_tokens"] = settings.max_new_tokens
    if settings.stop:
        values["stop"] = list(settings.stop)
    return values


def _message(message: ChatMessage) -> dict[str, Any]:
    written: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if message.tool_calls:
        written["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role is Role.TOOL:
        written["tool_call_id"] = message.call_id
    return written


def _tool(text: str) -> dict[str, Any]:
    try:
        function = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError("A tool is no JSON object.", "Describe it as JSON.") from error
    return {"type": "function", "function": function}
