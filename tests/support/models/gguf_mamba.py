"""What llama.cpp's converters make of models with Mamba-2 layers: keys, names, orders, products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gguf
import torch
from torch import Tensor

MAMBA_FAMILIES = ("granitemoehybrid", "falcon_h1", "nemotron_h", "mamba2")
_NAMES = {  # of nemotron_h, by those of the others
    "num_hidden_layers": "layers_block_type",
    "rms_norm_eps": "layer_norm_epsilon",
    "mamba_n_heads": "mamba_num_heads",
    "mamba_d_head": "mamba_head_dim",
    "mamba_n_groups": "n_groups",
    "mamba_d_state": "ssm_state_size",
    "mamba_d_conv": "conv_kernel",
}


_MAMBA2_NAMES = {  # likewise of mamba2
    "rms_norm_eps": "layer_norm_epsilon",
    "mamba_n_heads": "num_heads",
    "mamba_d_head": "head_dim",
    "mamba_n_groups": "n_groups",
    "mamba_d_state": "state_size",
    "mamba_d_conv": "conv_kernel",
}


def mamba_sizes(raw: dict[str, Any]) -> dict[str, Any]:
    """Return a `config.json` of per-layer sizes with the standard keys."""
    raw = dict(raw)
    if raw["model_type"] == "mamba2":
        raw |= {ours: raw[theirs] for ours, theirs in _MAMBA2_NAMES.items()}
        none = ("head_dim", "num_attention_heads", "num_key_value_heads", "intermediate_size")
        return raw | dict.fromkeys(none, 0) | {"max_position_embeddings": 1 << 18}
    kinds = raw.get("layers_block_type") or raw.get("layer_types")
    if raw["model_type"] == "nemotron_h":
        raw |= {ours: raw[theirs] for ours, theirs in _NAMES.items()}
        raw["num_hidden_layers"] = len(kinds)
        wide = {"mlp": raw["intermediate_size"], "moe": raw["moe_intermediate_size"]}
        widths = [wide.get(kind, 0) for kind in kinds]
        raw |= {"intermediate_size": widths, "rope_parameters": _no_rope()}
        raw["num_local_experts"] = raw["n_routed_experts"] if "moe" in kinds else 0
    if raw["model_type"] != "falcon_h1":
        heads = raw["num_key_value_heads"]
        raw["num_key_value_heads"] = [
            heads if "attention" in kind and "linear" not in kind else 0 for kind in kinds
        ]
    for key in ("num_local_experts", "num_experts"):
        if not raw.get(key):
            raw.pop(key, None)
    if raw["model_type"] == "granitemoehybrid" and "num_local_experts" not in raw:
        raw["intermediate_size"] = raw["shared_intermediate_size"]
    return raw


def _no_rope() -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": 10000.0}


def add_mamba(writer: gguf.GGUFWriter, raw: dict[str, Any]) -> None:
    """Add the keys of Mamba-2 layers."""
    writer.add_ssm_conv_kernel(raw["mamba_d_conv"])
    writer.add_ssm_state_size(raw["mamba_d_state"])
    writer.add_ssm_group_count(raw["mamba_n_groups"])
    writer.add_ssm_inner_size(raw["mamba_n_heads"] * raw["mamba_d_head"])
    writer.add_ssm_time_step_rank(raw["mamba_n_heads"])
    if raw["model_type"] == "nemotron_h":
        writer.add_layer_norm_eps(raw["rms_norm_eps"])
        if raw.get("num_local_experts"):
            writer.add_expert_shared_feed_forward_length(raw["moe_shared_expert_intermediate_size"])
            writer.add_expert_shared_count(raw["n_shared_experts"])
            writer.add_expert_weights_norm(raw["norm_topk_prob"])
            writer.add_expert_weights_scale(raw["routed_scaling_factor"])
            writer.add_expert_group_count(raw["n_group"])
    if raw["model_type"] == "granitemoehybrid":
        writer.add_rope_scaling_finetuned(raw["position_embedding_type"] == "rope")
        if raw.get("num_local_experts"):
            writer.add_expert_shared_feed_forward_length(raw["shared_intermediate_size"])


def stays_plain(name: str) -> bool:
    """Whether a tensor is small, so that its numbers stay as they are."""
    return name.endswith(("ssm_conv1d.weight", "ssm_norm.weight", "ssm_a", "ssm_d"))


def stored_mamba(raw: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors under names that the package knows, as a file has them."""
    return dict(
        _mamba_layer(raw, own, tensor)
        for name, whole in tensors.items()
        for own, tensor in _split(raw, name, whole)
    )


def _mamba_layer(raw: dict[str, Any], name: str, tensor: Tensor) -> tuple[str, Tensor]:
    if raw["model_type"] == "falcon_h1":
        tensor = _multiplied(raw, name, tensor)
    if name.endswith(".A_log"):
        return name, -tensor.exp().unsqueeze(-1)
    if name.endswith(".D"):
        return name, tensor.unsqueeze(-1)
    if name.endswith(".dt_bias"):
        return name.replace("dt_bias", "dt_proj.bias"), tensor
    if name.endswith("conv1d.weight"):
        return name, tensor.squeeze(1)
    if name.endswith("e_score_correction_bias"):
        return name.replace("correction_bias", "correction.bias"), tensor
    if ".mixer.experts." in name:
        return name.replace(".mixer.", ".mlp.").replace("backbone.", "model."), tensor
    if name.endswith((".mamba.norm.weight", ".mixer.norm.weight")):
        return name, tensor.view(raw["mamba_n_groups"], -1)
    return name, tensor


def _split(raw: dict[str, Any], name: str, tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Split Granite's fused gate and up projections."""
    beside = "mlp.shared_experts" if raw.get("num_local_experts") else "mlp"
    for theirs, ours in (("shared_mlp", beside), ("block_sparse_moe", "mlp.experts")):
        lead, found, part = name.partition(f".{theirs}.")
        if found and part == "input_linear.weight":
            gate, up = tensor.chunk(2, dim=-2)
            yield f"{lead}.{ours}.gate_proj.weight", gate
            yield f"{lead}.{ours}.up_proj.weight", up
            return
        if found and part == "output_linear.weight":
            yield f"{lead}.{ours}.down_proj.weight", tensor
            return
    yield name, tensor


def _multiplied(raw: dict[str, Any], name: str, tensor: Tensor) -> Tensor:
    """Multiply Falcon-H1's factors into its weights."""
    part = name.split(".")[-2]
    gate, down = raw["mlp_multipliers"]
    attention = raw["attention_in_multiplier"]
    factors = {
        "down_proj": down,
        "gate_proj": gate,
        "k_proj": attention * raw["key_multiplier"],
        "q_proj": attention,
        "v_proj": attention,
        "o_proj": raw["attention_out_multiplier"],
        "out_proj": raw["ssm_out_multiplier"],
        "in_proj": raw["ssm_in_multiplier"],
        "lm_head": raw["lm_head_multiplier"],
        "embed_tokens": raw["embedding_multiplier"],
    }
    tensor = tensor * factors.get(part, 1.0)
    if part != "in_proj":
        return tensor
    inner, width = raw["mamba_d_ssm"], raw["mamba_n_groups"] * raw["mamba_d_state"]
    sizes = torch.tensor([inner, inner, width, width, raw["mamba_n_heads"]])
    rows = torch.tensor(raw["ssm_multipliers"]).repeat_interleave(sizes)
    return tensor * rows.unsqueeze(-1)
