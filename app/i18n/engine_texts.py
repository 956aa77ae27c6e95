"""What the engine tells people, in the window's language.

The engine knows neither Qt nor languages: its errors, checks and progress are English texts with
values in them. The list of their templates is read out of its source
(`tests/tools/engine_texts.py`); a text is recognised by its template. Values that are
formatted numbers get the separators of the window's language.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import NamedTuple, Protocol

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import localize_number
from medusa_core.api import resources_dir

_CONTEXT = "Engine"
_VALUE = re.compile(r"\{\d+\}")
_LIST = "translations/engine_texts.json"


class HasHint(Protocol):
    """An error, or what else has a message and a hint."""

    @property
    def message(self) -> str: ...
    @property
    def hint(self) -> str: ...


class _Template(NamedTuple):
    text: str
    parts: tuple[str, ...]
    pattern: re.Pattern[str]


def engine_text(text: str) -> str:
    """A text of the engine in the window's language; as it is where nobody translated it."""
    words = QCoreApplication.translate(_CONTEXT, text)
    if words != text or not _is_translated():
        return words
    for template in _templates():
        if all(part in text for part in template.parts):
            found = template.pattern.fullmatch(text)
            if found is not None:
                values = (_value_text(value) for value in found.groups())
                return QCoreApplication.translate(_CONTEXT, template.text).format(*values)
    return text


def _value_text(value: str) -> str:
    """A value of a template: a sentence of the engine, a number or a name."""
    return engine_text(value) if " " in value else localize_number(value)


def error_text(error: HasHint) -> str:
    """An error's message and hint in one text."""
    return f"{engine_text(error.message)} {engine_text(error.hint)}".strip()


def _is_translated() -> bool:
    sample = "Try again."
    return QCoreApplication.translate(_CONTEXT, sample) != sample


@cache
def _templates() -> tuple[_Template, ...]:
    """All that have values, those with most words of their own first."""
    texts = json.loads((resources_dir() / _LIST).read_text(encoding="utf-8"))
    found = [_template(text) for text in texts if _VALUE.search(text)]
    return tuple(sorted(found, key=lambda one: -sum(map(len, one.parts))))


def _template(text: str) -> _Template:
    parts = tuple(_VALUE.split(text))
    pattern = "(.+?)".join(map(re.escape, parts))
    return _Template(text, parts, re.compile(pattern, re.DOTALL))
