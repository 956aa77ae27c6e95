"""Check requests before any work is done for them."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import fields

from medusa_core.chats.settings import SETTINGS
from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.messages import GROWTHS, ChatMessage, GenerateSettings, content_images
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
    if any(content_images(message.content) for message in messages):
        raise RequestError(
            "The models here read no images.", "Remove the image, or begin a new conversation."
        )
    for message in messages:
        _check_text(message.text, tr("A message"))
        for call in message.tool_calls:
            _check_text(call.name + call.arguments, tr("A call of a function"))
    admit_settings(settings)


def admit_settings(settings: GenerateSettings) -> None:
    """Check the settings that don't depend on the model.

    Raises:
        RequestError: A setting is out of range; the hint names the range.
    """
    _check_numbers(settings)
    if not 0 <= settings.max_new_tokens <= _MAX_NEW_TOKENS:
        raise RequestError(
            tr("An answer of at most {0} tokens makes no sense.", settings.max_new_tokens),
            "Choose 1 or more, or 0 for what the context leaves.",
        )
    if not 0 <= settings.tree_rows <= MAX_TREE_ROWS:
        raise RequestError(
            tr("A tree can't have {0} rows.", settings.tree_rows),
            tr("Choose 1 to {0}, or 0 to let the engine choose.", MAX_TREE_ROWS),
        )
    if settings.growth not in GROWTHS:
        raise RequestError(
            tr("Drafts can't grow as {0}.", repr(settings.growth)),
            tr("Choose one of {0}.", ", ".join(GROWTHS)),
        )
    _check_lookahead(settings)
    if len(settings.stop) > _MAX_STOPS or any(len(s) > _MAX_STOP_CHARS for s in settings.stop):
        raise RequestError("There are too many stop strings, or one is too long.", "Use fewer.")
    for stop in settings.stop:
        _check_text(stop, tr("A stop string"))


def admit_tools(tools: Sequence[str]) -> None:
    """Check descriptions of functions.

    Raises:
        RequestError: There are too many, or one isn't a JSON object with a name.
    """
    if len(tools) > _MAX_TOOLS:
        raise RequestError(
            tr("{0} functions are too many.", len(tools)), tr("Name {0} at most.", _MAX_TOOLS)
        )
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
        _check_text(tool, tr("The description of a function"))


def admit_logprobs(num_logprobs: int) -> None:
    """Check the number of requested alternatives; −1 requests none.

    Raises:
        RequestError: It is out of range.
    """
    if not -1 <= num_logprobs <= _MAX_LOGPROBS:
        raise RequestError(
            tr("{0} alternatives to each token can't be given.", num_logprobs),
            tr("Choose 0 to {0}.", _MAX_LOGPROBS),
        )


def check_threads(num_threads: int) -> None:
    """Check a number of threads; 0 lets the engine choose.

    Raises:
        RequestError: It is out of range for this computer.
    """
    most = 4 * (os.cpu_count() or 1)
    if not 0 <= num_threads <= most:
        raise RequestError(
            tr("{0} threads make no sense here.", num_threads),
            tr("Choose 1 to {0}, or 0 for the fastest count.", most),
        )


def _check_numbers(settings: GenerateSettings) -> None:
    """Refuse settings that are NaN or infinite, and temperatures out of range."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        if isinstance(value, float) and not math.isfinite(value):
            raise RequestError(
                tr("{0} is {1}.", field.name.replace("_", " ").capitalize(), value),
                "Choose a number.",
            )
    if not 0 <= settings.temperature <= _MAX_TEMPERATURE:
        raise RequestError(
            tr("A temperature of {0:.3g} makes no sense.", settings.temperature),
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
                tr("{0}.", error),
                tr("Choose a whole number from {0:g} to {1:g}.", setting.low, setting.high),
            ) from error


def _check_text(text: str, what: str) -> None:
    """Refuse a string with lone surrogates, which can't be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError(
            tr("{0} holds half a character at {1}, which isn't text.", what, error.start),
            "Type it again, or save the file it comes from as UTF-8.",
        ) from error
