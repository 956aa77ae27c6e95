"""Migrate answers that were stored without reasoning spans."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from medusa_core.messages import THINK_TAGS, StepDone

_END_LINE = re.compile(rf"^[ \t]*{re.escape(THINK_TAGS.end)}[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)


def began_inside(text: str, settings: str, steps: Iterable[StepDone]) -> bool:
    """Whether the prompt of a stored answer ended with the start tag of the reasoning (a guess).

    An answer that merely mentions the end tag mustn't lose its beginning. So the tag counts only if
    it is alone in a line, outside of code, unopened, and was written as one token.

    Args:
        text: The answer's text.
        settings: The chat settings of the answer, as stored.
        steps: The answer's steps.
    """
    end = _END_LINE.search(text)
    before = "" if end is None else text[: end.start()]
    if end is None or THINK_TAGS.start in before or len(_FENCE.findall(before)) % 2:
        return False
    is_token = any(
        piece.strip() == THINK_TAGS.end.encode() for one in steps for piece in one.pieces
    )
    return is_token and not _is_told_not_to_think(settings)


def _is_told_not_to_think(settings: str) -> bool:
    try:
        found = json.loads(settings)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("thinks") is False
