"""Convert `Generate` to the body of a chat completion."""

from __future__ import annotations

import json
from typing import Any

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.messages import ChatMessage, Generate, GenerateSettings, Role, content_images
from medusa_core.models.text.schema_check import check_json_schema

_GREEDY = "greedy"


def chat_body(request: Generate, model_id: str) -> dict[str, Any]:
    """Return the request body: messages, tools, and settings that endpoints know.

    Settings with default values aren't sent: servers have their own defaults, and some refuse
    unknown fields.

    Raises:
        RequestError: The request uses a feature that endpoints don't have.
        GrammarError: The JSON schema of the settings is invalid.
    """
    _check(request)
    body: dict[str, Any] = {
        "model": model_id,
        "messages": [_message(message) for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
        **_sampling(request.settings),
        **_length(request.settings),
    }
    if request.tools:
        body["tools"] = [_tool(text) for text in request.tools]
    if request.settings.json_schema:
        body["response_format"] = _response_format(request.settings.json_schema)
    if request.settings.thinks is not None:
        body["chat_template_kwargs"] = {"enable_thinking": request.settings.thinks}
    return body


def _check(request: Generate) -> None:
    """Refuse features that only local models have."""
    lack = ""
    if request.prompt_ids:
        lack = tr("go on behind tokens")
    elif request.grammar:
        lack = tr("follow a grammar")
    elif request.num_logprobs >= 0:
        lack = tr("tell how likely tokens are")
    elif request.keep_tokens is not None:
        lack = tr("keep a part of an answer")
    elif any(content_images(message.content) for message in request.messages):
        lack = tr("read images")
    if lack:
        raise RequestError(
            tr("A model of another machine can't {0}.", lack),
            "Load a model of this computer for that.",
        )


def _sampling(settings: GenerateSettings) -> dict[str, Any]:
    """Return the sampling settings; those at defaults are left to the endpoint."""
    if settings.rule == _GREEDY or settings.temperature == 0:
        values: dict[str, Any] = {"temperature": 0}
    else:
        values = {"temperature": settings.temperature, "seed": settings.seed}
        values |= _changed(settings, "top_p", "top_k", "min_p")
    values |= _changed(settings, "presence_penalty", "frequency_penalty")
    if settings.repetition_penalty != GenerateSettings().repetition_penalty:
        # llama-server's name, and vLLM's.
        values["repeat_penalty"] = values["repetition_penalty"] = settings.repetition_penalty
    return values


def _changed(settings: GenerateSettings, *names: str) -> dict[str, Any]:
    """Return the settings that differ from the defaults."""
    default = GenerateSettings()
    changed = (name for name in names if getattr(settings, name) != getattr(default, name))
    return {name: getattr(settings, name) for name in changed}


def _length(settings: GenerateSettings) -> dict[str, Any]:
    """Return token limit and stop strings."""
    values: dict[str, Any] = {}
    if settings.max_new_tokens:
        values["max_tokens"] = settings.max_new_tokens
    if settings.stop:
        values["stop"] = list(settings.stop)
    return values


def _response_format(schema: str) -> dict[str, Any]:
    """Return OpenAI's form of a schema.

    Raises:
        GrammarError: The schema is invalid.
    """
    check_json_schema(schema)
    return {
        "type": "json_schema",
        "json_schema": {"name": "answer", "schema": json.loads(schema)},
    }


def _message(message: ChatMessage) -> dict[str, Any]:
    """Convert a message to OpenAI's form."""
    body: dict[str, Any] = {"role": message.role.value, "content": message.text}
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.role is Role.TOOL:
        body["tool_call_id"] = message.call_id
    return body


def _tool(text: str) -> dict[str, Any]:
    """Convert a function to OpenAI's form."""
    try:
        function = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError("A tool is no JSON object.", "Describe it as JSON.") from error
    return {"type": "function", "function": function}
