"""What an architecture family is: the parts in which it differs from its relatives."""

from __future__ import annotations

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models import families
from medusa_core.registry import Registry

if TYPE_CHECKING:  # a plan needs no torch, and a config knows its family
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.decoder import Decoder
    from medusa_core.models.parts import BlockParts


@dataclass(frozen=True, slots=True)
class Traits:
    """What one checkpoint has beyond what all families share.

    Attributes:
        qkv_bias: Queries, keys and values have biases.
        output_bias: So has the projection behind attention.
        mlp_bias: So have the three projections of the MLP.
        qk_norm: Queries and keys are normalised per head before they are turned.
        window: Tokens that attention looks back on, in any layer; None for all. Within so many
            tokens the window shows everything, so longer contexts are not offered.
    """

    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    window: int | None = None


@dataclass(frozen=True, slots=True)
class FamilySpec:
    """A registered family.

    Attributes:
        name: `model_type` in its `config.json`.
        traits: What a `config.json` of it says.
        decoder: Imports and gives the decoder of a family whose blocks, norms or scores aren't the
            shared ones; None for `models.decoder.Decoder`. The compiled step declines others.
        parts: The parts of its block of that number, if they aren't the shared ones.
    """

    name: str
    traits: Callable[[Mapping[str, Any]], Traits]
    decoder: Callable[[], type[Decoder]] | None = None
    parts: Callable[[ModelConfig, int], BlockParts] | None = None


@cache
def family_registry() -> Registry[FamilySpec]:
    """All families."""
    return Registry(families, "model family", FamilySpec)


def find_family(model_type: str) -> FamilySpec:
    """The family of a `model_type`.

    Raises:
        ModelError: It isn't supported.
    """
    for spec in family_registry().specs:
        if spec.name == model_type:
            return spec
    raise ModelError(
        f"Models of type {reprlib.repr(model_type or 'unknown')} aren't supported.",
        f"Supported are {', '.join(family_registry().names)}: Llama, Vicuna, TinyLlama, Yi, "
        "Mistral, Qwen2, Qwen3 and their relatives.",
    )


def sliding_window(raw: Mapping[str, Any]) -> int | None:
    """The window of a `config.json`; null and nothing mean none."""
    window = raw.get("sliding_window")
    if window is None:
        return None
    if not isinstance(window, int) or isinstance(window, bool) or window < 1:
        raise ModelError(
            f"config.json: sliding_window is {reprlib.repr(window)}.", "Download config.json again."
        )
    return window
