"""LFM2: short convolutions in most layers, attention in some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.i18n import tr
from medusa_core.models.architecture import (
    AGAIN,
    MAX_INTERMEDIATE,
    MAX_LAYERS,
    Arch,
    ArchConfig,
    positive,
    whole,
)
from medusa_core.models.blocks.compose import QkNorm, attention, linear, mlp, pre_norms
from medusa_core.models.blocks.spec import BlockSpec, Mixer, MlpSpec, MoeSpec, ShortConvolutionSpec
from medusa_core.models.gguf_architecture import GgufArchitecture, gguf_mixer_types
from medusa_core.models.layer_shapes import StateShape
from medusa_core.system.files.gguf import Gguf

_MAX_TAPS = 1 << 6
_KINDS = ("conv", "full_attention")
LFM2_MLP = ("w1", "w3", "w2")


def lfm2_blocks(config: ArchConfig, mlps: list[MlpSpec | MoeSpec]) -> list[BlockSpec]:
    """Return one block per MLP or experts, with a short convolution or attention by layer type."""
    norms = pre_norms(config, ("operator_norm", "ffn_norm"))
    qk_norm = QkNorm(("q_layernorm", "k_layernorm"))
    mixers: dict[str, Mixer] = {
        "conv": _convolution(config),
        "full_attention": attention(config, output="out_proj", qk_norm=qk_norm),
    }
    kinds = _layer_types(config.raw)
    return [
        BlockSpec(norms, (mixers[kind],), dense) for kind, dense in zip(kinds, mlps, strict=True)
    ]


def _convolution(config: ArchConfig) -> ShortConvolutionSpec:
    """Return the gated short convolution of a layer."""
    hidden, bias = config.hidden_size, config.flag("conv_bias")
    taps = config.whole("conv_L_cache", _MAX_TAPS, 3)
    if taps == 1:
        raise ModelError(
            "config.json: conv_L_cache is 1: the convolutions look back on nothing.", AGAIN
        )
    return ShortConvolutionSpec(
        prefix="conv.conv",
        state=StateShape(0, 0, 0, 0, hidden, taps),
        in_proj=linear("in_proj", "conv.in_proj", 3 * hidden, hidden, bias),
        output=linear("output", "conv.out_proj", hidden, hidden, bias),
        has_bias=bias,
    )


def _blocks(config: ArchConfig) -> list[BlockSpec]:
    """Return blocks with a dense MLP in each layer."""
    dense = mlp(config, "feed_forward", names=LFM2_MLP)
    return lfm2_blocks(config, [dense] * config.num_layers)


LFM2_DEFAULTS = {"rms_norm_eps": 1e-5, "rope_theta": 1e6, "tie_word_embeddings": True}
LFM2_KEYS = {"rms_norm_eps": "norm_eps", "tie_word_embeddings": "tie_embedding"}


def _normalize(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Resolve the MLP width, which files state before its adjustment."""
    return {**raw, "intermediate_size": _intermediate_size(raw)}


def _intermediate_size(raw: Mapping[str, Any]) -> int:
    """Return the width of MLPs: two thirds of what a file says, rounded up."""
    key = "intermediate_size" if raw.get("block_ff_dim") is None else "block_ff_dim"
    width = whole(raw, key, 2 * MAX_INTERMEDIATE, 12288)
    if not raw.get("block_auto_adjust_ff_dim", True):
        return width
    width = 2 * width // 3
    factor = raw.get("block_ffn_dim_multiplier", 1.0)
    if factor is None:
        return width
    width = int((positive(raw, "block_ffn_dim_multiplier", 1.0) or 1.0) * width)
    multiple = whole(raw, "block_multiple_of", 2 * MAX_INTERMEDIATE, 256)
    return -(-width // multiple) * multiple


def _layer_types(raw: Mapping[str, Any]) -> list[str]:
    """Return the type of each layer; old files list those with attention.

    Raises:
        ModelError: There isn't one for each layer, or it is unknown.
    """
    count = whole(raw, "num_hidden_layers", MAX_LAYERS, 32)
    kinds, attending = raw.get("layer_types"), raw.get("full_attn_idxs")
    if kinds is None and attending is None:
        return ["full_attention"] * count
    if kinds is not None:
        if isinstance(kinds, list) and len(kinds) == count and all(k in _KINDS for k in kinds):
            return kinds
        raise ModelError(
            tr(
                "config.json: layer_types isn't a list of {0} words, conv or full_attention.", count
            ),
            "Layers of other kinds aren't supported in this family: download config.json again.",
        )
    if not isinstance(attending, list) or not all(
        isinstance(index, int) and not isinstance(index, bool) and 0 <= index < count
        for index in attending
    ):
        raise ModelError(
            tr("config.json: full_attn_idxs isn't a list of layers from 0 to {0}.", count - 1),
            AGAIN,
        )
    return ["full_attention" if index in attending else "conv" for index in range(count)]


def _gguf_config(gguf: Gguf, raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return layer types: a layer with 0 KV heads has a convolution."""
    attending = "sliding_attention" if raw.get("sliding_window") else "full_attention"
    kinds = {"attention": attending, "mamba": "conv"}
    return {"layer_types": [kinds[mixer] for mixer in gguf_mixer_types(gguf)] or None}


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
    _blocks,
    defaults=LFM2_DEFAULTS,
    keys=LFM2_KEYS,
    normalize=_normalize,
    gguf=LFM2_GGUF,
)
