"""Conversations to prompts, by a model's own chat template in a sandbox."""

from __future__ import annotations

import datetime
import json
import traceback
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2
from jinja2.ext import LoopControlExtension
from jinja2.sandbox import ImmutableSandboxedEnvironment

from medusa_core.errors import TemplateError
from medusa_core.files.json_file import read_json
from medusa_core.messages import ChatMessage
from medusa_core.text.known_templates import known_template
from medusa_core.text.tokenizer import Tokenizer

_NUM_KEPT = 64  # openings of the turns of a conversation or two


class ChatTemplate:
    """A compiled chat template."""

    def __init__(self, source: str, special_tokens: dict[str, str]) -> None:
        self._special_tokens = special_tokens
        # Each turn of a conversation renders the openings of all earlier ones again.
        self._kept = lru_cache(maxsize=_NUM_KEPT)(self._render)
        try:
            self._template = _environment().from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise TemplateError(
                f"The chat template is wrong in line {error.lineno}: {error.message}.",
                "Download the model again, or mend its chat_template.jinja.",
            ) from error

    @classmethod
    def open(cls, model_dir: Path, tokenizer: Tokenizer) -> ChatTemplate:
        """Read `chat_template.jinja`, else the template in `tokenizer_config.json`.

        Models that have neither but are known (Vicuna, Llama 2) get the one they were trained on.

        Raises:
            TemplateError: The model has none, or it doesn't parse.
        """
        path = model_dir / "tokenizer_config.json"
        config = read_json(path) if path.exists() else {}
        file = model_dir / "chat_template.jinja"
        source = _read(file) if file.exists() else _named(config.get("chat_template"))
        if source is None:
            source = known_template(model_dir, _names(model_dir), tokenizer)
        if source is None:
            raise TemplateError(
                f"{model_dir.name} has no chat template.",
                "Choose a chat model: a base model doesn't know how to answer.",
            )
        return cls(source, _special_tokens(config))

    def render(self, messages: Sequence[ChatMessage], opens_answer: bool = True) -> str:
        """The prompt of a conversation.

        Args:
            messages: The turns, oldest first.
            opens_answer: End with the marker that asks for the assistant's answer.

        Raises:
            TemplateError: The template refuses the conversation or fails.
        """
        # By text alone: hashing the answers' tokens would take longer than all else here.
        # The date takes part: a template may write it.
        turns = tuple([(role._value_, content) for role, content, _ in messages])
        return self._kept(turns, opens_answer, datetime.date.today())

    def _render(
        self, messages: tuple[tuple[str, str], ...], opens_answer: bool, _: datetime.date
    ) -> str:
        turns = [{"role": role, "content": content} for role, content in messages]
        try:
            return self._template.render(
                messages=turns, add_generation_prompt=opens_answer, **self._special_tokens
            )
        except jinja2.TemplateError as error:
            raise TemplateError(
                f"The chat template refuses this conversation{_line(error)}: {error}.",
                "Check that user and assistant turns alternate, or leave out the system prompt.",
            ) from error
        except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
            raise TemplateError(
                f"The chat template fails{_line(error)}: {error}.",
                "Mend the model's chat_template.jinja.",
            ) from error


def _named(templates: object) -> str | None:
    """The template to chat with: some models list several by name."""
    if isinstance(templates, list):
        found = [t for t in templates if isinstance(t, dict) and isinstance(t.get("template"), str)]
        default = [t for t in found if t.get("name") == "default"]
        templates = next((t["template"] for t in default or found), None)
    return templates if isinstance(templates, str) else None


def _names(model_dir: Path) -> str:
    """Names that a model's configuration calls it."""
    path = model_dir / "config.json"
    return str(read_json(path).get("_name_or_path", "")) if path.exists() else ""


def _line(error: Exception) -> str:
    """Where in the template an error arose; Jinja maps its frames to the template's lines."""
    lines = [
        number
        for frame, number in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename == "<template>"
    ]
    return f" in line {lines[-1]}" if lines else ""


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TemplateError(
            f"{file.name} can't be read as UTF-8 text: {error}.", "Download the file again."
        ) from error


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[LoopControlExtension]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    return environment


def _to_json(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.datetime.now().astimezone().strftime(pattern)


def _special_tokens(config: dict[str, Any]) -> dict[str, str]:
    found = {}
    for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
        value = config.get(name)
        text = value.get("content") if isinstance(value, dict) else value
        if isinstance(text, str):
            found[name] = text
    return found
