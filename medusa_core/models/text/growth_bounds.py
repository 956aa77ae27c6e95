"""Limit how much a tokenizer's normalizer can lengthen texts.

A normalizer that replaces each character with a hundred, three times, makes gigabytes of a short
message, in a call that can't be interrupted.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping

from medusa_core.errors import TokenizerError
from medusa_core.i18n import tr

_MAX_FACTOR = 16  # published normalizers add at most one character per text
_MAX_REPLACEMENT_BYTES = 128  # of a character; the longest of Unicode's normal forms has 33
_HINT = tr("Choose another model, or mend this one's tokenizer.json.")


def check_growth(raw: Mapping[str, object]) -> None:
    """Refuse a normalizer that could make texts many times longer.

    Args:
        raw: Content of tokenizer.json.

    Raises:
        TokenizerError: The normalizer could do so.
    """
    factor, maps = 1, 0
    for step in _steps(raw.get("normalizer")):
        kind = step.get("type")
        if kind == "Replace":
            factor *= _factor(step)
        elif kind == "Prepend":
            factor *= 1 + _length(step.get("prepend"))
        elif kind == "Precompiled":
            maps += 1
            if (
                maps > 1
                or _longest_replacement(step.get("precompiled_charsmap")) > _MAX_REPLACEMENT_BYTES
            ):
                factor = _MAX_FACTOR + 1
        if factor > _MAX_FACTOR:
            raise TokenizerError("The tokenizer makes texts many times longer.", _HINT)


def _steps(normalizer: object) -> Iterator[Mapping[str, object]]:
    """Yield a normalizer's steps, nested ones, too; the file may contain anything."""
    waiting = [normalizer]
    while waiting:
        step = waiting.pop()
        if isinstance(step, Mapping):
            yield step
            parts = step.get("normalizers")
            waiting += parts if isinstance(parts, list) else []


def _factor(step: Mapping[str, object]) -> int:
    """Return the growth by a replacement; a pattern may match between all characters."""
    content, pattern = _length(step.get("content")), step.get("pattern")
    if isinstance(pattern, Mapping) and _length(pattern.get("String")):
        return max(1, -(-content // _length(pattern["String"])))
    return 1 + content


def _length(text: object) -> int:
    """Return the length of a text; 0 for other values."""
    return len(text) if isinstance(text, str) else 0


def _longest_replacement(charsmap: object) -> int:
    """Return the longest replacement of a map: zero-terminated texts after a sized table."""
    if not isinstance(charsmap, str):
        return 0
    try:
        data = base64.b64decode(charsmap)
    except (binascii.Error, ValueError):
        return 0  # the library refuses it
    texts = data[4 + int.from_bytes(data[:4], "little") :]
    return max(map(len, texts.split(b"\0")))
