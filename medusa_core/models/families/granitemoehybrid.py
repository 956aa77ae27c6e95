"""Granite 4 where every layer is attention and every row passes through the same MLP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.families.granite import granite_traits
from medusa_core.models.family import FamilySpec
from medusa_core.models.traits import Traits

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts

_ATTENTION = ("attention", "full_attention")


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    kinds = raw.get("layer_types") or raw.get("layers_block_type") or []
    if not isinstance(kinds, list) or any(kind not in _ATTENTION for kind in kinds) or not kinds:
        raise ModelError(
            "This Granite has layers that carry a state, which can't be taken back when drafts are "
            "rejected.",
            "Choose Granite 4 micro, 1B or 350M without the letter h, or Granite 3.",
        )
    if raw.get("num_local_experts"):
        raise ModelError(
            "This Granite has experts, which aren't supported in its family.",
            "Choose Granite 4 micro, 1B or 350M without the letter h, or Granite 3.",
        )
    return {**raw, "intermediate_size": raw.get("shared_intermediate_size")}


def _traits(raw: Mapping[str, Any]) -> Traits:
    traits, count = granite_traits(raw), raw.get("num_hidden_layers")
    if raw.get("position_embedding_type", "rope") == "rope":
        return traits
    turned = range(count) if isinstance(count, int) and 0 < count < 1 << 10 else ()
    return replace(traits, unturned=frozenset(turned))


def _parts(config: ModelConfig, index: int) -> BlockParts:
    """The shared parts; gate and up are rows of one tensor."""
    from dataclasses import replace as replaced

    from medusa_core.models.parts import MlpParts, PartPiece, shared_parts

    parts, width = shared_parts(config, index), config.intermediate_size
    assert parts.mlp is not None
    mlp = f"{parts.prefix}.shared_mlp"
    gate_up = tuple(
        PartPiece(f"{mlp}.input_linear", width, first=first, total=2 * width)
        for first in (0, width)
    )
    down = (PartPiece(f"{mlp}.output_linear", config.hidden_size),)
    both = MlpParts(
        replaced(parts.mlp.gate_up, pieces=gate_up), replaced(parts.mlp.down, pieces=down)
    )
    return replaced(parts, mlp=both)


SPEC = FamilySpec("granitemoehybrid", _traits, parts=_parts, as_usual=_as_usual)
