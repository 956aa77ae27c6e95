"""Qwen 3.5 and 3.6 with experts: Qwen 3.5 with experts and a shared one in every layer."""

from __future__ import annotations

from dataclasses import replace

from medusa_core.models.arch.qwen3_5_text import (
    DELTA_NET_DEFAULTS,
    QWEN35_GGUF,
    delta_net_blocks,
    delta_net_model,
    shared_expert_moe,
    shared_expert_width,
)
from medusa_core.models.architecture import Arch, ArchConfig
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.gguf_architecture import mlp_tensors


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return Qwen 3.5's blocks with experts and a shared expert."""
    return delta_net_blocks(config, shared_expert_moe(config))


SPEC = Arch(
    "qwen3_5_moe_text",
    _blocks,
    delta_net_model,
    defaults=DELTA_NET_DEFAULTS,
    normalize=shared_expert_width,
    gguf=replace(
        QWEN35_GGUF,
        name="qwen35moe",
        tensors={
            **QWEN35_GGUF.tensors,
            **mlp_tensors("mlp.shared_expert", "_shexp"),
            "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
        },
        keys={
            **QWEN35_GGUF.keys,
            "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
        },
        has_experts=True,
    ),
)
