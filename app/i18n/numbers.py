"""Numbers as the window's language writes them."""

from __future__ import annotations

from PySide6.QtCore import QLocale


class Number:
    """A number that is written in the window's language wherever it is formatted.

    In f-strings and in translated texts alike: `f"{Number(4096):,}"` is 4,096 in English and 4.096
    in German.
    """

    __slots__ = ("_value",)

    def __init__(self, value: float) -> None:
        self._value = value

    def __format__(self, spec: str) -> str:
        text = localize_separators(format(self._value, spec))
        if spec.endswith("%") and QLocale().language() is QLocale.Language.German:
            return f"{text[:-1]}\N{NO-BREAK SPACE}%"
        return text

    def __str__(self) -> str:
        return format(self, "")


def localize_separators(text: str) -> str:
    """Replace the separators of a number that Python has formatted."""
    locale = QLocale()
    return text.translate(
        str.maketrans(",.", locale.groupSeparator()[0] + locale.decimalPoint()[0])
    )
