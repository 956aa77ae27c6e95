"""Texts that are translated when they are shown, not where they are written."""

from __future__ import annotations


def QT_TRANSLATE_NOOP(context: str, text: str) -> str:
    """Mark a text for lupdate, which knows this name; Qt's own has no usable type.

    Args:
        context: Context of `QCoreApplication.translate`.
        text: In English.

    Returns:
        The text.
    """
    del context
    return text
