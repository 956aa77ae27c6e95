"""Answers from before it was stored which of their text is reasoning."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from medusa_core.messages import THINK_TAGS, StepDone

_END_LINE = re.compile(rf"^[ \t]*{re.escape(THINK_TAGS.end)}[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)


def began_inside(text: str, settings: str, steps: Iterable[StepDone]) -> bool:
    """Whether an answer's prompt opened its reasoning, as far as that can be told.

    An answer that only speaks of the tag mustn't lose its beginning: the tag stands alone in a
    line, outside of code, nothing opened it, and the model wrote it as one token.

    Args:
        text: The answer.
        settings: What it was decoded with, as it was stored.
        steps: Its steps.
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
