"""Phi 3 and Phi-4-mini: fused projections, and heads of which a part is turned."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.models.family import FamilySpec, sliding_window
from medusa_core.models.traits import Traits

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts


def _traits(raw: Mapping[str, Any]) -> Traits:
    return Traits(window=sliding_window(raw))


def _parts(config: ModelConfig, index: int) -> BlockParts:
    """The shared parts, as rows of the tensors that hold several of them."""
    from dataclasses import replace

    from medusa_core.models.parts import MlpParts, shared_parts

    parts = shared_parts(config, index)
    assert parts.mlp is not None
    assert parts.qkv is not None
    gate_up = parts.mlp.gate_up.within(f"{parts.prefix}.mlp.gate_up_proj")
    return replace(
        parts,
        qkv=parts.qkv.within(f"{parts.prefix}.self_attn.qkv_proj"),
        mlp=MlpParts(gate_up, parts.mlp.down),
    )


SPEC = FamilySpec("phi3", _traits, parts=_parts)
