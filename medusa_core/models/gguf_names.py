"""What GGUF files call the tensors that Hugging Face's names stand for, by architecture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_TOP = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
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


@dataclass(frozen=True, slots=True)
class Architecture:
    """How one architecture differs.

    Attributes:
        model_type: Hugging Face's name of the family.
        names: What its blocks' tensors are called, where that differs.
        turns_pairs: Rows of queries and keys are stored as neighbouring pairs, not as halves.
        norm_offset: What is added to norms when they are written.
    """

    model_type: str
    names: Mapping[str, str] = field(default_factory=dict)
    turns_pairs: bool = False
    norm_offset: float = 0.0


# By `general.architecture`.
ARCHITECTURES = {
    "llama": Architecture("llama", turns_pairs=True),
    "qwen2": Architecture("qwen2"),
    "qwen3": Architecture("qwen3"),
    "gemma2": Architecture("gemma2", _FOUR_NORMS, norm_offset=1.0),
    "gemma3": Architecture("gemma3_text", _FOUR_NORMS, norm_offset=1.0),
    "phi3": Architecture("phi3", _FUSED),
    "granite": Architecture("granite", turns_pairs=True),
    "smollm3": Architecture("smollm3", turns_pairs=True),
    "olmo2": Architecture("olmo2", {k: v for k, v in _FOUR_NORMS.items() if k != "ffn_norm"}),
}


def hugging_face_name(name: str, of: Architecture) -> str:
    """The name of a tensor in Hugging Face's layout; its own where there is none.

    Args:
        name: Such as `blk.3.attn_q.weight`.
        of: The architecture.
    """
    stem, _, ending = name.rpartition(".")
    if stem in _TOP:
        return f"{_TOP[stem]}.{ending}"
    lead, _, rest = stem.partition(".")
    number, _, part = rest.partition(".")
    theirs = of.names.get(part) or _BLOCK.get(part)
    if lead != "blk" or not number.isdigit() or theirs is None:
        return name
    return f"model.layers.{number}.{theirs}.{ending}"
