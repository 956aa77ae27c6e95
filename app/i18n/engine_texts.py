"""The engine's texts in the window's language: errors, checks, progress."""

from __future__ import annotations

import logging
from typing import Protocol

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import Number
from medusa_core.i18n import Translatable, Value

log = logging.getLogger(__name__)

_CONTEXT = "Engine"


class HasHint(Protocol):
    """An error, or another object with a message and a hint."""

    @property
    def message(self) -> str: ...
    @property
    def hint(self) -> str: ...


def engine_text(text: str) -> str:
    """Return a text of the engine in the window's language; in English if it isn't translated."""
    if not isinstance(text, Translatable) or not text.values:
        return QCoreApplication.translate(_CONTEXT, text)
    template = QCoreApplication.translate(_CONTEXT, text.template)
    try:
        return template.format(*map(_localized, text.values))
    except (LookupError, ValueError):
        log.warning("the translation of %r has other fields", text.template)
        return text


def error_text(error: HasHint) -> str:
    """Return an error's message and hint as one text."""
    return f"{engine_text(error.message)} {engine_text(error.hint)}".strip()


def _localized(value: Value) -> str | Number:
    """Return a value of a template in the window's language; names are unchanged."""
    if isinstance(value, Translatable):
        return engine_text(value)
    return value if isinstance(value, str) else Number(value)
