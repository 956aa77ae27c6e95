"""Granite 4: attention and Mamba-2 layers, an MLP that every row passes through, maybe experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from medusa_core.models.arch.granite import GGUF_FACTORS, granite_traits
from medusa_core.models.architecture import Arch, whole
from medusa_core.models.gguf_architecture import (
    GgufArchitecture,
    expert_tensors,
    mixer_types,
    mlp_tensors,
)
from medusa_core.models.mamba import (
    MAMBA_FLAGS,
    MAMBA_KEYS,
    layer_shapes,
    mamba_tensors,
    mamba_trait,
    mixer_kinds,
)
from medusa_core.models.traits import Experts, Traits
from medusa_core.system.files.gguf import Gguf

if TYPE_CHECKING:
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts, MlpParts

_MOST_EXPERTS = 1 << 12
_MOST_WIDTH = 1 << 19


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The MLP of every row is the usual one, and that of an expert is told apart."""
    return {
        **raw,
        "intermediate_size": raw.get("shared_intermediate_size"),
        "expert_width": raw.get("intermediate_size"),
    }


def _traits(raw: Mapping[str, Any]) -> Traits:
    kinds = mixer_kinds(raw, raw.get("layer_types") or raw.get("layers_block_type"))
    traits = replace(
        granite_traits(raw), experts=_experts(raw), fuses_gate=raw.get("fuses_gate", True) is True
    )
    if "mamba" in kinds:
        traits = replace(traits, mamba=mamba_trait(raw), layers=layer_shapes(raw, kinds))
    if raw.get("position_embedding_type", "rope") == "rope":
        return traits
    return replace(traits, unturned=frozenset(range(len(kinds))))


def _experts(raw: Mapping[str, Any]) -> Experts | None:
    if not raw.get("num_local_experts"):
        return None
    count = whole(raw, "num_local_experts", _MOST_EXPERTS, 8)
    chosen = whole(raw, "num_experts_per_tok", _MOST_EXPERTS, 2)
    width = whole(raw, "expert_width", _MOST_WIDTH, 1)
    return Experts(count, chosen, width, chooses_first=True)


def _parts(config: ModelConfig, index: int) -> BlockParts:
    """The shared parts, an MLP of its own name, and a Mamba-2 layer or attention."""
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
    from medusa_core.models.mamba import with_mamba, without_attention
    from medusa_core.models.parts import mlp_parts, shared_parts

    parts = shared_parts(replace(config, traits=replace(config.traits, experts=None)), index)
    experts, name = config.traits.experts, f"layers.{index}"
    parts = replace(parts, mlp=_shared_mlp(config, name, f"{parts.prefix}.shared_mlp"))
    if experts is not None:
        prefix = f"{parts.prefix}.block_sparse_moe"
        router = (TensorRows(f"{prefix}.router.layer", experts.count),)
        parts = replace(
            parts,
            router=LinearSpec(f"{name}.router", router, config.hidden_size, stays_dense=True),
            experts=tuple(
                mlp_parts(config, f"{name}.experts.{one}", f"{prefix}.experts.{one}", experts.width)
                for one in range(experts.count)
            ),
        )
    mixed = with_mamba(parts, config, index)
    return without_attention(mixed) if mixed.mixer else mixed


def _shared_mlp(config: ModelConfig, name: str, prefix: str) -> MlpParts:
    """The MLP of every row: gate and up are rows of one tensor, but in GGUF files."""
    from medusa_core.models.blocks.tensors import TensorRows
    from medusa_core.models.parts import MlpParts, mlp_parts

    width = config.intermediate_size
    parts = mlp_parts(config, name, prefix, width)
    if not config.traits.fuses_gate:
        return parts
    gate_up = tuple(
        TensorRows(f"{prefix}.input_linear", width, first=first, total=2 * width)
        for first in (0, width)
    )
    down = (TensorRows(f"{prefix}.output_linear", config.hidden_size),)
    return MlpParts(replace(parts.gate_up, pieces=gate_up), replace(parts.down, pieces=down))


def _gguf_config(gguf: Gguf, known: Mapping[str, Any]) -> Mapping[str, Any]:
    shared = known.get("intermediate_size")
    if gguf.of_model("expert_count"):
        shared = gguf.of_model("expert_shared_feed_forward_length")
    has_rope = gguf.of_model("rope.scaling.finetuned") is not False  # llama.cpp's switch
    return {
        "layer_types": mixer_types(gguf),
        "shared_intermediate_size": shared,
        "position_embedding_type": "rope" if has_rope else "nope",
    }


SPEC = Arch(
    "granitemoehybrid",
    _traits,
    parts=_parts,
    as_usual=_as_usual,
    gguf=GgufArchitecture(
        "granitehybrid",
        tensors={
            **mamba_tensors("mamba"),
            **mlp_tensors("shared_mlp"),
            **mlp_tensors("shared_mlp", "_shexp"),
            **expert_tensors("block_sparse_moe."),
            "ffn_gate_inp": "block_sparse_moe.router.layer",
        },
        keys={**GGUF_FACTORS, **MAMBA_KEYS},
        defaults={"fuses_gate": False},
        flags=MAMBA_FLAGS,
        config=_gguf_config,
        interleaved_rope=True,
        has_experts=True,
    ),
)
