"""LFM2: short convolutions in most layers, attention in some."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from medusa_core.errors import ModelError
from medusa_core.models.architecture import Arch, positive, whole
from medusa_core.models.gguf_architecture import GgufArchitecture, mixer_types
from medusa_core.models.layer_shapes import RowShape, StateShape
from medusa_core.models.traits import Experts, Traits
from medusa_core.system.files.gguf import Gguf

if TYPE_CHECKING:
    from medusa_core.models.blocks.tensors import LinearSpec
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.parts import BlockParts, MlpParts

_MOST_LAYERS = 1 << 10
_MOST_HEADS = 1 << 12
_MOST_WIDTH = 1 << 17
_MOST_INNER = 1 << 20
_MOST_TAPS = 1 << 6
_KINDS = ("conv", "full_attention")


def lfm2_traits(raw: Mapping[str, Any]) -> Traits:
    """What its layers hold, and norms of queries and keys."""
    heads = whole(raw, "num_attention_heads", _MOST_HEADS, 1)
    hidden = whole(raw, "hidden_size", _MOST_WIDTH, heads)
    rows = RowShape(
        whole(raw, "num_key_value_heads", _MOST_HEADS, heads),
        whole(raw, "head_dim", _MOST_HEADS, max(1, hidden // heads)),
    )
    inputs = StateShape(0, 0, 0, 0, hidden, _num_taps(raw))
    return Traits(
        qk_norm=True,
        is_tied=True,
        conv_bias=bool(raw.get("conv_bias", False)),
        layers=tuple(inputs if kind == "conv" else rows for kind in _layer_types(raw)),
    )


def _num_taps(raw: Mapping[str, Any]) -> int:
    """Inputs that a convolution reads for one output."""
    taps = whole(raw, "conv_L_cache", _MOST_TAPS, 3)
    if taps == 1:
        raise ModelError(
            "config.json: conv_L_cache is 1: the convolutions look back on nothing.",
            "Download config.json again.",
        )
    return taps


def lfm2_names(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """A `config.json` with the usual names for what both families call otherwise."""
    usual = {**raw, "rms_norm_eps": raw.get("norm_eps", 1e-5), "layer_types": _layer_types(raw)}
    if raw.get("rope_theta") is None:
        usual["rope_theta"] = 1e6
    if "tie_embedding" in raw:
        usual["tie_word_embeddings"] = raw["tie_embedding"]
    return usual


def _as_usual(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    return {**lfm2_names(raw), "intermediate_size": _inner_width(raw)}


def _inner_width(raw: Mapping[str, Any]) -> int:
    """Numbers between the two halves of an MLP: two thirds of what is said, rounded up."""
    key = "intermediate_size" if raw.get("block_ff_dim") is None else "block_ff_dim"
    width = whole(raw, key, _MOST_INNER, 12288)
    if not raw.get("block_auto_adjust_ff_dim", True):
        return width
    width = 2 * width // 3
    factor = raw.get("block_ffn_dim_multiplier", 1.0)
    if factor is None:
        return width
    width = int((positive(raw, "block_ffn_dim_multiplier", 1.0) or 1.0) * width)
    multiple = whole(raw, "block_multiple_of", _MOST_INNER, 256)
    return -(-width // multiple) * multiple


def _layer_types(raw: Mapping[str, Any]) -> list[str]:
    """The kind of every layer; in old files from the numbers of those with attention.

    Raises:
        ModelError: They aren't one for each layer, or of another kind.
    """
    count = whole(raw, "num_hidden_layers", _MOST_LAYERS, 32)
    kinds, attending = raw.get("layer_types"), raw.get("full_attn_idxs")
    if kinds is None and attending is None:
        return ["full_attention"] * count
    if kinds is not None:
        if isinstance(kinds, list) and len(kinds) == count and all(k in _KINDS for k in kinds):
            return kinds
        raise ModelError(
            f"config.json: layer_types isn't a list of {count} words, conv or full_attention.",
            "Layers of other kinds aren't supported in this family: download config.json again.",
        )
    if not isinstance(attending, list) or not all(
        isinstance(index, int) and not isinstance(index, bool) and 0 <= index < count
        for index in attending
    ):
        raise ModelError(
            f"config.json: full_attn_idxs isn't a list of layers from 0 to {count - 1}.",
            "Download config.json again.",
        )
    attending = set(attending)
    return ["full_attention" if index in attending else "conv" for index in range(count)]


def lfm2_parts(config: ModelConfig, index: int) -> BlockParts:
    """The parts of a block: a convolution or attention, then one MLP or experts."""
    from medusa_core.models.parts import BlockParts

    prefix = f"model.layers.{index}"
    norms = (f"{prefix}.operator_norm", f"{prefix}.ffn_norm")
    parts = BlockParts(prefix, dict.fromkeys(norms, config.hidden_size), None, None, None)
    shape, experts = config.layers[index], config.traits.experts
    if isinstance(shape, StateShape):
        parts = _with_convolution(parts, config, shape)
    else:
        parts = _with_attention(parts, config)
    if experts is None or index in experts.plain_layers:
        mlp = _mlp_parts(config, prefix, f"{prefix}.feed_forward", config.intermediate_size)
        return replace(parts, mlp=mlp)
    return _with_experts(parts, config, experts)


def _with_convolution(parts: BlockParts, config: ModelConfig, shape: StateShape) -> BlockParts:
    conv, hidden, has_bias = f"{parts.prefix}.conv", config.hidden_size, config.traits.conv_bias
    more: dict[str, tuple[int, ...]] = {f"{conv}.conv.weight": (hidden, 1, shape.conv_width)}
    if has_bias:
        more[f"{conv}.conv.bias"] = (hidden,)
    part = _one_tensor(parts.prefix, "in_proj", f"{conv}.in_proj", 3 * hidden, hidden, has_bias)
    output = _one_tensor(parts.prefix, "output", f"{conv}.out_proj", hidden, hidden, has_bias)
    return replace(parts, mixer=(part,), output=output, more=more)


def _with_attention(parts: BlockParts, config: ModelConfig) -> BlockParts:
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows

    attention, size, hidden = f"{parts.prefix}.self_attn", config.head_dim, config.hidden_size
    inner, kv = config.num_heads * size, config.num_kv_heads * size
    pieces = (
        TensorRows(f"{attention}.q_proj", inner, rotates=True),
        TensorRows(f"{attention}.k_proj", kv, rotates=True),
        TensorRows(f"{attention}.v_proj", kv),
    )
    norms = {f"{attention}.q_layernorm": size, f"{attention}.k_layernorm": size}
    return replace(
        parts,
        vectors=parts.vectors | norms,
        qkv=LinearSpec(_own_name(parts.prefix, "qkv"), pieces, hidden),
        output=_one_tensor(parts.prefix, "output", f"{attention}.out_proj", hidden, inner),
    )


def _with_experts(parts: BlockParts, config: ModelConfig, experts: Experts) -> BlockParts:
    prefix, feeding = parts.prefix, f"{parts.prefix}.feed_forward"
    router = _one_tensor(
        prefix, "router", f"{feeding}.{experts.router}", experts.count, config.hidden_size
    )
    bias = {f"{feeding}.{experts.bias}": (experts.count,)} if experts.bias else {}
    return replace(
        parts,
        router=replace(router, stays_dense=True),
        experts=tuple(
            _mlp_parts(
                config,
                f"{prefix}.experts.{number}",
                f"{feeding}.experts.{number}",
                experts.width,
            )
            for number in range(experts.count)
        ),
        more={**parts.more, **bias},
    )


def _mlp_parts(config: ModelConfig, lead: str, prefix: str, width: int) -> MlpParts:
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows
    from medusa_core.models.parts import MlpParts

    gate_up = tuple(TensorRows(f"{prefix}.{part}", width) for part in ("w1", "w3"))
    down = (TensorRows(f"{prefix}.w2", config.hidden_size),)
    return MlpParts(
        LinearSpec(_own_name(lead, "gate_up"), gate_up, config.hidden_size),
        LinearSpec(_own_name(lead, "down"), down, width),
    )


def _one_tensor(
    prefix: str, name: str, tensor: str, rows: int, columns: int, has_bias: bool = False
) -> LinearSpec:
    from medusa_core.models.blocks.tensors import LinearSpec, TensorRows

    return LinearSpec(_own_name(prefix, name), (TensorRows(tensor, rows),), columns, has_bias)


def _own_name(prefix: str, name: str) -> str:
    """What a part of a block is called here."""
    return f"{prefix.removeprefix('model.')}.{name}"


LFM2_NAMES = {
    "input_layernorm": "operator_norm",
    "post_attention_layernorm": "ffn_norm",
    "q_norm": "q_layernorm",
    "k_norm": "k_layernorm",
}


def _gguf_config(gguf: Gguf, known: Mapping[str, Any]) -> Mapping[str, Any]:
    attention = "sliding_attention" if known.get("sliding_window") else "full_attention"
    kinds = {"attention": attention, "mamba": "conv"}
    return {"layer_types": [kinds[mixer] for mixer in mixer_types(gguf)] or None}


LFM2_GGUF = GgufArchitecture(
    "lfm2",
    tensors={
        "token_embd_norm": "model.norm",
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
    },
    keys={"norm_eps": "attention.layer_norm_rms_epsilon", "conv_L_cache": "shortconv.l_cache"},
    defaults={"block_auto_adjust_ff_dim": False},  # files have the adjusted width
    flags={"conv_bias": "shortconv.in_proj.bias"},
    config=_gguf_config,
)


SPEC = Arch(
    "lfm2",
    lfm2_traits,
    lfm2_parts,
    _as_usual,
    LFM2_NAMES,
    gguf=LFM2_GGUF,
)
