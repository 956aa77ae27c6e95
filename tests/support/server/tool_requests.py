"""Requests with tools, and checks of the calls that answer them."""

import json
from typing import Any

from tests.support.server.served import Served

PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"enum": ["Berlin", "Paris", "Rome"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["city", "days"],
}
WEATHER = {"name": "weather", "description": "Of a city", "parameters": PARAMETERS}
TOOL = {"type": "function", "function": WEATHER}
CLOCK = {"type": "function", "function": {"name": "clock"}}
QUESTION = {"role": "user", "content": "How is the weather in Rome?"}
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "old": {"type": "boolean"}},
    "required": ["name", "old"],
    "additionalProperties": False,
}


def check_arguments(text: str) -> None:
    arguments = json.loads(text)
    assert arguments["city"] in ("Berlin", "Paris", "Rome")
    assert 1 <= arguments["days"] <= 9
    assert set(arguments) == {"city", "days"}


def asked(served: Served, *messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Request one answer to a conversation."""
    options = {"temperature": 0, "max_tokens": 60, "tools": [TOOL], **fields}
    reply = served.post("/v1/chat/completions", {"messages": messages, **options})
    assert reply.status_code == 200, reply.text
    found: dict[str, Any] = reply.json()
    return found
