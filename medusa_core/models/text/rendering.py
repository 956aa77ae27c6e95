"""Render chat templates in Jinja's sandbox, which limits what they can do, but not for how long.

Shipped templates are rendered in the engine; others only in a process of their own
(`template_process`).
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
from medusa_core.i18n import tr

MAX_PROMPT_CHARS = 1 << 22  # ten times the longest context of any model that fits a GPU
MAX_SOURCE_CHARS = 1 << 19  # of a template: ten times the longest published one
# Variables that switch reasoning on and off: Qwen 3, SmolLM3 and others; Granite.
_SWITCHES = ("enable_thinking", "thinking")
_MEND = tr("Mend the model's chat_template.jinja, or choose another model.")


class Rendering:
    """A compiled chat template.

    Attributes:
        switch: Variable that switches reasoning on and off; empty if the template has none.
    """

    def __init__(self, source: str, special_tokens: Mapping[str, str]) -> None:
        """Compile a template.

        Raises:
            TemplateError: It is too long, or doesn't parse.
        """
        self._special_tokens = special_tokens
        if len(source) > MAX_SOURCE_CHARS:
            raise too_long(len(source))
        try:
            environment = _environment()
            parsed = environment.parse(source)
            variables = meta.find_undeclared_variables(parsed)
            self._template = environment.from_string(parsed)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(
                tr("The chat template is wrong in line {0}: {1}.", error.lineno, error.message),
                "Download the model again, or mend its chat_template.jinja.",
            ) from error
        except Exception as error:  # such as nesting that is too deep for Python's compiler
            raise TemplateError(
                tr("The chat template can't be read: {0}.", _name(error)), _MEND
            ) from error
        self.switch = next((name for name in _SWITCHES if name in variables), "")
        self._wants_lists = False  # whether "no tools" must be an empty list instead of None

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        opens_answer: bool,
        thinks: bool | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
    ) -> str:
        """Render a conversation to the text of a prompt.

        Args:
            messages: Messages in the form of `turn_as_json`.
            opens_answer: `add_generation_prompt`.
            thinks: Value of the reasoning switch; None for the template's default.
            tools: Tools in the form of `tool_as_json`.

        Raises:
            TemplateError: The template refuses the conversation, fails, or writes too much.
        """
        switch = {} if thinks is None or not self.switch else {self.switch: thinks}
        variables = {
            "messages": _ReadOnlyList(messages),
            "add_generation_prompt": opens_answer,
            **switch,
        }
        try:
            if not self._wants_lists:
                try:
                    # As in transformers: templates may test whether tools are None.
                    return self._generate(**variables, tools=list(tools) or None, documents=None)
                except (TypeError, jinja2.UndefinedError):
                    text = self._with_lists(variables, tools)
                    self._wants_lists = text is not None
                    if text is None:
                        raise
                    return text
            return self._generate(**variables, **_lists(tools))
        except TemplateError:
            raise
        except jinja2.TemplateError as error:
            raise TemplateError(
                tr("The chat template refuses this conversation{0}: {1}.", _line(error), error),
                "Change the message that it means, or choose another model.",
                is_refusal=True,
            ) from error
        except Exception as error:  # templates are programs: they may raise anything
            raise TemplateError(
                tr("The chat template fails{0}: {1}.", _line(error), _name(error)),
                _MEND,
                is_refusal=True,
            ) from error

    def _with_lists(
        self, variables: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]
    ) -> str | None:
        """Render with lists of tools and documents; None if that fails, too."""
        try:
            return self._generate(**variables, **_lists(tools))
        except (TypeError, jinja2.TemplateError):
            return None

    def _generate(self, **variables: object) -> str:
        """Render the template up to the maximum length of a prompt."""
        parts, num_chars = [], 0
        for part in self._template.generate(**self._special_tokens, **variables):
            parts.append(part)
            num_chars += len(part)
            if num_chars > MAX_PROMPT_CHARS:
                raise TemplateError(
                    tr("The chat template writes more than {0:,} characters.", MAX_PROMPT_CHARS),
                    "Start a new chat if this one is very long; else choose another model.",
                )
        return "".join(parts)


def _lists(tools: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the variables of templates that expect lists (Functionary's)."""
    return {
        "tools": list(tools),
        "documents": [],
        "functions": _to_json([tool["function"] for tool in tools]),
        "datetime": _strftime_now("%Y-%m-%d"),
    }


def too_long(num_chars: int) -> TemplateError:
    """Make the error for a template that is too large."""
    return TemplateError(
        tr(
            "The chat template has {0:,} characters; {1:,} are the most.",
            num_chars,
            MAX_SOURCE_CHARS,
        ),
        "It is damaged: download the model again.",
    )


def _name(error: Exception) -> str:
    """Return the text of an error, or its type if it has none."""
    if isinstance(error, MemoryError):
        return tr("it takes too much memory")
    return str(error) or type(error).__name__


def _line(error: Exception) -> str:
    """Return the line of the template in which an error occurred, as part of a message."""
    lines = [
        number
        for frame, number in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == "<template>"
    ]
    return tr(" in line {0}", lines[-1]) if lines else ""


class _ReadOnlyList(list[Any]):
    """A list that templates can't modify."""


class _Environment(ImmutableSandboxedEnvironment):
    """Jinja's sandbox; templates may modify lists of their own, as in llama.cpp."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Whether a template may use an attribute."""
        if type(obj) is list and attr in ("append", "pop"):
            return True
        return super().is_safe_attribute(obj, attr, value)


def _environment() -> _Environment:
    """Return a sandboxed Jinja environment with the filters and globals that transformers has."""
    environment = _Environment(
        trim_blocks=True, lstrip_blocks=True, extensions=[LoopControlExtension, _Generation]
    )
    environment.filters["tojson"] = _to_json
    del environment.globals["lipsum"]
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


class _Generation(Extension):
    """`{% generation %} … {% endgeneration %}`, which marks answers for training only."""

    tags = {"generation"}  # noqa: RUF012 - as jinja2 declares it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """Parse the content of the block."""
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
    """Filter `tojson` as in transformers: without HTML escapes."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
        default=_listed,
    )


def _listed(value: object) -> list[Any]:
    """Convert the generators that filters return to lists, as llama.cpp does."""
    if isinstance(value, Iterator):
        return list(value)
    raise TypeError(f"{type(value).__name__} can't be written as JSON")


def _raise_exception(message: str) -> None:
    """Global `raise_exception`, by which templates refuse a conversation."""
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    """Global `strftime_now`: format the local time."""
    return datetime.datetime.now().astimezone().strftime(pattern)
