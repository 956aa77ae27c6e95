"""Text on its way into Qt, which reads some characters as something else."""

from __future__ import annotations

import re

_REPLACEMENT = "\ufffd"
# Qt ends blocks and frames at some, takes others for objects or the order of bytes, and has no
# text for halves of characters. Controls of direction would show a text in another order than it
# has. Each becomes one other character, so that positions stay.
_UNSHOWABLE = re.compile(
    "[\0\ufdd0\ufdd1\ufffc\ufeff\ufffe\ud800-\udfff\u202a-\u202e\u2066-\u2069]"
)


def showable(text: str) -> str:
    """A text of the same length that a document shows as it is; line ends stay."""
    return _UNSHOWABLE.sub(_REPLACEMENT, text).replace("\u2029", "\u2028")


def passed_on(text: str) -> str:
    """A text that other programs get: all of it, but what would be read as its order of bytes."""
    return _REPLACEMENT + text[1:] if text[:1] in ("\ufeff", "\ufffe") else text
