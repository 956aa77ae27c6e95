"""How the makers of a model advise to sample from it: `generation_config.json`, or GGUF's keys.

Source: `GenerationConfig` of transformers. Without `do_sample` the numbers there count for nothing,
so they are no advice; where it says no, the advice is not to draw.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from medusa_core.chats.settings import SETTINGS
from medusa_core.messages import Advice

log = logging.getLogger(__name__)


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
