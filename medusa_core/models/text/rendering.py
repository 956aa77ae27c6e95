"""A chat template in Jinja's sandbox: what it may do is bounded, how long it takes is not.

Templates of ours are rendered by this as they are; foreign ones only in a process of their own
(`template_worker`), since a sandbox can't stop `7**n`, `'%1000000000d'` or a loop within loops.
"""

from __future__ import annotations

import datetime
import json
import traceback
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jinja2
from jinja2 import meta, nodes
from jinja2.ext import Extension, LoopControlExtension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from medusa_core.errors import TemplateError

MOST_CHARS = 1 << 22  # of a prompt: ten times the longest context of any model that fits a card
MOST_SOURCE_CHARS = 1 << 19  # of a template: ten times the longest published
# What templates call the variable that says whether to think before the answer: Qwen 3, SmolLM3 and
# others; Granite.
_SWITCHES = ("enable_thinking", "thinking")
_MEND = "Mend the model's chat_template.jinja, or choose another model."


class Rendering:
    """A compiled chat template.

    Attributes:
        switch: The variable that says whether the model thinks before it answers; empty if the
            template asks for none.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        """Compile a template.

        Raises:
            TemplateError: It is too long, or doesn't parse.
        """
        self._special_tokens = special_tokens
        if len(source) > MOST_SOURCE_CHARS:
            raise too_long(len(source))
        try:
            environment = _environment()
            parsed = environment.parse(source)
            variables = meta.find_undeclared_variables(parsed)
            self._template = environment.from_string(parsed)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(
                f"The chat template is wrong in line {error.lineno}: {error.message}.",
                "Download the model again, or mend its chat_template.jinja.",
            ) from error
        except Exception as error:  # nested too deeply for Python's compiler, say
            raise TemplateError(
                f"The chat template can't be read: {_name(error)}.", _MEND
            ) from error
        self.switch = next((name for name in _SWITCHES if name in variables), "")
        self._wants_lists = False  # written for functions alone: no tools are an empty list

    def render(
        self,
        turns: Sequence[Mapping[str, Any]],
        opens_answer: bool,
        thinks: bool | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> str:
        """The prompt of a conversation.

        Args:
            turns: As `turn_as_json` writes them, oldest first.
            opens_answer: End with the marker that asks for the assistant's answer.
            thinks: Whether to think before the answer; None for what the template takes for usual.
            tools: Functions that the model may call, as `tool_as_json` writes them.

        Raises:
            TemplateError: The template refuses the conversation, fails, or writes too much.
        """
        switch = {} if thinks is None or not self.switch else {self.switch: thinks}
        variables = {
            "messages": _ReadOnlyList(turns),
            "add_generation_prompt": opens_answer,
            **switch,
        }
        try:
            if not self._wants_lists:
                try:
                    # As transformers does: templates may ask whether tools are none.
                    return self._written(**variables, tools=list(tools) or None, documents=None)
                except (TypeError, jinja2.UndefinedError):
                    text = self._with_lists(variables, tools)
                    self._wants_lists = text is not None
                    if text is None:
                        raise
                    return text
            return self._written(**variables, **_lists(tools))
        except TemplateError:
            raise
        except jinja2.TemplateError as error:
            raise TemplateError(
                f"The chat template refuses this conversation{_line(error)}: {error}.",
                "Change the message that it means, or choose another model.",
                is_refusal=True,
            ) from error
        except Exception as error:  # a foreign program may raise anything
            raise TemplateError(
                f"The chat template fails{_line(error)}: {_name(error)}.", _MEND, is_refusal=True
            ) from error

    def _with_lists(
        self, variables: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]
    ) -> str | None:
        """The prompt with lists for tools and documents; None if that fails, too."""
        try:
            return self._written(**variables, **_lists(tools))
        except (TypeError, jinja2.TemplateError):
            return None

    def _written(self, **variables: object) -> str:
        parts, num_chars = [], 0
        for part in self._template.generate(**self._special_tokens, **variables):
            parts.append(part)
            num_chars += len(part)
            if num_chars > MOST_CHARS:
                raise TemplateError(
                    f"The chat template writes more than {MOST_CHARS:,} characters.",
                    "Start a new chat if this one is very long; else choose another model.",
                )
        return "".join(parts)


def _lists(tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Variables that templates name which were written for functions alone."""
    return {
        "tools": list(tools),
        "documents": [],
        "functions": _to_json([tool["function"] for tool in tools]),
        "datetime": _strftime_now("%Y-%m-%d"),
    }


def too_long(num_chars: int) -> TemplateError:
    """The error of a template that is too large."""
    return TemplateError(
        f"The chat template has {num_chars:,} characters; {MOST_SOURCE_CHARS:,} are the most.",
        "It is damaged: download the model again.",
    )


def _name(error: Exception) -> str:
    """What an error says, else what it is called."""
    if isinstance(error, MemoryError):
        return "it takes too much memory"
    return str(error) or type(error).__name__


def _line(error: Exception) -> str:
    lines = [
        number
        for frame, number in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == "<template>"
    ]
    return f" in line {lines[-1]}" if lines else ""


class _ReadOnlyList(list[Any]):
    """A list that templates may not change."""


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox; templates may change lists of their own, as llama.cpp lets them."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """May a template use an attribute?"""
        if type(obj) is list and attr in ("append", "pop"):
            return True
        return super().is_safe_attribute(obj, attr, value)


def _environment() -> _Environment:
    environment = _Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[LoopControlExtension, _Generation]
    )
    environment.filters["tojson"] = _to_json
    del environment.globals["lipsum"]
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


class _Generation(Extension):
    """`{% generation %} … {% endgeneration %}`, where answers stand: training asks for it alone."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """What stands within."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return [nodes.Scope(body, lineno=line)]


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | str | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
        default=_listed,
    )


def _listed(value: object) -> list[Any]:
    """What filters give, as llama.cpp writes it."""
    if isinstance(value, Iterator):
        return list(value)
    raise TypeError(f"{type(value).__name__} can't be written as JSON")


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.datetime.now().astimezone().strftime(pattern)
