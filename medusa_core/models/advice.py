"""Recommended sampling settings of a model: those of its makers, or else our own.

Makers publish theirs in `generation_config.json` or a GGUF file's keys. As in transformers'
`GenerationConfig`, they count only if `do_sample` is true; if it is false, decoding is greedy.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from medusa_core.chats.settings import SETTINGS
from medusa_core.messages import Advice

log = logging.getLogger(__name__)

# Models without recommendations that repeat themselves, by patterns of their names.
# SmolLM2 135M: ten seeds of ten questions each; at a penalty of 1 most answers loop, at 1.15 they
# turn to word salad, and 0.7 loses the thread more often than 0.4.
_TRIED = ((re.compile(r"smollm2[- ]135m", re.IGNORECASE), Advice(0.4, 0, 0.95, 0.0, 1.1)),)


def read_advice(generation: Mapping[str, Any]) -> Advice | None:
    """Parse the makers' recommended settings; None without any. Invalid values are skipped.

    Args:
        generation: Content of `generation_config.json`.
    """
    if generation.get("do_sample") is False:
        return Advice(temperature=0.0)
    if generation.get("do_sample") is not True:
        return None
    found: dict[str, Any] = {}
    for name in Advice._fields:
        value = generation.get(name)
        try:
            if value is not None:
                found[name] = SETTINGS[name].read(value)
        except (ValueError, TypeError, OverflowError) as error:
            log.warning("generation_config.json: ignoring %s: %s", name, error)
    return Advice(**found) if found else None


def tried_sampling(name: str) -> Advice | None:
    """Return our tested settings for a model whose makers recommend none; None without.

    Args:
        name: Name of the model or its file.
    """
    return next((advice for pattern, advice in _TRIED if pattern.search(name)), None)
