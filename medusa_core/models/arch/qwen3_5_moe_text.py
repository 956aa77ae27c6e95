"""Qwen 3.5 and 3.6 with experts: Qwen 3.5 whose rows pass through a few of many MLPs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from medusa_core.models.arch.qwen3_5_text import QWEN35_GGUF
from medusa_core.models.architecture import Arch
from medusa_core.models.delta_net import (
    as_usual_with_experts,
    delta_net_parts,
    delta_net_traits,
    with_experts,
)
from medusa_core.models.gguf_architecture import mlp_tensors
from medusa_core.models.traits import Traits


def _traits(raw: Mapping[str, Any]) -> Traits:
    return with_experts(delta_net_traits(raw), raw)


SPEC = Arch(
    "qwen3_5_moe_text",
    _traits,
    delta_net_parts,
    as_usual_with_experts,
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
