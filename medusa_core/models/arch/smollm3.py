"""SmolLM3: Llama whose every fourth layer isn't turned by positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.models.arch.llama import llama_traits
from medusa_core.models.architecture import Arch, sliding_window
from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.models.traits import Traits

_EVERY = 4


def _traits(raw: Mapping[str, Any]) -> Traits:
    return replace(
        llama_traits(raw),
        window=sliding_window(raw) if raw.get("use_sliding_window") else None,
        unturned=_unturned(raw),
        is_tied=True,
    )


def _unturned(raw: Mapping[str, Any]) -> frozenset[int]:
    """The layers that `no_rope_layers` marks with 0; every fourth where it isn't there."""
    flags = raw.get("no_rope_layers")
    count = raw.get("num_hidden_layers")
    if flags is None and isinstance(count, int) and 0 < count < 1 << 10:
        return frozenset(index for index in range(count) if (index + 1) % _EVERY == 0)
    if not isinstance(flags, list) or any(mark not in (0, 1) for mark in flags):
        raise ModelError(
            "config.json: no_rope_layers is no list of 0 and 1.", "Download config.json again."
        )
    return frozenset(index for index, mark in enumerate(flags) if not mark)


SPEC = Arch("smollm3", _traits, gguf=GgufArchitecture("smollm3", interleaved_rope=True))
