"""How much longer a tokenizer makes a text before it is split.

A normalizer that puts a hundred characters in each one's place, three times over, makes gigabytes
of a short message, in one call that can't be stopped.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping

from medusa_core.errors import TokenizerError

_MOST_TIMES = 16  # Llama's put one character before a text
_MOST_OF_A_CHARACTER = 128  # bytes; Unicode's own longest has 33
_HINT = "Choose another model, or mend this one's tokenizer.json."


def check_growth(raw: Mapping[str, object]) -> None:
    """Refuse what makes texts many times longer.

    Args:
        raw: What tokenizer.json holds.

    Raises:
        TokenizerError: Its normalizer may do so.
    """
    times, maps = 1, 0
    for step in _steps(raw.get("normalizer")):
        kind = step.get("type")
        if kind == "Replace":
            times *= _times(step)
        elif kind == "Prepend":
            times *= 1 + _length(step.get("prepend"))
        elif kind == "Precompiled":
            maps += 1
            if maps > 1 or _longest(step.get("precompiled_charsmap")) > _MOST_OF_A_CHARACTER:
                times = _MOST_TIMES + 1
        if times > _MOST_TIMES:
            raise TokenizerError("The tokenizer makes texts many times longer.", _HINT)


def _steps(normalizer: object) -> Iterator[Mapping[str, object]]:
    """One after another, those within others, too; whatever the file holds there."""
    waiting = [normalizer]
    while waiting:
        step = waiting.pop()
        if isinstance(step, Mapping):
            yield step
            parts = step.get("normalizers")
            waiting += parts if isinstance(parts, list) else []


def _times(step: Mapping[str, object]) -> int:
    """Of what one replacement makes; a regular expression may match between all characters."""
    content, pattern = _length(step.get("content")), step.get("pattern")
    if isinstance(pattern, Mapping) and _length(pattern.get("String")):
        return max(1, -(-content // _length(pattern["String"])))
    return 1 + content


def _length(text: object) -> int:
    return len(text) if isinstance(text, str) else 0


def _longest(charsmap: object) -> int:
    """Bytes of the longest text in a map: behind a table with its size, ended by zeros."""
    if not isinstance(charsmap, str):
        return 0
    try:
        data = base64.b64decode(charsmap)
    except (binascii.Error, ValueError):
        return 0  # which the library refuses
    texts = data[4 + int.from_bytes(data[:4], "little") :]
    return max(map(len, texts.split(b"\0")))
