"""Texts that are translated when they are shown, not where they are written.

The engine knows no language. It writes English, which the terminal, the server and the log show as
it is; the window looks the template of a text up in its catalog, and formats the translation with
the same values.
"""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

Value = str | int | float


class Translatable(str):
    """A formatted text that keeps its template and its values.

    Attributes:
        template: Text with numbered fields, such as `{0} has no chat template.`; without values it
            is not formatted, so that it may have braces.
        values: Values of the fields: numbers, names, or other translatable texts.
    """

    template: str
    values: tuple[Value, ...]

    def __new__(cls, template: str, *values: object) -> Translatable:
        text = super().__new__(cls, template.format(*values) if values else template)
        text.template = template
        # `str` of an exception with a translatable text is that text.
        text.values = tuple(map(_plain, values))
        return text

    def __str__(self) -> str:
        return self  # `str.__str__` would drop the template

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.template, *self.values


tr = Translatable  # it marks hundreds of texts


def _plain(value: object) -> Value:
    """Return a value in a type that every format specification and JSON know."""
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, Integral):  # such as numpy's
        return int(value)
    return float(value) if isinstance(value, Real) else str(value)


def text_to_json(text: str) -> Any:
    """Return a text as JSON: a list of its template and its values if it has any."""
    if not isinstance(text, Translatable) or not text.values:
        return str.__str__(text)
    values = (text_to_json(v) if isinstance(v, str) else v for v in text.values)
    return [text.template, *values]


def text_from_json(raw: Any) -> str:
    """Return the text of `text_to_json`, which another process or an older version wrote."""
    if not isinstance(raw, list):
        return str(raw)
    template = raw[0] if raw else ""
    values = raw[1:]
    try:
        return Translatable(
            template, *(text_from_json(v) if isinstance(v, list) else v for v in values)
        )
    except (AttributeError, LookupError, TypeError, ValueError):
        return str(template)
