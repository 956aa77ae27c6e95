"""Hugging Face's names of the tensors in GGUF files."""

from __future__ import annotations

import re

from medusa_core.models.gguf_architecture import GgufArchitecture, expert_tensors, mlp_tensors
from medusa_core.models.traits import EACH_EXPERT

_TOP = {
    "token_embd": "model.embed_tokens",
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
    "post_attention_norm": "post_attention_layernorm",
    "ffn_norm": "post_attention_layernorm",
    "post_ffw_norm": "post_feedforward_layernorm",
    **mlp_tensors("mlp"),
    **expert_tensors("mlp"),
    "ffn_gate_inp": "mlp.gate",
    # MTP layers, after the last of the model itself.
    "nextn.eh_proj": "eh_proj",
    "nextn.enorm": "enorm",
    "nextn.hnorm": "hnorm",
    "nextn.embed_tokens": "embed_tokens",
    "nextn.shared_head_head": "shared_head.head",
    "nextn.shared_head_norm": "shared_head.norm",
}
_LAYER = re.compile(r"model\.layers\.(\d{1,4})\.(.+)")


def hugging_face_name(name: str, of: GgufArchitecture) -> str:
    """Return the name of a tensor in Hugging Face's layout; its own if it is unknown.

    Args:
        name: Such as `blk.3.attn_q.weight`.
        of: The file's architecture.

    Returns:
        For a tensor with all experts of a layer a name that contains `EACH_EXPERT`.
    """
    stem, _, ending = name.rpartition(".")
    lead, _, rest = stem.partition(".")
    number, _, part = rest.partition(".")
    if lead != "blk" or not number.isdigit():
        found = of.tensors.get(stem) or _TOP.get(stem)
        return name if found is None else f"{found}.{ending}"
    if (own := of.tensors.get(f"{part}.{ending}".lstrip("."))) is not None:
        return f"model.layers.{number}.{own}"
    found = of.tensors.get(part) or _BLOCK.get(part)
    return name if found is None else f"model.layers.{number}.{found}.{ending}"


def halves_of_experts(name: str) -> tuple[str, ...]:
    """Return the names of gate and up if a tensor holds both, else its name alone."""
    both = ".gate_up_proj."
    if EACH_EXPERT not in name or both not in name:
        return (name,)
    return name.replace(both, ".gate_proj."), name.replace(both, ".up_proj.")


def mtp_name(name: str, num_layers: int) -> str:
    """Return the name that an MTP layer's tensor has in Hugging Face's files: `mtp.…`.

    Args:
        name: From `hugging_face_name`.
        num_layers: Layers of the model itself, after which MTP layers follow; 0 without such.
    """
    found = _LAYER.fullmatch(name)
    if found is None or not num_layers or int(found[1]) < num_layers:
        return name
    rest = found[2]
    return rest if rest.startswith("mtp.") else f"mtp.layers.{int(found[1]) - num_layers}.{rest}"
