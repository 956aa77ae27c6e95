"""Replaces characters that Qt or other programs interpret."""

from __future__ import annotations

import re

_REPLACEMENT = "\ufffd"
# Qt ends blocks and frames at some, takes others for objects, and has no text for halves of
# characters. Overrides would show letters in another order than they have. Each becomes one other
# character, so that positions stay.
_UNSHOWABLE = re.compile("[\0\ufdd0\ufdd1\ufffc\ufffe\ud800-\udfff\u202d\u202e]")
# Isolates and embeddings belong to the prose of right-to-left languages. In code they would let
# it seem to be other code than the compiler reads.
_BIDI_CONTROLS = re.compile("[\u202a-\u202e\u2066-\u2069]")
# Qt would take the byte order mark for one; a word joiner is as invisible.
_INVISIBLE = str.maketrans({"\ufeff": "\u2060", "\u2029": "\u2028"})


def showable(text: str) -> str:
    """Replace characters that Qt's documents interpret; length and line ends are unchanged."""
    return _UNSHOWABLE.sub(_REPLACEMENT, text).translate(_INVISIBLE)


def with_visible_controls(text: str) -> str:
    """Replace bidirectional controls by visible symbols; the length is unchanged."""
    return _BIDI_CONTROLS.sub(_REPLACEMENT, text)


def passed_on(text: str) -> str:
    """Return a text for other programs; a leading byte order mark is replaced."""
    return _REPLACEMENT + text[1:] if text[:1] in ("\ufeff", "\ufffe") else text


def breakable(text: str) -> str:
    """Return a text with an allowed line break after each dot, as of a long host name."""
    return text.replace(".", ".\u200b")
