"""Bamba: Mamba-2 layers, some layers with attention, and Llama's MLP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.arch.llama import llama_traits
from medusa_core.models.architecture import Arch, whole
from medusa_core.models.mamba import layer_shapes, mamba_trait
from medusa_core.models.traits import Traits

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts

_MOST_LAYERS = 1 << 10


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return {"partial_rotary_factor": 0.5, **raw}


def _traits(raw: Mapping[str, Any]) -> Traits:
    count = whole(raw, "num_hidden_layers", _MOST_LAYERS, 32)
    found = raw.get("attn_layer_indices") or []
    if not isinstance(found, list) or not all(isinstance(one, int) for one in found):
        raise ModelError(
            "config.json: attn_layer_indices is no list of layers.", "Download config.json again."
        )
    kinds = ["attention" if index in found else "mamba" for index in range(count)]
    return replace(llama_traits(raw), mamba=mamba_trait(raw), layers=layer_shapes(raw, kinds))


def _parts(config: ModelConfig, index: int) -> BlockParts:
    from medusa_core.models.mamba import with_mamba, without_attention
    from medusa_core.models.parts import mlp_parts, shared_parts

    parts, hidden = shared_parts(config, index), config.hidden_size
    norms = (f"{parts.prefix}.input_layernorm", f"{parts.prefix}.pre_ff_layernorm")
    name, prefix = f"layers.{index}", f"{parts.prefix}.feed_forward"
    mlp = mlp_parts(config, name, prefix, config.intermediate_size)
    own = replace(parts, vectors=dict.fromkeys(norms, hidden), mlp=mlp)
    mixed = with_mamba(own, config, index)
    return without_attention(mixed) if mixed.mixer else mixed


SPEC = Arch("bamba", _traits, parts=_parts, as_usual=_as_usual)
