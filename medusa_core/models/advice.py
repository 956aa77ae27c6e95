"""Sampling defaults of a model: its makers' advice, else what was tried with it.

Makers write theirs into `generation_config.json` or a GGUF's keys. Source: `GenerationConfig` of
transformers. Without `do_sample` the numbers there count for nothing, so they are no advice; where
it says no, the advice is not to sample.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from medusa_core.chats.settings import SETTINGS
from medusa_core.messages import Advice

log = logging.getLogger(__name__)

# Models whose makers give no advice and that loop without any, by a pattern of their names.
# SmolLM2 135M: ten seeds of ten questions each; at a penalty of 1 most answers loop, at 1.15 they
# turn to word salad, and 0.7 loses the thread more often than 0.4.
_TRIED = ((re.compile(r"smollm2[- ]135m", re.IGNORECASE), Advice(0.4, 0, 0.95, 0.0, 1.1)),)


def read_advice(generation: Mapping[str, Any]) -> Advice | None:
    """The makers' advice; None where they give none. A senseless number is left out.

    Its temperature is 0 where they advise not to draw.

    Args:
        generation: What `generation_config.json` holds.
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
            log.warning("generation_config.json: %s is left out: %s", name, error)
    return Advice(**found) if found else None


def tried_sampling(name: str) -> Advice | None:
    """Sampling settings that were tried with a model whose makers give none; None if untried.

    Args:
        name: The model's name or file name.
    """
    return next((advice for pattern, advice in _TRIED if pattern.search(name)), None)
