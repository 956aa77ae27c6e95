"""What GGUF files call the tensors that Hugging Face's names stand for, by architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_TOP = {
    "token_embd": "model.embed_tokens",
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
_FUSED = {"attn_qkv": "self_attn.qkv_proj", "ffn_up": "mlp.gate_up_proj"}
EACH_EXPERT = "*"  # in a name: where the number of an expert stands
_EXPERTS = {
    f"ffn_{part}_exps": f"mlp.experts.{EACH_EXPERT}.{part}_proj" for part in ("gate", "up", "down")
}
_SINKS = "attn_sinks.weight"


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
    """

    model_type: str
    names: Mapping[str, str] = field(default_factory=dict)
    turns_pairs: bool = False
    norm_offset: float = 0.0
    has_experts: bool = False
    whole: Mapping[str, str] = field(default_factory=dict)
    by_layer: frozenset[str] = frozenset()


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
    "gemma4": Architecture(
        "gemma4_text",
        _FOUR_NORMS | _PER_LAYER,
        whole={"layer_output_scale.weight": "layer_scalar"},
        by_layer=frozenset(("feed_forward_length", "attention.head_count_kv")),
    ),
    "phi3": Architecture("phi3", _FUSED),
    "granite": Architecture("granite", turns_pairs=True),
    "smollm3": Architecture("smollm3", turns_pairs=True),
    "olmo2": Architecture("olmo2", {k: v for k, v in _FOUR_NORMS.items() if k != "ffn_norm"}),
    "gpt-oss": Architecture(
        "gpt_oss",
        _EXPERTS | {"ffn_gate_inp": "mlp.router", "post_attention_norm": _BLOCK["ffn_norm"]},
        has_experts=True,
    ),
}

_RECURRENT = "some of its layers are recurrent, and a tree of drafts has no state for each branch"
_STREAMS = "its blocks keep several streams beside each other"
_INSTEAD = {
    "clip": ("it is the part of a model that sees", "Choose the file with the model's text part."),
    "gemma3n": (_STREAMS, "Choose Gemma 4 instead."),
    "granitehybrid": (_RECURRENT, "Choose Granite 3, or a Granite 4 without such layers."),
    **dict.fromkeys(("qwen3next", "qwen35", "qwen35moe"), (_RECURRENT, "Choose Qwen3 instead.")),
    **dict.fromkeys(
        (
            *("mamba", "mamba2", "jamba", "falcon-h1", "lfm2", "lfm2moe", "nemotron_h", "plamo2"),
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
    if (own := of.whole.get(f"{part}.{ending}".lstrip("."))) is not None:
        return f"model.layers.{number}.{own}"
    if f"{part}.{ending}" == _SINKS:
        return f"model.layers.{number}.self_attn.sinks"
    theirs = of.names.get(part) or _BLOCK.get(part)
    return name if theirs is None else f"model.layers.{number}.{theirs}.{ending}"
