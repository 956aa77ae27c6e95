"""Granite 4: attention and Mamba-2 layers, an MLP that every row passes through, maybe experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.arch.granite import GGUF_FACTORS, granite_attention, granite_model
from medusa_core.models.arch.mamba2 import (
    MAMBA_FLAGS,
    MAMBA_KEYS,
    mamba2,
    mamba_tensors,
    mixer_types,
)
from medusa_core.models.architecture import MAX_INTERMEDIATE, Arch, ArchConfig
from medusa_core.models.blocks.compose import GATED, mlp, moe, pre_norms
from medusa_core.models.blocks.spec import BlockSpec, Mixer, MlpSpec, MoeSpec, Scoring
from medusa_core.models.gguf_architecture import (
    GgufArchitecture,
    expert_tensors,
    gguf_mixer_types,
    mlp_tensors,
)
from medusa_core.system.files.gguf import Gguf


def _normalize(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Call the width of the shared MLP the model's, and that of an expert `expert_width`."""
    return {
        **raw,
        "intermediate_size": raw.get("shared_intermediate_size"),
        "expert_width": raw.get("intermediate_size"),
    }


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks of a Mamba-2 layer or attention, and the shared MLP with its experts."""
    kinds = mixer_types(config, "layer_types", "layers_block_type")
    attending = granite_attention(config)
    if config.raw.get("position_embedding_type", "rope") != "rope":
        attending = replace(attending, rope=None)
    mixers: dict[str, Mixer] = {"attention": attending}
    if "mamba" in kinds:
        mixers["mamba"] = mamba2(config)
    scale, dense = config.positive("residual_multiplier", 1.0), _mlp(config)
    return [
        BlockSpec(pre_norms(config), (mixers[kind],), dense, residual_multiplier=scale)
        for kind in kinds
    ]


def _mlp(config: ArchConfig) -> MlpSpec | MoeSpec:
    """Return the shared MLP, with experts in parallel if the model has any."""
    bias, is_fused = config.flag("mlp_bias"), config.raw.get("fused_gate", True) is True
    names = ("", "", "output_linear") if is_fused else GATED
    fused = "input_linear" if is_fused else ""
    shared = mlp(config, "shared_mlp", bias=bias, names=names, fused=fused)
    if not config.raw.get("num_local_experts"):
        return shared
    routing = config.routing("num_local_experts", 8, 2, Scoring.TOPK_SOFTMAX)
    width = config.whole("expert_width", MAX_INTERMEDIATE, 1)
    experts = moe(
        config, routing, width, "block_sparse_moe", router="router.layer", bias=bias, shared=shared
    )
    return replace(experts, router=replace(experts.router, has_bias=False))


def _gguf_config(gguf: Gguf, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return layer types, width of the shared MLP, and whether attention has RoPE."""
    shared = raw.get("intermediate_size")
    if gguf.of_model("expert_count"):
        shared = gguf.of_model("expert_shared_feed_forward_length")
    has_rope = gguf.of_model("rope.scaling.finetuned") is not False  # llama.cpp's switch
    return {
        "layer_types": gguf_mixer_types(gguf),
        "shared_intermediate_size": shared,
        "position_embedding_type": "rope" if has_rope else "nope",
    }


SPEC = Arch(
    "granitemoehybrid",
    _blocks,
    granite_model,
    normalize=_normalize,
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
        defaults={"fused_gate": False},
        flags=MAMBA_FLAGS,
        config=_gguf_config,
        interleaved_rope=True,
        has_experts=True,
    ),
)
