"""What GGUF files call the tensors that Hugging Face's names stand for, by architecture."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_TOP = {
    "token_embd": "model.embed_tokens",
    "token_embd_norm": "model.norm",  # LFM2's last one
    "output_norm": "model.norm",
    "output": "lm_head",
    "per_layer_token_embd": "model.embed_tokens_per_layer",
    "per_layer_model_proj": "model.per_layer_model_projection",
    "per_layer_proj_norm": "model.per_layer_projection_norm",
}
_BLOCK = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    # Of a layer behind the last that only guesses.
    "nextn.eh_proj": "eh_proj",
    "nextn.enorm": "enorm",
    "nextn.hnorm": "hnorm",
    "nextn.embed_tokens": "embed_tokens",
    "nextn.shared_head_head": "shared_head.head",
    "nextn.shared_head_norm": "shared_head.norm",
}
_FOUR_NORMS = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
_PER_LAYER = {
    "inp_gate": "per_layer_input_gate",
    "proj": "per_layer_projection",
    "post_norm": "post_per_layer_input_norm",
}
_EXPERTS_BESIDE = {
    "ffn_gate_inp": "router.proj",
    "ffn_gate_up_exps": "experts.*.gate_up_proj",
    **{f"ffn_{part}_exps": f"experts.*.{part}_proj" for part in ("gate", "up", "down")},
    "pre_ffw_norm_2": "pre_feedforward_layernorm_2",
    "post_ffw_norm_1": "post_feedforward_layernorm_1",
    "post_ffw_norm_2": "post_feedforward_layernorm_2",
}
_NORMS_BEHIND = {name: theirs for name, theirs in _FOUR_NORMS.items() if name != "ffn_norm"}
_FUSED = {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}
_SHORT_CONVOLUTION = {
    "attn_norm": "operator_norm",
    "attn_output": "self_attn.out_proj",
    "attn_q_norm": "self_attn.q_layernorm",
    "attn_k_norm": "self_attn.k_layernorm",
    "ffn_norm": "ffn_norm",
    "ffn_gate": "feed_forward.w1",
    "ffn_up": "feed_forward.w3",
    "ffn_down": "feed_forward.w2",
    "shortconv.conv": "conv.conv",
    "shortconv.in_proj": "conv.in_proj",
    "shortconv.out_proj": "conv.out_proj",
}
EACH_EXPERT = "*"  # in a name: where the number of an expert stands
_EXPERTS = {
    f"ffn_{part}_exps": f"mlp.experts.{EACH_EXPERT}.{part}_proj" for part in ("gate", "up", "down")
}
_LFM2_EXPERTS = {
    "ffn_gate_inp": "feed_forward.gate",
    "ffn_gate_exps": f"feed_forward.experts.{EACH_EXPERT}.w1",
    "ffn_up_exps": f"feed_forward.experts.{EACH_EXPERT}.w3",
    "ffn_down_exps": f"feed_forward.experts.{EACH_EXPERT}.w2",
}
_SINKS = "attn_sinks.weight"


def _mamba(prefix: str) -> dict[str, str]:
    """Tensors of a Mamba-2 layer, by their whole names."""
    return {
        "ssm_in.weight": f"{prefix}.in_proj.weight",
        "ssm_in.bias": f"{prefix}.in_proj.bias",
        "ssm_conv1d.weight": f"{prefix}.conv1d.weight",
        "ssm_conv1d.bias": f"{prefix}.conv1d.bias",
        "ssm_dt.bias": f"{prefix}.dt_bias",
        "ssm_a": f"{prefix}.A_log",
        "ssm_d": f"{prefix}.D",
        "ssm_norm.weight": f"{prefix}.norm.weight",
        "ssm_out.weight": f"{prefix}.out_proj.weight",
        "ssm_out.bias": f"{prefix}.out_proj.bias",
    }


_MOE = "block_sparse_moe"
_GRANITE_HYBRID = {
    **{f"ffn_{part}": f"shared_mlp.{part}_proj" for part in ("gate", "up", "down")},
    **{f"ffn_{part}_shexp": f"shared_mlp.{part}_proj" for part in ("gate", "up", "down")},
    **{name: theirs.replace("mlp", _MOE) for name, theirs in _EXPERTS.items()},
    "ffn_gate_inp": f"{_MOE}.router.layer",
}
_FALCON_H1 = {f"ffn_{part}": f"feed_forward.{part}_proj" for part in ("gate", "up", "down")}
_NEMOTRON_H = {
    "attn_norm": "norm",
    **{f"attn_{part}": f"mixer.{part}_proj" for part in ("q", "k", "v")},
    "attn_output": "mixer.o_proj",
    **{f"ffn_{part}": f"mixer.{part}_proj" for part in ("up", "down")},
    **{f"ffn_{part}_shexp": f"mixer.shared_experts.{part}_proj" for part in ("up", "down")},
    **{name: theirs.replace("mlp", "mixer") for name, theirs in _EXPERTS.items()},
    "ffn_gate_inp": "mixer.gate",
}


_DELTA_NET = {
    "attn_qkv.weight": "linear_attn.in_proj_qkv.weight",
    "attn_gate.weight": "linear_attn.in_proj_z.weight",
    "ssm_beta.weight": "linear_attn.in_proj_b.weight",
    "ssm_alpha.weight": "linear_attn.in_proj_a.weight",
    "ssm_conv1d.weight": "linear_attn.conv1d.weight",
    "ssm_dt.bias": "linear_attn.dt_bias",
    "ssm_a": "linear_attn.A_log",
    "ssm_norm.weight": "linear_attn.norm.weight",
    "ssm_out.weight": "linear_attn.out_proj.weight",
}
_QWEN35 = {
    "post_attention_norm": _BLOCK["ffn_norm"],
    "nextn.eh_proj": "mtp.fc",
    "nextn.enorm": "mtp.pre_fc_norm_embedding",
    "nextn.hnorm": "mtp.pre_fc_norm_hidden",
    "nextn.shared_head_norm": "mtp.norm",
}
_SHARED_EXPERT = {
    "ffn_gate_inp": "mlp.gate",
    "ffn_gate_inp_shexp": "mlp.shared_expert_gate",
    **{f"ffn_{part}_shexp": f"mlp.shared_expert.{part}_proj" for part in ("gate", "up", "down")},
}
_GLM4_MOE = {
    "post_attention_norm": _BLOCK["ffn_norm"],
    "ffn_gate_inp": "mlp.gate",
    **{f"ffn_{part}_shexp": f"mlp.shared_experts.{part}_proj" for part in ("gate", "up", "down")},
}
_LAYER = re.compile(r"model\.layers\.(\d{1,4})\.(.+)")


@dataclass(frozen=True, slots=True)
class Architecture:
    """How one architecture differs.

    Attributes:
        model_type: Hugging Face's name of the family.
        names: What its blocks' tensors are called, where that differs.
        turns_pairs: Rows of queries and keys are stored as neighbouring pairs, not as halves.
        norm_offset: What is added to norms when they are written.
        has_experts: Its blocks have experts.
        whole: What tensors of its blocks are called whose whole names differ.
        by_layer: Keys of sizes that may differ from layer to layer.
        tiles_heads: Heads of gated delta nets are stored one of each key head, then the next.
        guesses_apart: A layer that only guesses is called `mtp.…`, not counted on from the others.
    """

    model_type: str
    names: Mapping[str, str] = field(default_factory=dict)
    turns_pairs: bool = False
    norm_offset: float = 0.0
    has_experts: bool = False
    whole: Mapping[str, str] = field(default_factory=dict)
    by_layer: frozenset[str] = frozenset()
    tiles_heads: bool = False
    guesses_apart: bool = False


# By `general.architecture`.
ARCHITECTURES = {
    "llama": Architecture("llama", turns_pairs=True),
    "mistral3": Architecture("mistral", turns_pairs=True),
    "qwen2": Architecture("qwen2"),
    "qwen2vl": Architecture("qwen2"),  # text alone turns as in qwen2
    "qwen3": Architecture("qwen3"),
    "qwen3vl": Architecture("qwen3"),
    "qwen3moe": Architecture(
        "qwen3_moe", _EXPERTS | {"ffn_gate_inp": "mlp.gate"}, has_experts=True
    ),
    "exaone4": Architecture("exaone4", _NORMS_BEHIND),
    "seed_oss": Architecture("seed_oss", {"post_attention_norm": _BLOCK["ffn_norm"]}),
    "hunyuan-dense": Architecture(
        "hunyuan_v1_dense",
        {
            "attn_q_norm": "self_attn.query_layernorm",
            "attn_k_norm": "self_attn.key_layernorm",
        },
    ),
    "ernie4_5": Architecture("ernie4_5"),
    "glm4": Architecture(
        "glm4",
        {
            "post_attention_norm": "post_self_attn_layernorm",
            "post_ffw_norm": "post_mlp_layernorm",
            "ffn_up": "mlp.gate_up_proj",
        },
    ),
    "glm4moe": Architecture(
        "glm4_moe",
        _EXPERTS | _GLM4_MOE,
        has_experts=True,
        whole={"exp_probs_b.bias": "mlp.gate.e_score_correction_bias"},
    ),
    "gemma": Architecture("gemma", norm_offset=1.0),
    "gemma2": Architecture("gemma2", _FOUR_NORMS, norm_offset=1.0),
    "gemma3": Architecture("gemma3_text", _FOUR_NORMS, norm_offset=1.0),
    "gemma4": Architecture(
        "gemma4_text",
        _FOUR_NORMS | _PER_LAYER | _EXPERTS_BESIDE,
        has_experts=True,
        whole={
            "layer_output_scale.weight": "layer_scalar",
            "ffn_gate_inp.scale": "router.scale",
            "ffn_down_exps.scale": "router.per_expert_scale",
        },
        by_layer=frozenset(("feed_forward_length", "attention.head_count_kv")),
    ),
    "phi3": Architecture("phi3", _FUSED),
    "granite": Architecture("granite", turns_pairs=True),
    "smollm3": Architecture("smollm3", turns_pairs=True),
    "olmo2": Architecture("olmo2", _NORMS_BEHIND),
    "gpt-oss": Architecture(
        "gpt_oss",
        _EXPERTS | {"ffn_gate_inp": "mlp.router", "post_attention_norm": _BLOCK["ffn_norm"]},
        has_experts=True,
    ),
    "lfm2": Architecture("lfm2", _SHORT_CONVOLUTION),
    "lfm2moe": Architecture(
        "lfm2_moe",
        _SHORT_CONVOLUTION | _LFM2_EXPERTS,
        has_experts=True,
        whole={"exp_probs_b.bias": "feed_forward.expert_bias"},
    ),
    "qwen35": Architecture(
        "qwen3_5_text",
        _QWEN35,
        norm_offset=1.0,
        whole=_DELTA_NET,
        tiles_heads=True,
        guesses_apart=True,
    ),
    "qwen35moe": Architecture(
        "qwen3_5_moe_text",
        _QWEN35 | _EXPERTS | _SHARED_EXPERT,
        norm_offset=1.0,
        has_experts=True,
        whole=_DELTA_NET,
        tiles_heads=True,
        guesses_apart=True,
    ),
    "granitehybrid": Architecture(
        "granitemoehybrid",
        _GRANITE_HYBRID,
        turns_pairs=True,
        has_experts=True,
        whole=_mamba("mamba"),
    ),
    "falcon-h1": Architecture(
        "falcon_h1",
        _FALCON_H1,
        whole={**_mamba("mamba"), "ffn_norm": "pre_ff_layernorm.weight"},
    ),
    "nemotron_h": Architecture("nemotron_h", _NEMOTRON_H, whole=_mamba("mixer")),
    "nemotron_h_moe": Architecture(
        "nemotron_h",
        _NEMOTRON_H,
        has_experts=True,
        whole={
            **_mamba("mixer"),
            "exp_probs_b.bias": "mixer.gate.e_score_correction_bias",
        },
    ),
}

_RECURRENT = "some of its layers are recurrent, and a tree of drafts has no state for each branch"
_STREAMS = "its blocks keep several streams beside each other"
_INSTEAD = {
    "gemma3n": (_STREAMS, "Choose Gemma 4 instead."),
    "qwen3next": ("only its safetensors files are read", "Choose Qwen3.5 instead."),
    **dict.fromkeys(
        (
            *("mamba", "mamba2", "jamba", "plamo2"),
            *("rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7", "kimi-linear"),
        ),
        (_RECURRENT, "Choose a model without such layers, such as Qwen3."),
    ),
}


def why_not(architecture: str) -> tuple[str, str]:
    """Why an architecture isn't supported, and what to do instead."""
    supported = f"Supported are {', '.join(sorted(ARCHITECTURES))}."
    return _INSTEAD.get(architecture, ("it isn't known here", supported))


def hugging_face_name(name: str, of: Architecture) -> str:
    """The name of a tensor in Hugging Face's layout; its own where there is none.

    Args:
        name: Such as `blk.3.attn_q.weight`.
        of: The architecture.

    Returns:
        Of a tensor that holds all experts of a layer a name with `EACH_EXPERT` in it.
    """
    stem, _, ending = name.rpartition(".")
    if stem in _TOP:
        return f"{_TOP[stem]}.{ending}"
    lead, _, rest = stem.partition(".")
    number, _, part = rest.partition(".")
    if lead != "blk" or not number.isdigit():
        return name
    if f"{part}.{ending}" == _SINKS:
        return f"model.layers.{number}.self_attn.sinks"
    if (own := of.whole.get(f"{part}.{ending}".lstrip("."))) is not None:
        return f"model.layers.{number}.{own}"
    theirs = of.names.get(part) or _BLOCK.get(part)
    return name if theirs is None else f"model.layers.{number}.{theirs}.{ending}"


def halves_of_experts(name: str) -> tuple[str, ...]:
    """The names of gate and up, which may be one tensor; else the name alone."""
    both = ".gate_up_proj."
    if EACH_EXPERT not in name or both not in name:
        return (name,)
    return name.replace(both, ".gate_proj."), name.replace(both, ".up_proj.")


def behind_layers(name: str, num_layers: int) -> str:
    """The name that tensors of layers which only guess have in Hugging Face's files: `mtp.…`.

    Args:
        name: From `hugging_face_name`.
        num_layers: Layers of the model itself; those which guess are counted on. 0 where none does.
    """
    found = _LAYER.fullmatch(name)
    if found is None or not num_layers or int(found[1]) < num_layers:
        return name
    rest = found[2]
    return rest if rest.startswith("mtp.") else f"mtp.layers.{int(found[1]) - num_layers}.{rest}"
