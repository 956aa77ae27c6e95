"""Mistral: Llama with a sliding window."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.compose import attention, limited_to_window, mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import GgufArchitecture, round_float32
from medusa_core.system.files.gguf import Gguf


def mistral_blocks(config: ArchConfig) -> list[BlockSpec]:
    """Llama's blocks without biases."""
    return [BlockSpec(pre_norms(config), (attention(config),), mlp(config))] * config.num_layers


def _gguf_config(gguf: Gguf, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Files whose attention temperature grows are Ministral 3; others are Mistral Small."""
    beta, scaling = gguf.of_model("attention.temperature_scale"), raw.get("rope_scaling")
    if not isinstance(beta, int | float) or not isinstance(scaling, dict):
        return {}
    more = {"mscale": 1.0, "llama_4_scaling_beta": round_float32(beta)}
    log_mul = gguf.of_model("rope.scaling.yarn_log_multiplier")
    if isinstance(log_mul, int | float):
        more["mscale_all_dim"] = round_float32(log_mul)
    return {"model_type": "ministral3", "rope_scaling": scaling | more}


SPEC = Arch(
    "mistral",
    mistral_blocks,
    limited_to_window,
    gguf=GgufArchitecture(
        "mistral3",
        config=_gguf_config,
        reads=frozenset({"attention.temperature_scale"}),
        interleaved_rope=True,
    ),
)
