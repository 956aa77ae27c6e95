"""Settings of a conversation: typed, saved as JSON, converted for the engine."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from medusa_core.chats.setting import (
    ReadValue,
    Setting,
    SettingGroup,
    When,
    declaration,
    declared,
)
from medusa_core.messages import (
    AUTO_GROWTH,
    GROWTHS,
    ChatMessage,
    GenerateSettings,
    Lookahead,
    Overflow,
    Role,
)
from medusa_core.system.files.json_file import is_whole
from medusa_core.system.files.record_json import read_value

log = logging.getLogger(__name__)

_MOST_CHARS = 1 << 20  # of a system prompt
_MOST_STOPS, _LONGEST_STOP = 16, 200
_MOST_TOOLS, _LONGEST_TOOL = 4096, 1000  # a server may have 256
MOST_SCHEMA_CHARS = 1 << 16
_MOST_SEED = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class ChatSettings:
    """Settings of a conversation; see `GenerateSettings` for most.

    Attributes:
        system_prompt: System prompt; empty for none.
        drafter: Name of the drafter; empty for the model's default.
        rule: Name of the acceptance rule.
        seed: Seed of the sampling noise; None for a new one per answer.
        stop: Stop strings.
        stop_on_repetition: Whether to end an answer that only repeats itself.
        overflow: What to do with a conversation that exceeds the context.
        thinks: Whether the model reasons before it answers; None for the template's default.
        growth: One of `GROWTHS`: shape of the drafts.
        tools: Ids of the tools that the model may call, such as `builtin/calculate`; those that
            aren't there now are ignored.
        json_schema: JSON schema of the answers, as typed; empty for any text. The engine refuses an
            invalid one.
    """

    system_prompt: str = ""
    drafter: str = ""
    rule: str = "greedy"
    temperature: float = declared(
        Setting(
            "Temperature", SettingGroup.SAMPLING, 0.0, 2.0, 0.1, 0.7,
            "Below 1, likely tokens become even likelier; above 1, rare tokens become likelier.",
            "The higher it is, the more draft tokens are rejected.",
            When.DRAWS, off=0, off_text="greedy",
        )
    )  # fmt: skip
    top_k: int = declared(
        Setting(
            "Top-k", SettingGroup.SAMPLING, 0, 1000, 1, 0,
            "Draws only from this many of the likeliest tokens.",
            "Fewer to draw from: more draft tokens are accepted.",
            When.DRAWS, off=0,
        )
    )  # fmt: skip
    top_p: float = declared(
        Setting(
            "Top-p", SettingGroup.SAMPLING, 0.05, 1.0, 0.05, 1.0,
            "Draws among the likeliest tokens that together reach this probability.",
            "Fewer to draw from: more draft tokens are accepted.",
            When.DRAWS, off=1,
        )
    )  # fmt: skip
    min_p: float = declared(
        Setting(
            "Min-p", SettingGroup.SAMPLING, 0.0, 1.0, 0.01, 0.0,
            "Draws among tokens at least this share as likely as the best one.",
            "Fewer to draw from: more draft tokens are accepted.",
            When.DRAWS, off=0,
        )
    )  # fmt: skip
    repetition_penalty: float = declared(
        Setting(
            "Repetition penalty", SettingGroup.SAMPLING, 0.5, 2.0, 0.05, 1.0,
            "Makes tokens rarer that the chat or the answer already holds.",
            "Drafters ignore this setting: values far from 1 lower the acceptance rate.",
            off=1,
        )
    )  # fmt: skip
    presence_penalty: float = declared(
        Setting(
            "Presence penalty", SettingGroup.SAMPLING, -2.0, 2.0, 0.1, 0.0,
            "Makes tokens rarer that the answer already holds.",
            "Drafters ignore this setting: values far from 0 lower the acceptance rate.",
            off=0,
        )
    )  # fmt: skip
    frequency_penalty: float = declared(
        Setting(
            "Frequency penalty", SettingGroup.SAMPLING, -2.0, 2.0, 0.1, 0.0,
            "Makes tokens rarer each time the answer uses them.",
            "Drafters ignore this setting: values far from 0 lower the acceptance rate.",
            off=0,
        )
    )  # fmt: skip
    seed: int | None = None
    max_new_tokens: int = declared(
        Setting(
            "Longest answer", SettingGroup.LENGTH, 0, 1_000_000, 64, 4096,
            "Ends an answer after this many tokens; without a limit it may fill the context.",
            "Drafting does not depend on it.",
            off=0, off_text="no limit",
        )
    )  # fmt: skip
    stop: tuple[str, ...] = ()
    stop_on_repetition: bool = True
    epsilon: float = declared(
        Setting(
            "Threshold ε", SettingGroup.SPEED_UP, 0.01, 0.99, 0.01, 0.09,
            "A draft token is accepted where the model finds it likelier than this.",
            "Lower accepts more draft tokens: faster, and further from the model's own words.",
            When.NOT_EXACT,
        )
    )  # fmt: skip
    delta: float = declared(
        Setting(
            "Leniency δ", SettingGroup.SPEED_UP, 0.0, 2.0, 0.01, 0.0,
            "A draft token is accepted if its probability exceeds min(ε, δ·exp(−H)), where H is "
            "the entropy of the model's distribution.",
            "Lower accepts more draft tokens: faster, and further from the model's own words.",
            When.NOT_EXACT, off=0, off_text="√ε",
        )
    )  # fmt: skip
    tree_rows: int = declared(
        Setting(
            "Tree rows", SettingGroup.SPEED_UP, 0, 1024, 1, 0,
            "The most tokens verified in one step, the last decided one included.",
            "More rows hold more draft tokens but make each step slower; automatic weighs both.",
            When.DRAFTS, off=0, off_text="automatic",
        )
    )  # fmt: skip
    lookahead_window: int = declared(
        Setting(
            "Lookahead window W", SettingGroup.SPEED_UP, 1, 256, 1, Lookahead().window,
            "How many positions after the text are drafted in parallel in each step.",
            "More positions find more draft tokens, but each takes N − 1 rows of a step.",
            When.LOOKS_AHEAD,
        )
    )  # fmt: skip
    lookahead_size: int = declared(
        Setting(
            "Lookahead length N", SettingGroup.SPEED_UP, 2, 16, 1, Lookahead().size,
            "Length of an n-gram in tokens; the first of them is already decided.",
            "Longer ones save more where they are right, which is rarer.",
            When.LOOKS_AHEAD,
        )
    )  # fmt: skip
    lookahead_guesses: int = declared(
        Setting(
            "Lookahead n-grams G", SettingGroup.SPEED_UP, 1, 256, 1, Lookahead().guesses,
            "How many n-grams are kept for each first token, and verified per step.",
            "More are right more often, but take more rows of a step.",
            When.LOOKS_AHEAD,
        )
    )  # fmt: skip
    overflow: Overflow = Overflow.ROLLING
    thinks: bool | None = None
    growth: str = AUTO_GROWTH
    tools: tuple[str, ...] = ()
    json_schema: str = ""

    def generate_settings(self, seed: int) -> GenerateSettings:
        """Return the settings for the engine.

        Args:
            seed: Seed to use if none is set.
        """
        values = {name: getattr(self, name) for name in _SHARED}
        return GenerateSettings(**{**values, "seed": seed if self.seed is None else self.seed})

    def framed(self, messages: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
        """Return a conversation with the system prompt, if there is one."""
        prompt = self.system_prompt.strip()
        system = (ChatMessage(Role.SYSTEM, prompt),) if prompt else ()
        return (*system, *messages)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as JSON."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        lists = {"stop": list(self.stop), "tools": list(self.tools)}
        return {**values, **lists, "overflow": self.overflow.value}

    def with_value(self, name: str, value: Any) -> ChatSettings:
        """Return the settings with another value, in the form of JSON.

        Raises:
            KeyError: There is no such setting.
            TypeError: The value has another type.
            ValueError: The value is out of range.
        """
        return replace(self, **{name: _READERS[name](value)})

    def with_json(self, raw: Mapping[str, Any]) -> ChatSettings:
        """Return the settings with the valid ones of a file."""
        read: dict[str, Any] = {}
        for name, reader in _READERS.items():
            try:
                if name in raw:
                    read[name] = reader(raw[name])
            except (ValueError, TypeError, OverflowError) as error:
                log.warning("the setting %s is left as it is: %s", name, error)
        return replace(self, **read)


def _text(value: Any) -> str:
    """Validate a text of a file."""
    if not isinstance(value, str) or len(value) > _MOST_CHARS:
        raise ValueError("it is no text, or too long")
    value.encode()  # refuses lone surrogates
    return value


def _seed(value: Any) -> int | None:
    """Validate a seed; None draws a new one for each answer."""
    if value is None:
        return None
    if not is_whole(value, 0, _MOST_SEED):
        raise ValueError(f"{value!r} is no seed")
    return value


def _growth(value: Any) -> str:
    """Validate the name of a tree growth."""
    if value not in GROWTHS:
        raise ValueError(f"{value!r} is none of {', '.join(GROWTHS)}")
    return str(value)


def _stops(value: Any) -> tuple[str, ...]:
    """Validate the list of stop strings."""
    if not isinstance(value, list) or len(value) > _MOST_STOPS:
        raise ValueError("it is no list, or too long")
    stops = tuple(_text(stop) for stop in value)
    if any(not stop or len(stop) > _LONGEST_STOP for stop in stops):
        raise ValueError("a stop string is empty or too long")
    return stops


def _tools(value: Any) -> tuple[str, ...]:
    """Validate the ids of tools."""
    if not isinstance(value, list) or len(value) > _MOST_TOOLS:
        raise ValueError("it is no list, or too long")
    tools = tuple(dict.fromkeys(_text(tool) for tool in value))
    if any(not tool or len(tool) > _LONGEST_TOOL for tool in tools):
        raise ValueError("the id of a tool is empty or too long")
    return tools


def _schema(value: Any) -> str:
    """Validate the length of a schema; the engine checks the rest."""
    if len(schema := _text(value)) > MOST_SCHEMA_CHARS:
        raise ValueError("the schema is too long")
    return schema


# The numeric settings by name.
SETTINGS: dict[str, Setting] = {
    f.name: setting
    for f in fields(ChatSettings)
    if (setting := declaration(f.metadata)) is not None
}
_SHARED = tuple({f.name for f in fields(ChatSettings)} & {f.name for f in fields(GenerateSettings)})
_READERS: dict[str, ReadValue] = {
    "system_prompt": _text,
    "drafter": _text,
    "rule": _text,
    "seed": _seed,
    "stop": _stops,
    "stop_on_repetition": lambda value: read_value(bool, value, "it"),
    "overflow": Overflow,
    "thinks": lambda value: read_value(bool | None, value, "it"),
    "growth": _growth,
    "tools": _tools,
    "json_schema": _schema,
    **{name: setting.read for name, setting in SETTINGS.items()},
}
