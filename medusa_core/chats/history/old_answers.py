"""Migrate answers that were stored without reasoning spans."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from medusa_core.messages import THINK_TAGS, StepDone

_END_LINE = re.compile(rf"^[ \t]*{re.escape(THINK_TAGS.end)}[ \t]*$", re.MULTILINE)
_FENCE = re.compile(r"^[ \t]*(```|~~~)", re.MULTILINE)


def began_inside(text: str, settings: str, steps: Iterable[StepDone]) -> bool:
    """Guess whether the prompt of a stored answer ended with the start tag of reasoning.

    An answer that merely mentions the end tag mustn't lose its beginning. So the tag counts only if
    it is alone in a line, outside of code, without a start tag, and a single token.

    Args:
        text: Text of the answer.
        settings: Chat settings of the answer, as stored.
        steps: Steps of the answer.
    """
    end = _END_LINE.search(text)
    before = "" if end is None else text[: end.start()]
    if end is None or THINK_TAGS.start in before or len(_FENCE.findall(before)) % 2:
        return False
    is_token = any(
        piece.strip() == THINK_TAGS.end.encode() for step in steps for piece in step.pieces
    )
    return is_token and not _reasoning_is_off(settings)


def _reasoning_is_off(settings: str) -> bool:
    """Whether an answer's settings switched reasoning off."""
    try:
        found = json.loads(settings)
    except ValueError:
        return False
    return isinstance(found, dict) and found.get("thinks") is False
