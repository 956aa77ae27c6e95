"""What GGUF files call the tensors that Hugging Face's names stand for, by architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_TOP = {
    "token_embd": "model.embed_tokens",
    "token_embd_norm": "model.embedding_norm",  # LFM2's last one
    "output_norm": "model.norm",
    "output": "lm_head",
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
}
_FOUR_NORMS = {
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "pre_feedforward_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
}
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
# Tensors that Hugging Face calls neither weight nor bias.
_WHOLE_NAMES = {
    "attn_sinks.weight": "self_attn.sinks",
    "exp_probs_b.bias": "feed_forward.expert_bias",
}


@dataclass(frozen=True, slots=True)
class Architecture:
    """How one architecture differs.

    Attributes:
        model_type: Hugging Face's name of the family.
        names: What its blocks' tensors are called, where that differs.
        turns_pairs: Rows of queries and keys are stored as neighbouring pairs, not as halves.
        norm_offset: What is added to norms when they are written.
        has_experts: Its blocks have experts.
        has_states: Some of its layers hold a state in the place of keys and values: those are
            said to have 0 heads of them.
    """

    model_type: str
    names: Mapping[str, str] = field(default_factory=dict)
    turns_pairs: bool = False
    norm_offset: float = 0.0
    has_experts: bool = False
    has_states: bool = False


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
    "gemma2": Architecture("gemma2", _FOUR_NORMS, norm_offset=1.0),
    "gemma3": Architecture("gemma3_text", _FOUR_NORMS, norm_offset=1.0),
    "phi3": Architecture("phi3", _FUSED),
    "granite": Architecture("granite", turns_pairs=True),
    "smollm3": Architecture("smollm3", turns_pairs=True),
    "olmo2": Architecture("olmo2", {k: v for k, v in _FOUR_NORMS.items() if k != "ffn_norm"}),
    "gpt-oss": Architecture(
        "gpt_oss",
        _EXPERTS | {"ffn_gate_inp": "mlp.router", "post_attention_norm": _BLOCK["ffn_norm"]},
        has_experts=True,
    ),
    "lfm2": Architecture("lfm2", _SHORT_CONVOLUTION, has_states=True),
    "lfm2moe": Architecture(
        "lfm2_moe", _SHORT_CONVOLUTION | _LFM2_EXPERTS, has_experts=True, has_states=True
    ),
}

_RECURRENT = "some of its layers are recurrent, and a tree of drafts has no state for each branch"
_SHARED = "its layers share keys and values"
_INSTEAD = {
    "clip": ("it is the part of a model that sees", "Choose the file with the model's text part."),
    "gemma3n": (_SHARED, "Choose Gemma 3 instead."),
    "gemma4": (_SHARED, "Choose Gemma 3 instead."),
    "granitehybrid": (_RECURRENT, "Choose Granite 3, or a Granite 4 without such layers."),
    **dict.fromkeys(("qwen3next", "qwen35", "qwen35moe"), (_RECURRENT, "Choose Qwen3 instead.")),
    **dict.fromkeys(
        (
            *("mamba", "mamba2", "jamba", "falcon-h1", "nemotron_h", "plamo2"),
            *("nemotron_h_moe", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7", "kimi-linear"),
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
    if (whole := _WHOLE_NAMES.get(f"{part}.{ending}")) is not None:
        return f"model.layers.{number}.{whole}"
    theirs = of.names.get(part) or _BLOCK.get(part)
    return name if theirs is None else f"model.layers.{number}.{theirs}.{ending}"
