"""Check requests before any work is done for them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import fields

from medusa_core.chats.settings import SETTINGS
from medusa_core.errors import RequestError
from medusa_core.messages import GROWTHS, ChatMessage, GenerateSettings
from medusa_core.runtime.tree.tables import MAX_TREE_ROWS

_MAX_TEMPERATURE = 100.0
_MAX_NEW_TOKENS = 1 << 24
_MAX_STOPS, _MAX_STOP_CHARS = 64, 10_000
_MAX_TOOLS = 256
_MAX_LOGPROBS = 20  # as in OpenAI's API


def admit(messages: Sequence[ChatMessage], settings: GenerateSettings) -> None:
    """Check messages and settings as far as they don't depend on the model.

    Raises:
        RequestError: A setting is out of range, or a message isn't valid text.
    """
    for message in messages:
        _check_text(message.content, "A message")
        for call in message.tool_calls:
            _check_text(call.name + call.arguments, "A call of a function")
    admit_settings(settings)


def admit_settings(settings: GenerateSettings) -> None:
    """Check the settings that don't depend on the model.

    Raises:
        RequestError: A setting is out of range; the hint names the range.
    """
    _check_numbers(settings)
    if not 0 <= settings.max_new_tokens <= _MAX_NEW_TOKENS:
        raise RequestError(
            f"An answer of at most {settings.max_new_tokens} tokens makes no sense.",
            "Choose 1 or more, or 0 for what the context leaves.",
        )
    if not 0 <= settings.tree_rows <= MAX_TREE_ROWS:
        raise RequestError(
            f"A tree can't have {settings.tree_rows} rows.",
            f"Choose 1 to {MAX_TREE_ROWS}, or 0 to let the engine choose.",
        )
    if settings.growth not in GROWTHS:
        raise RequestError(
            f"Drafts can't grow as {settings.growth!r}.", f"Choose one of {', '.join(GROWTHS)}."
        )
    _check_lookahead(settings)
    if len(settings.stop) > _MAX_STOPS or any(len(s) > _MAX_STOP_CHARS for s in settings.stop):
        raise RequestError("There are too many stop strings, or one is too long.", "Use fewer.")
    for stop in settings.stop:
        _check_text(stop, "A stop string")


def admit_tools(tools: Sequence[str]) -> None:
    """Check descriptions of functions.

    Raises:
        RequestError: There are too many, or one isn't a JSON object with a name.
    """
    if len(tools) > _MAX_TOOLS:
        raise RequestError(f"{len(tools)} functions are too many.", f"Name {_MAX_TOOLS} at most.")
    for tool in tools:
        try:
            function = json.loads(tool)
        except (ValueError, RecursionError) as error:
            raise RequestError(
                "The description of a function is no JSON.", "Write it as a JSON object."
            ) from error
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise RequestError(
                "A function has no name.", 'Describe it as {"name": …, "parameters": …}.'
            )
        _check_text(tool, "The description of a function")


def admit_logprobs(num_logprobs: int) -> None:
    """Check the number of requested alternatives; −1 requests none.

    Raises:
        RequestError: It is out of range.
    """
    if not -1 <= num_logprobs <= _MAX_LOGPROBS:
        raise RequestError(
            f"{num_logprobs} alternatives to each token can't be given.",
            f"Choose 0 to {_MAX_LOGPROBS}.",
        )


def check_threads(num_threads: int) -> None:
    """Check a number of threads; 0 lets the engine choose.

    Raises:
        RequestError: It is out of range for this computer.
    """
    most = 4 * (os.cpu_count() or 1)
    if not 0 <= num_threads <= most:
        raise RequestError(
            f"{num_threads} threads make no sense here.",
            f"Choose 1 to {most}, or 0 for the fastest count.",
        )


def _check_numbers(settings: GenerateSettings) -> None:
    """Refuse settings that are NaN or infinite, and temperatures out of range."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise RequestError(
                f"{field.name.replace('_', ' ').capitalize()} is {value}.", "Choose a number."
            )
    if not 0 <= settings.temperature <= _MAX_TEMPERATURE:
        raise RequestError(
            f"A temperature of {settings.temperature:.3g} makes no sense.",
            "Choose one between 0 and 2; 0 is greedy.",
        )


def _check_lookahead(settings: GenerateSettings) -> None:
    """Check the sizes of lookahead decoding against the ranges of the settings."""
    for name in ("lookahead_window", "lookahead_size", "lookahead_guesses"):
        setting = SETTINGS[name]
        try:
            setting.read(getattr(settings, name))
        except (TypeError, ValueError) as error:
            raise RequestError(
                f"{error}.", f"Choose a whole number from {setting.low:g} to {setting.high:g}."
            ) from error


def _check_text(text: str, what: str) -> None:
    """Refuse a string with lone surrogates, which can't be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            f"{what} holds half a character at {error.start}, which isn't text.",
            "Type it again, or save the file it comes from as UTF-8.",
        ) from error
