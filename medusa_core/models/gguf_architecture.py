"""How GGUF files store a family: tensor names, metadata keys, and values that llama.cpp hard-codes.

Source: llama.cpp's `llama-arch.cpp`, its conversion scripts and its model loaders.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from medusa_core.models.blocks.spec import EACH_EXPERT
from medusa_core.system.files.gguf import Gguf

MAX_LAYERS = 1 << 10


def mlp_tensors(
    prefix: str, ending: str = "", parts: tuple[str, ...] = ("gate", "up", "down")
) -> dict[str, str]:
    """Return the tensor names of an MLP, GGUF's → Hugging Face's.

    Args:
        prefix: Hugging Face's name of the MLP within its block.
        ending: Of GGUF's names, such as `_shexp` for a shared expert.
        parts: The matrices that it has.
    """
    return {f"ffn_{part}{ending}": f"{prefix}.{part}_proj" for part in parts}


def expert_tensors(prefix: str, parts: tuple[str, ...] = ("gate", "up", "down")) -> dict[str, str]:
    """Return the names of tensors with all experts of a layer; as `mlp_tensors`."""
    return mlp_tensors(f"{prefix}experts.{EACH_EXPERT}", "_exps", parts)


# Names of nearly all architectures: outside of blocks, and within.
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
    **expert_tensors("mlp."),
    "ffn_gate_inp": "mlp.gate",
    # MTP layers, after the last of the model itself.
    "nextn.eh_proj": "eh_proj",
    "nextn.enorm": "enorm",
    "nextn.hnorm": "hnorm",
    "nextn.embed_tokens": "embed_tokens",
    "nextn.shared_head_head": "shared_head.head",
    "nextn.shared_head_norm": "shared_head.norm",
}


def _nothing(_gguf: Gguf, _raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return no settings besides those that `keys` maps."""
    return {}


@dataclass(frozen=True, slots=True)
class GgufArchitecture:
    """How GGUF files store an architecture; the defaults are those of most.

    Attributes:
        name: Value of `general.architecture`; empty if no GGUF files of the family are read.
        tensors: GGUF's tensor names → Hugging Face's, without `blk.N.` and `model.layers.N.`, where
            they differ from Llama's. A key with an ending (`ssm_dt.bias`) names a whole tensor;
            other keys keep their endings.
        keys: `config.json` keys → metadata keys, beside those of all architectures.
        flags: `config.json` keys → tensors (`attn_output.bias`). The value is whether any block has
            such a tensor.
        defaults: `config.json` values of files without the metadata key.
        config: Returns more `config.json` values from a file and those known so far. None removes a
            value. Raises ModelError if something isn't supported.
        reads: Metadata keys that `config` reads, or whose values follow from others.
        full_attention_every: Period of layers with full attention where a file doesn't say it; 0 if
            all layers are alike.
        windowed_type: `model_type` of files with a sliding window, if that is another family.
        aliases: More values of `general.architecture`.
        per_layer_keys: Metadata keys whose values may differ between layers.
        interleaved_rope: Rows of Q and K are stored as rotated pairs (llama.cpp's NORM RoPE), not
            as halves (NEOX).
        partial_rotary: `rope.dimension_count` may be smaller than a head.
        norm_offset: Number that conversion adds to norm weights.
        has_experts: Whether files may have experts.
        sigmoid_router: `expert_gating_func` counts and must be a sigmoid; llama.cpp ignores this
            key in other architectures.
        grouped_value_heads: Value heads of gated delta nets are stored strided by key head: the
            first of every group, then the second, …
        mtp_prefix: MTP layers are called `mtp.…` in Hugging Face's files.
    """

    name: str = ""
    tensors: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    config: Callable[[Gguf, Mapping[str, Any]], Mapping[str, Any]] = _nothing
    reads: frozenset[str] = frozenset()
    full_attention_every: int = 0
    windowed_type: str = ""
    aliases: tuple[str, ...] = ()
    per_layer_keys: frozenset[str] = frozenset()
    interleaved_rope: bool = False
    partial_rotary: bool = False
    norm_offset: float = 0.0
    has_experts: bool = False
    sigmoid_router: bool = False
    grouped_value_heads: bool = False
    mtp_prefix: bool = False

    def hugging_face_name(self, name: str) -> str:
        """Return Hugging Face's name of a tensor; the given one if it is unknown.

        Args:
            name: Such as `blk.3.attn_q.weight`.

        Returns:
            For a tensor with all experts of a layer a name that contains `EACH_EXPERT`.
        """
        stem, _, ending = name.rpartition(".")
        lead, _, rest = stem.partition(".")
        number, _, part = rest.partition(".")
        if lead != "blk" or not number.isdigit():
            found = self.tensors.get(stem) or _TOP.get(stem)
            return name if found is None else f"{found}.{ending}"
        if (own := self.tensors.get(f"{part}.{ending}".lstrip("."))) is not None:
            return f"model.layers.{number}.{own}"
        found = self.tensors.get(part) or _BLOCK.get(part)
        return name if found is None else f"model.layers.{number}.{found}.{ending}"

    def gguf_names(self, num_layers: int) -> dict[str, str]:
        """Return GGUF's names of all tensors by Hugging Face's, the inverse of the above."""
        stems = [*self.tensors, *_TOP]
        for layer in range(num_layers):
            stems += (f"blk.{layer}.{part}" for part in (*self.tensors, *_BLOCK))
        names: dict[str, str] = {}
        for name in (f"{stem}{ending}" for stem in stems for ending in ("", ".weight", ".bias")):
            names.setdefault(self.hugging_face_name(name), name)
        return names


def num_layers(gguf: Gguf) -> int:
    """Return the number of layers without MTP layers; 0 if the file doesn't state it."""
    count, num_mtp = gguf.of_model("block_count"), gguf.of_model("nextn_predict_layers") or 0
    if not isinstance(count, int) or not isinstance(num_mtp, int) or count > MAX_LAYERS:
        return 0
    return max(0, count - num_mtp)


def per_layer(gguf: Gguf, key: str) -> list[float]:
    """Return a number for each layer, or a list of one that holds for all layers."""
    value = gguf.of_model(key)
    return [value] if isinstance(value, int) else list(gguf.numbers(f"{gguf.architecture}.{key}"))


def gguf_mixer_types(gguf: Gguf) -> list[str]:
    """Return the mixer of each layer: `attention` if it has KV heads, else `mamba`."""
    count, heads = num_layers(gguf), per_layer(gguf, "attention.head_count_kv")
    heads = heads * count if len(heads) == 1 else heads[:count]
    return ["attention" if number else "mamba" for number in heads]


def hidden_per_head(raw: Mapping[str, Any]) -> int | None:
    """Return `hidden_size` divided by the number of heads; None if either is unknown."""
    hidden, heads = raw.get("hidden_size"), raw.get("num_attention_heads")
    if not isinstance(hidden, int) or not isinstance(heads, int) or heads < 1:
        return None
    return hidden // heads


def round_float32(number: float) -> float:
    """Return a float32 as the shortest decimal number that rounds to it."""
    return float(f"{number:.7g}")
