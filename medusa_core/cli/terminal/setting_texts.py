"""Parses and lists the settings of a chat."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from medusa_core.chats.settings import SETTINGS, ChatSettings
from medusa_core.errors import RequestError
from medusa_core.messages import GROWTHS, ModelLoaded, Overflow

_ELSEWHERE = ("system_prompt", "tools")  # a command and an option of their own
_THINKS = {"usual": None, "on": True, "off": False}
_SWITCH = {"on": True, "off": False}
_NONE = ("off", "none", "random", "")
_MEANINGS = {
    "drafter": "How tokens are drafted; auto for the model's default.",
    "rule": "How tokens are chosen: {rules}.",
    "seed": "A number repeats an answer; random for another one each time.",
    "stop": "A string, or a JSON list of them, that ends an answer; off for none.",
    "overflow": "Of a chat that is too long: stop, rolling or middle.",
    "thinks": "Whether a model that may think first does: usual, on or off.",
    "stop_on_repetition": "Whether an answer that only repeats itself ends: on or off.",
    "growth": "The shape of drafts: chain, tree, or auto for what pays in each step.",
    "json_schema": "A JSON schema that answers match; off for any text.",
}
NAMES = tuple(one.name for one in fields(ChatSettings) if one.name not in _ELSEWHERE)


def with_parsed(
    settings: ChatSettings, name: str, text: str, loaded: ModelLoaded | None
) -> ChatSettings:
    """Return settings with one parsed value.

    Args:
        settings: Settings before.
        name: Name of the setting, with `-` or `_`.
        text: Value.
        loaded: The model, whose drafters and rules are valid; None if it isn't loaded yet.

    Raises:
        RequestError: The setting or value is unknown.
    """
    key = setting_name(name)
    _check_choice(key, text, loaded)
    try:
        return settings.with_value(key, _parse(key, text.strip()))
    except (TypeError, ValueError, KeyError) as error:
        raise RequestError(f"{key} can't be {text!r}.", _help_of(key, loaded)) from error


def setting_name(typed: str) -> str:
    """Return the name of a setting, typed with `-` or `_`.

    Raises:
        RequestError: The setting is unknown.
    """
    name = typed.replace("-", "_").lower()
    if name not in NAMES:
        raise RequestError(f"There is no setting {typed}.", f"Settings are {', '.join(NAMES)}.")
    return name


def typed_values(name: str, loaded: ModelLoaded) -> tuple[str, ...]:
    """Return the values of a setting; empty for numbers and texts."""
    match name:
        case "drafter":
            return ("auto", *(one.name for one in loaded.drafters))
        case "rule":
            return tuple(one.name for one in loaded.rules)
        case "overflow":
            return tuple(one.value for one in Overflow)
        case "thinks":
            return tuple(_THINKS)
        case "growth":
            return GROWTHS
        case "stop_on_repetition":
            return tuple(_SWITCH)
    return ()


def setting_lines(settings: ChatSettings, loaded: ModelLoaded, columns: int) -> list[str]:
    """Return one line for each setting: name, value, meaning.

    Args:
        settings: Settings of the chat.
        columns: Most columns of a line.
    """
    width = max(map(len, NAMES)) + 2
    lines = []
    for name in NAMES:
        line = f"{name:<{width}}{setting_value_text(settings, name):<10} {meaning_of(name, loaded)}"
        lines.append(line if len(line) <= columns else f"{line[: columns - 1]}…")
    return lines


def setting_value_text(settings: ChatSettings, name: str) -> str:
    """Return the value of a setting as users type it."""
    value = getattr(settings, name)
    declared = SETTINGS.get(name)
    if declared is not None:
        return declared.off_text if value == declared.off else f"{value:g}"
    match name:
        case "thinks":
            return _word_of(value, _THINKS)
        case "stop_on_repetition":
            return _word_of(value, _SWITCH)
        case "seed":
            return "random" if value is None else str(value)
        case "stop":
            return json.dumps(list(value), ensure_ascii=False) if value else "off"
        case "overflow":
            return str(value.value)
        case "json_schema":
            return value or "off"
    return value or "auto"


def meaning_of(name: str, loaded: ModelLoaded | None) -> str:
    """Return a sentence on the effect of a setting."""
    if name in SETTINGS:
        return SETTINGS[name].meaning
    rules = () if loaded is None else loaded.rules
    return _MEANINGS[name].format(rules=_listed([one.name for one in rules]) or "such as greedy")


def _help_of(name: str, loaded: ModelLoaded | None) -> str:
    """Return the valid values and the effect of a setting."""
    meaning = meaning_of(name, loaded)
    declared = SETTINGS.get(name)
    if declared is None:
        return meaning
    number = "a whole number" if declared.is_whole else "a number"
    off = "" if declared.off is None else f", or {declared.off_text}"
    return f"It takes {number} from {declared.low:g} to {declared.high:g}{off}. {meaning}"


def _check_choice(name: str, text: str, loaded: ModelLoaded | None) -> None:
    """Refuse a drafter or rule that the loaded model lacks."""
    if loaded is None or name not in ("drafter", "rule"):
        return
    known = typed_values(name, loaded)
    if text not in known:
        raise RequestError(f"{loaded.name} has no {name} {text}.", f"Choose {_listed(known)}.")


def _parse(name: str, text: str) -> Any:
    """Parse the value of a setting."""
    declared = SETTINGS.get(name)
    if declared is not None:
        if declared.off is not None and text.lower() in ("off", declared.off_text):
            return declared.off
        return int(text) if declared.is_whole else float(text)
    match name:
        case "seed":
            return None if text.lower() in _NONE else int(text)
        case "thinks":
            return _THINKS[text.lower()]
        case "stop_on_repetition":
            return _SWITCH[text.lower()]
        case "stop":
            if text.lower() in _NONE:
                return []
            return json.loads(text) if text.startswith("[") else [text]
        case "drafter":
            return "" if text == "auto" else text
        case "json_schema":
            return "" if text.lower() in _NONE else text
    return text


def _word_of(value: bool | None, words: Mapping[str, bool | None]) -> str:
    """Return the word that users type for a value."""
    return next(word for word, meant in words.items() if meant is value)


def _listed(names: Sequence[str]) -> str:
    """Join names as "a, b or c"."""
    *first, last = names or ("",)
    return f"{', '.join(first)} or {last}" if first else last
