"""Formatted numbers with the decimal and group separators of the window's language."""

from __future__ import annotations

import re

from PySide6.QtCore import QLocale

# A whole number in groups or a decimal one; `3.12.1` is a version and stays as it is.
_NUMBER = re.compile(r"[-+−]?(\d{1,3}(,\d{3})+(\.\d+)?|\d+\.\d+)")


def localize_separators(text: str) -> str:
    """Replace the separators of a number that Python has formatted."""
    locale = QLocale()
    return text.translate(
        str.maketrans(",.", locale.groupSeparator()[0] + locale.decimalPoint()[0])
    )


def localize_number(text: str) -> str:
    """Return a formatted number in the window's language; any other text unchanged."""
    return localize_separators(text) if _NUMBER.fullmatch(text) else text
