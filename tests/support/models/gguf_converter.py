"""Writes transformers' models as GGUF files, with the names, keys and orders of llama.cpp's own.

Their tokenizer is that of the tiny models.
"""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import gguf
import torch
from safetensors.torch import load_file
from torch import Tensor

from medusa_core.bench.gguf_export import finish
from medusa_core.system.files.json_file import read_json
from tests.support.models.gguf_files import add_as, add_byte_level
from tests.support.models.gguf_mamba import (
    MAMBA_FAMILIES,
    add_mamba,
    mamba_sizes,
    stays_plain,
    stored_mamba,
)
from tests.support.models.tiny import TEMPLATE, make_tokenizer

# By `model_type` of config.json.
_ARCHITECTURES = {
    **dict.fromkeys(("llama", "mistral"), gguf.MODEL_ARCH.LLAMA),
    "ministral3": gguf.MODEL_ARCH.MISTRAL3,
    "qwen2": gguf.MODEL_ARCH.QWEN2,
    "qwen3": gguf.MODEL_ARCH.QWEN3,
    "qwen3_moe": gguf.MODEL_ARCH.QWEN3MOE,
    "exaone4": gguf.MODEL_ARCH.EXAONE4,
    "seed_oss": gguf.MODEL_ARCH.SEED_OSS,
    "hunyuan_v1_dense": gguf.MODEL_ARCH.HUNYUAN_DENSE,
    "ernie4_5": gguf.MODEL_ARCH.ERNIE4_5,
    "glm4": gguf.MODEL_ARCH.GLM4,
    "glm4_moe": gguf.MODEL_ARCH.GLM4_MOE,
    "gemma": gguf.MODEL_ARCH.GEMMA,
    "gemma2": gguf.MODEL_ARCH.GEMMA2,
    "gemma3_text": gguf.MODEL_ARCH.GEMMA3,
    **dict.fromkeys(("gemma4_text", "gemma4_unified_text"), gguf.MODEL_ARCH.GEMMA4),
    "phi3": gguf.MODEL_ARCH.PHI3,
    "granite": gguf.MODEL_ARCH.GRANITE,
    "smollm3": gguf.MODEL_ARCH.SMOLLM3,
    **dict.fromkeys(("olmo2", "olmo3"), gguf.MODEL_ARCH.OLMO2),
    "gpt_oss": gguf.MODEL_ARCH.GPT_OSS,
    "lfm2": gguf.MODEL_ARCH.LFM2,
    "lfm2_moe": gguf.MODEL_ARCH.LFM2MOE,
    "qwen3_5_text": gguf.MODEL_ARCH.QWEN35,
    "qwen3_5_moe_text": gguf.MODEL_ARCH.QWEN35MOE,
    "granitemoehybrid": gguf.MODEL_ARCH.GRANITE_HYBRID,
    "falcon_h1": gguf.MODEL_ARCH.FALCON_H1,
    "nemotron_h": gguf.MODEL_ARCH.NEMOTRON_H,
    "mamba2": gguf.MODEL_ARCH.MAMBA2,
}
_DELTA_NETS = ("qwen3_5_text", "qwen3_5_moe_text")
_NO_WEIGHTS = {
    ".layer_scalar": ".layer_scalar.weight",
    ".sinks": ".sinks.weight",
    ".A_log": ".A_log",
    ".dt_bias": ".dt_proj.bias",
    ".expert_bias": ".expert_bias.bias",
    ".e_score_correction_bias": ".e_score_correction.bias",
}
_TURNS_PAIRS = ("llama", "mistral", "ministral3", "granite", "smollm3", "granitemoehybrid")
_GEMMAS = ("gemma", "gemma2", "gemma3_text")
_GEMMA4 = ("gemma4_text", "gemma4_unified_text")
_LFM2 = ("lfm2", "lfm2_moe")
_HAS_WINDOWS = ("gemma2", "gemma3_text", *_GEMMA4, "phi3", "olmo3", "gpt_oss")


def convert(folder: Path, to: Path, kind: str = "f32") -> Path:
    """Write a folder's model as a GGUF file.

    Args:
        folder: In Hugging Face layout, one file of weights.
        to: The file.
        kind: GGUF's name of its matrices' type, in lower case; one that the package quantizes to.
    """
    raw, tensors = read_json(folder / "config.json"), load_file(folder / "model.safetensors")
    architecture = _ARCHITECTURES[raw["model_type"]]
    num_guessing = sum(name.endswith(("mtp.fc.weight", ".eh_proj.weight")) for name in tensors)
    if "moe" in raw.get("layers_block_type", ()):
        architecture = gguf.MODEL_ARCH.NEMOTRON_H_MOE
    if raw["model_type"] in MAMBA_FAMILIES:
        raw, tensors = mamba_sizes(raw), stored_mamba(raw | mamba_sizes(raw), tensors)
    writer = gguf.GGUFWriter(to, gguf.MODEL_ARCH_NAMES[architecture])
    _add_sizes(writer, raw, num_guessing)
    if "rope_parameters" in raw:
        _add_rope(writer, raw)
    _add_multipliers(writer, raw)
    if raw["model_type"] in _GEMMA4:
        add_gemma4(writer, raw)
    if raw["model_type"] in _DELTA_NETS:
        _add_states(writer, raw)
    names = gguf.get_tensor_name_map(architecture, raw["num_hidden_layers"] + num_guessing)
    if num_guessing:
        writer.add_uint32(f"{writer.arch}.nextn_predict_layers", num_guessing)
    if raw["model_type"] in MAMBA_FAMILIES:
        add_mamba(writer, raw)
    for name, tensor in _stored(raw, tensors).items():
        stem, _, ending = name.rpartition(".")
        known = names.get_name(stem) or names.get_name(stem.removeprefix("model."))
        theirs = stem if stem.startswith("blk.") else known
        full_name = f"{theirs}.{ending}" if theirs else names.get_name(name)  # one without ending
        assert full_name is not None, name
        of = "f32" if stays_plain(full_name) else kind
        add_as(writer, full_name, tensor.float().contiguous().numpy(), of)
    make_tokenizer(raw["vocab_size"]).save(str(folder / "tokenizer.json"))
    add_byte_level(writer, folder / "tokenizer.json", "gpt-2")
    writer.add_chat_template(TEMPLATE)
    writer.add_eos_token_id(raw["eos_token_id"])
    finish(writer)
    return to


def _add_sizes(writer: gguf.GGUFWriter, raw: dict[str, Any], num_guessing: int) -> None:
    writer.add_block_count(raw["num_hidden_layers"] + num_guessing)
    writer.add_context_length(raw["max_position_embeddings"])
    writer.add_embedding_length(raw["hidden_size"])
    if "intermediate_size" in raw and raw["model_type"] not in _GEMMA4:
        writer.add_feed_forward_length(_inner_width(raw))
    writer.add_head_count(raw["num_attention_heads"])
    if raw["model_type"] not in _GEMMA4:
        writer.add_head_count_kv(_kv_heads(raw))
    writer.add_layer_norm_rms_eps(raw.get("rms_norm_eps", raw.get("norm_eps")))
    if raw["model_type"] in _LFM2:
        writer.add_vocab_size(raw["vocab_size"])
        writer.add_shortconv_l_cache(raw["conv_L_cache"])
    if raw["model_type"] == "lfm2_moe":
        writer.add_leading_dense_block_count(raw["num_dense_layers"])
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
    if raw.get("head_dim") and raw["model_type"] not in ("granite", *_GEMMA4):
        writer.add_key_length(raw["head_dim"])
        writer.add_value_length(raw["head_dim"])
    if raw["model_type"] == "glm4_moe":
        raw["num_experts"] = raw["n_routed_experts"]
        writer.add_leading_dense_block_count(raw["first_k_dense_replace"])
        writer.add_expert_gating_func(gguf.ExpertGatingFuncType.SIGMOID)
        writer.add_expert_shared_count(raw["n_shared_experts"])
        writer.add_expert_weights_scale(raw["routed_scaling_factor"])
        writer.add_expert_weights_norm(raw["norm_topk_prob"])
    experts = raw.get("num_local_experts") or raw.get("num_experts")
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(raw.get("num_experts_per_tok") or raw["top_k_experts"])
        writer.add_expert_feed_forward_length(
            raw.get("moe_intermediate_size") or raw["intermediate_size"]
        )
    if raw["model_type"] in _HAS_WINDOWS:
        writer.add_sliding_window(raw["sliding_window"] or 0)
    if raw["model_type"] == "exaone4" and raw["sliding_window"]:
        writer.add_sliding_window(raw["sliding_window"])
    if raw["model_type"] in ("olmo3", "exaone4") and raw["sliding_window"]:
        writer.add_sliding_window_pattern([t == "sliding_attention" for t in raw["layer_types"]])


def _inner_width(raw: dict[str, Any]) -> int:
    """Numbers between the two halves of an MLP, where LFM2 has them adjusted."""
    width: int = raw["intermediate_size"]
    if raw["model_type"] != "lfm2" or not raw["block_auto_adjust_ff_dim"]:
        return width
    width = int(raw["block_ffn_dim_multiplier"] * int(2 * width / 3))
    multiple: int = raw["block_multiple_of"]
    return -(-width // multiple) * multiple


def _kv_heads(raw: dict[str, Any]) -> int | list[int]:
    """Heads of keys; of layers with a state none."""
    heads: int = raw["num_key_value_heads"]
    if raw["model_type"] not in _LFM2:
        return heads
    return [heads if kind == "full_attention" else 0 for kind in raw["layer_types"]]


def _add_states(writer: gguf.GGUFWriter, raw: dict[str, Any]) -> None:
    """Add the tensors of gated delta nets."""
    heads = raw["linear_num_value_heads"]
    writer.add_ssm_conv_kernel(raw["linear_conv_kernel_dim"])
    writer.add_ssm_state_size(raw["linear_key_head_dim"])
    writer.add_ssm_group_count(raw["linear_num_key_heads"])
    writer.add_ssm_time_step_rank(heads)
    writer.add_ssm_inner_size(raw["linear_value_head_dim"] * heads)
    kinds = raw["layer_types"]
    if kinds[3:4] == ["full_attention"] and kinds.count("full_attention") == 1:
        writer.add_full_attention_interval(4)
    else:
        marks = [kind == "linear_attention" for kind in kinds]
        writer.add_array(f"{writer.arch}.attention.recurrent_layers", marks)
    pairs = int(raw["head_dim"] * raw["rope_parameters"]["partial_rotary_factor"]) // 2
    writer.add_rope_dimension_sections([*((pairs + more) // 3 for more in (2, 1, 0)), 0])
    if "shared_expert_intermediate_size" in raw:
        writer.add_expert_shared_feed_forward_length(raw["shared_expert_intermediate_size"])


def _add_rope(writer: gguf.GGUFWriter, raw: dict[str, Any]) -> None:
    reported = raw["rope_parameters"]
    rope = reported.get("full_attention", reported)
    head_dim = raw.get("head_dim") or raw["hidden_size"] // raw["num_attention_heads"]
    if raw["model_type"] not in _GEMMA4:
        writer.add_rope_dimension_count(int(head_dim * rope.get("partial_rotary_factor", 1.0)))
    writer.add_rope_freq_base(rope["rope_theta"] * _of_alpha(rope, head_dim))
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        writer.add_rope_scaling_yarn_beta_fast(rope.get("beta_fast", 32.0))
        writer.add_rope_scaling_yarn_beta_slow(rope.get("beta_slow", 1.0))
    if rope["rope_type"] == "llama3":
        writer.add_tensor("rope_freqs.weight", _llama3_factors(rope, head_dim).numpy())
    if rope["rope_type"] == "longrope":
        writer.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE)
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
        old = rope["original_max_position_embeddings"]
        ratio = raw["max_position_embeddings"] / old
        writer.add_rope_scaling_attn_factors(math.sqrt(1 + math.log(ratio) / math.log(old)))
        for length in ("long", "short"):
            factors = torch.tensor(rope[f"{length}_factor"], dtype=torch.float32)
            writer.add_tensor(f"rope_factors_{length}.weight", factors.numpy())
    if raw["model_type"] == "ministral3":
        writer.add_rope_scaling_yarn_log_mul(rope["mscale_all_dim"])
        writer.add_attn_temperature_scale(rope["llama_4_scaling_beta"])


def add_gemma4(writer: gguf.GGUFWriter, raw: dict[str, Any]) -> None:
    """Add what layers with a window and those that see all have each for themselves."""
    windows = [kind == "sliding_attention" for kind in raw["layer_types"]]
    own = raw["per_layer_config"][str(windows.index(False))]
    shared, width = raw["num_kv_shared_layers"], raw["intermediate_size"]
    head_dim, rope = own["head_dim"], raw["rope_parameters"]
    writer.add_sliding_window_pattern(windows)
    writer.add_shared_kv_layers(shared)
    writer.add_embedding_length_per_layer_input(raw.get("hidden_size_per_layer_input") or 0)
    for add, size in (
        (writer.add_key_length, head_dim),
        (writer.add_value_length, head_dim),
        (writer.add_key_length_swa, raw["head_dim"]),
        (writer.add_value_length_swa, raw["head_dim"]),
        (writer.add_rope_dimension_count, head_dim),
        (writer.add_rope_dimension_count_swa, raw["head_dim"]),
    ):
        add(size)
    writer.add_rope_freq_base_swa(rope["sliding_attention"]["rope_theta"])
    kv, num_own = raw["num_key_value_heads"], len(windows) - shared
    if "num_key_value_heads" in own:
        kv = [kv if is_local else own["num_key_value_heads"] for is_local in windows]
    writer.add_head_count_kv(kv)
    if raw["use_double_wide_mlp"]:
        width = [width] * num_own + [2 * width] * shared
    writer.add_feed_forward_length(width)
    if raw["final_logit_softcapping"]:
        writer.add_final_logit_softcapping(raw["final_logit_softcapping"])
    num_turned = int(head_dim * rope["full_attention"]["partial_rotary_factor"] / 2)
    factors = torch.tensor([1.0] * num_turned + [1e30] * (head_dim // 2 - num_turned))
    writer.add_tensor("rope_freqs.weight", factors.numpy())


def _of_alpha(rope: dict[str, Any], head_dim: int) -> float:
    """Return the factor that Hunyuan's alpha applies to rope_theta."""
    alpha: float = rope.get("alpha", 1.0)
    return float(alpha ** (head_dim / (head_dim - 2)))


def _llama3_factors(rope: dict[str, Any], head_dim: int) -> Tensor:
    """Return the rope scaling factor of each pair."""
    old, low, high = (
        rope[key]
        for key in ("original_max_position_embeddings", "low_freq_factor", "high_freq_factor")
    )
    factors = []
    for pair in range(head_dim // 2):
        length = 2 * math.pi * rope["rope_theta"] ** (2 * pair / head_dim)
        blend = min(1.0, max(0.0, (old / length - low) / (high - low)))
        factors.append(1 / ((1 - blend) / rope["factor"] + blend))
    return torch.tensor(factors, dtype=torch.float32)


def _add_multipliers(writer: gguf.GGUFWriter, raw: dict[str, Any]) -> None:
    if raw["model_type"] in ("granite", "granitemoehybrid"):
        writer.add_attention_scale(raw["attention_multiplier"])
        writer.add_embedding_scale(raw["embedding_multiplier"])
        writer.add_residual_scale(raw["residual_multiplier"])
        writer.add_logit_scale(raw["logits_scaling"])
    if raw["model_type"] == "gemma2":
        writer.add_attn_logit_softcapping(raw["attn_logit_softcapping"])
        writer.add_final_logit_softcapping(raw["final_logit_softcapping"])


def _stored(raw: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors as a file has them: reordered, moved by one, experts of a layer together."""
    kind, stored = raw["model_type"], dict[str, Tensor]()
    experts: dict[str, dict[int, Tensor]] = defaultdict(dict)
    for name, tensor in tensors.items():
        if kind in _DELTA_NETS:
            tensor = _of_delta_net(raw, name, tensor)
            name = _behind(name, raw["num_hidden_layers"])
        is_moved = kind in _GEMMAS or (kind in _DELTA_NETS and ".linear_attn." not in name)
        if is_moved and name.endswith("norm.weight"):
            tensor = tensor + 1
        if kind in _TURNS_PAIRS and ".q_proj." in name:
            tensor = _paired(tensor, raw["num_attention_heads"])
        if kind in _TURNS_PAIRS and ".k_proj." in name:
            heads = raw["num_key_value_heads"]
            tensor = _paired(tensor, max(heads) if isinstance(heads, list) else heads)
        if name.endswith(".conv.weight"):
            tensor = tensor.squeeze(1)
        if kind == "gpt_oss" and ".experts." in name:
            stored |= _of_gpt_oss(name, tensor)
        elif kind in _GEMMA4 and (".experts." in name or name.endswith("scale")):
            stored[_of_gemma4(name)] = tensor
        elif ".experts." in name and tensor.dim() < 3:
            before, _, rest = name.partition(".experts.")
            number, _, part = rest.partition(".")
            experts[f"{before}.experts.{part}"][int(number)] = tensor
        else:
            ending = next((one for one in _NO_WEIGHTS if name.endswith(one)), "")
            stored[name.removesuffix(ending) + _NO_WEIGHTS.get(ending, "")] = tensor
    for name, found in experts.items():
        stored[name] = torch.stack([found[number] for number in sorted(found)])
    return stored


def _behind(name: str, count: int) -> str:
    """Return the name of an MTP layer's tensor, which follows the other layers."""
    own = {
        "mtp.fc.": f"blk.{count}.nextn.eh_proj.",
        "mtp.pre_fc_norm_embedding.": f"blk.{count}.nextn.enorm.",
        "mtp.pre_fc_norm_hidden.": f"blk.{count}.nextn.hnorm.",
        "mtp.norm.": f"blk.{count}.nextn.shared_head_norm.",
        "mtp.layers.0.": f"model.layers.{count}.",
    }
    lead = next((lead for lead in own if name.startswith(lead)), "")
    return own[lead] + name.removeprefix(lead) if lead else name


def _of_delta_net(raw: dict[str, Any], name: str, tensor: Tensor) -> Tensor:
    """Reorder value heads by key head, and take the decay itself instead of its logarithm."""
    _, of_mixer, part = name.partition(".linear_attn.")
    groups, heads = raw["linear_num_key_heads"], raw["linear_num_value_heads"]
    keys = 2 * groups * raw["linear_key_head_dim"]

    def tiled(rows: Tensor) -> Tensor:
        grouped = rows.reshape(groups, heads // groups, -1, *rows.shape[1:])
        return grouped.transpose(0, 1).reshape(rows.shape)

    if part == "A_log":
        tensor = -tensor.exp()
    if part == "conv1d.weight":
        tensor = tensor.squeeze(1)
    if part in ("conv1d.weight", "in_proj_qkv.weight"):
        return torch.cat([tensor[:keys], tiled(tensor[keys:])])
    if part == "out_proj.weight":
        return tiled(tensor.t()).t()
    return tiled(tensor) if of_mixer and part != "norm.weight" else tensor


def _of_gemma4(name: str) -> str:
    """Return the name of a Gemma 4 tensor, with experts under names of llama.cpp's map."""
    before, _, part = name.rpartition(".")
    ends = {
        "scale": f"{before}.proj.scale",
        "per_expert_scale": f"{before.removesuffix('.router')}.experts.down_proj.scale",
    }
    return ends.get(part, f"{name}.weight")


def _of_gpt_oss(name: str, tensor: Tensor) -> dict[str, Tensor]:
    """Gates and values of experts, which alternate, apart; rows are outputs."""
    before, _, part = name.rpartition(".")
    ending = "bias" if part.endswith("_bias") else "weight"
    if ending == "weight":
        tensor = tensor.transpose(1, 2)
    if part.startswith("down_proj"):
        return {f"{before}.down_proj.{ending}": tensor}
    return {
        f"{before}.gate_proj.{ending}": tensor[:, ::2],
        f"{before}.up_proj.{ending}": tensor[:, 1::2],
    }


def _paired(rows: Tensor, num_heads: int) -> Tensor:
    """Rows of heads as neighbouring pairs that were halves."""
    halves = rows.view(num_heads, 2, -1, *rows.shape[1:])
    return halves.transpose(1, 2).reshape(rows.shape)
