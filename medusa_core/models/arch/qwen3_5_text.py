"""Qwen 3.5 and 3.6 (dense, what reads and writes text): gated delta nets and gated attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.models.architecture import Arch
from medusa_core.models.delta_net import (
    delta_net_as_usual,
    delta_net_parts,
    delta_net_traits,
)
from medusa_core.models.gguf_architecture import GgufArchitecture, num_layers
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.system.files.gguf import Gguf


def _gguf_config(gguf: Gguf, _: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return kinds of layers, and those whose quantized output reads grouped value heads."""
    heads, inner = gguf.of_model("ssm.time_step_rank"), gguf.of_model("ssm.inner_size")
    layers, is_grouped = range(num_layers(gguf)), heads != gguf.of_model("ssm.group_count")
    outputs = {index: gguf.tensors.get(f"blk.{index}.ssm_out.weight") for index in layers}
    found: dict[str, Any] = {
        "tiled_outputs": [
            index
            for index, tensor in outputs.items()
            if tensor is not None and tensor.kind in BLOCK_SIZES and is_grouped
        ]
    }
    marks = gguf.numbers(f"{gguf.architecture}.attention.recurrent_layers")
    if marks:
        kinds = ("full_attention", "linear_attention")
        found["layer_types"] = [kinds[bool(mark)] for mark in list(marks)[: len(layers)]]
    if isinstance(heads, int) and isinstance(inner, int) and heads > 0:
        found["linear_value_head_dim"] = inner // heads
    return found


QWEN35_GGUF = GgufArchitecture(
    "qwen35",
    tensors={
        "attn_qkv.weight": "linear_attn.in_proj_qkv.weight",
        "attn_gate.weight": "linear_attn.in_proj_z.weight",
        "ssm_beta.weight": "linear_attn.in_proj_b.weight",
        "ssm_alpha.weight": "linear_attn.in_proj_a.weight",
        "ssm_conv1d.weight": "linear_attn.conv1d.weight",
        "ssm_dt.bias": "linear_attn.dt_bias",
        "ssm_a": "linear_attn.A_log",
        "ssm_norm.weight": "linear_attn.norm.weight",
        "ssm_out.weight": "linear_attn.out_proj.weight",
        "nextn.eh_proj": "mtp.fc",
        "nextn.enorm": "mtp.pre_fc_norm_embedding",
        "nextn.hnorm": "mtp.pre_fc_norm_hidden",
        "nextn.shared_head_norm": "mtp.norm",
    },
    keys={
        "linear_num_key_heads": "ssm.group_count",
        "linear_num_value_heads": "ssm.time_step_rank",
        "linear_key_head_dim": "ssm.state_size",
        "linear_conv_kernel_dim": "ssm.conv_kernel",
        "full_attention_interval": "full_attention_interval",
    },
    config=_gguf_config,
    partial_rotary=True,
    norm_offset=1.0,
    grouped_value_heads=True,
    mtp_prefix=True,
)


SPEC = Arch(
    "qwen3_5_text",
    delta_net_traits,
    delta_net_parts,
    delta_net_as_usual,
    gguf=QWEN35_GGUF,
)
