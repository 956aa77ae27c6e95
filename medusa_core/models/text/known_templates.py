"""Chat templates of well-known models whose checkpoints have none.

A model is recognised by its special tokens, or else by its names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from medusa_core.system.resources import (
    demo_model_dir,
    resources_dir,
)


@dataclass(frozen=True, slots=True)
class _Known:
    """A template and how its models are recognised.

    Attributes:
        file: File in `resources/templates`.
        token: A special token of these models, or empty.
        name: Pattern of their names.
    """

    file: str
    token: str
    name: re.Pattern[str]


def _known(file: str, token: str, name: str) -> _Known:
    """Make an entry; `name` is a regular expression for model names."""
    return _Known(file, token, re.compile(name, re.IGNORECASE))


_NEVER = r"(?!)"
_TEMPLATES = (
    _known("llama-3.jinja", "<|start_header_id|>", _NEVER),
    _known("chatml.jinja", "<|im_start|>", r"qwen.*(chat|instruct)|yi-.*chat"),
    _known("vicuna.jinja", "", r"vicuna"),
    _known("zephyr.jinja", "", r"zephyr|tinyllama.*chat"),
    _known("mistral.jinja", "[INST]", r"mistral.*instruct"),
    _known("llama-2.jinja", "", r"llama-?2.*chat"),
)


def known_template(model_dir: Path, names: str, knows: Callable[[str], bool]) -> str | None:
    """Return the template with which a model was trained; None if it isn't recognised.

    Args:
        model_dir: Folder of the model, whose path often contains its name.
        names: Other names of the model.
        knows: Whether a text is one token of the model.
    """
    called = f"{model_dir.resolve()} {names}"
    for known in _TEMPLATES:
        if (known.token and knows(known.token)) or known.name.search(called):
            path = resources_dir() / "templates" / known.file
            return path.read_text(encoding="utf-8").removesuffix("\n")
    return None


def is_shipped(source: str) -> bool:
    """Whether a template is one of those that ship with the application."""
    shipped = [demo_model_dir() / "chat_template.jinja"]
    shipped += [resources_dir() / "templates" / known.file for known in _TEMPLATES]
    text = source.removesuffix("\n")
    texts = (path.read_text(encoding="utf-8") for path in shipped if path.exists())
    return any(shown.removesuffix("\n") == text for shown in texts)
