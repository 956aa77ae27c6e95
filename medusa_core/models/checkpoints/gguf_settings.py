"""What single architectures' `config.json` would say beyond what all GGUF files say alike.

Where llama.cpp knows a number by heart, a file doesn't hold it: it stands here.

Source: llama.cpp's conversion scripts and model loaders, and the configurations that publishers
gave their models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.system.files.gguf import Gguf

Settings = dict[str, Any]

_MOST_LAYERS = 1 << 10
_LONG, _SHORT = "rope_factors_long.weight", "rope_factors_short.weight"
_GEMMA2_27B_LAYERS, _GEMMA3_27B_LAYERS = 46, 62


def settings_of(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    """What an architecture adds to the sizes that are known of a file, or puts in their place.

    Raises:
        ModelError: It has something that isn't supported.
    """
    make = _SETTINGS.get(gguf.architecture)
    return {} if make is None else make(gguf, known)


def _llama(_: Gguf, known: Mapping[str, Any]) -> Settings:
    if _positive(known.get("sliding_window")):
        return {"model_type": "mistral"}
    return {"sliding_window": None}


def _mistral3(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    """Ministral 3 where queries grow with their position; else Mistral Small."""
    grows = gguf.of_model("attention.temperature_scale")
    scaling = known.get("rope_scaling")
    if not isinstance(grows, int | float) or not isinstance(scaling, dict):
        return {}
    more = {"mscale": 1.0, "llama_4_scaling_beta": plain_float(grows)}
    log_mul = gguf.of_model("rope.scaling.yarn_log_multiplier")
    if isinstance(log_mul, int | float):
        more["mscale_all_dim"] = plain_float(log_mul)
    return {"model_type": "ministral3", "rope_scaling": scaling | more}


def _qwen3moe(gguf: Gguf, _: Mapping[str, Any]) -> Settings:
    return {
        "num_experts": gguf.of_model("expert_count"),
        "num_experts_per_tok": gguf.of_model("expert_used_count"),
        "moe_intermediate_size": gguf.of_model("expert_feed_forward_length"),
        "norm_topk_prob": True,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }


def _gemma2(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    return {
        "sliding_window": known.get("sliding_window", 4096),
        "attn_logit_softcapping": known.get("attn_logit_softcapping", 50.0),
        "final_logit_softcapping": known.get("final_logit_softcapping", 30.0),
        "layer_types": _layer_types(gguf, known, every=2),
        "query_pre_attn_scalar": _gemma_scalar(known, _GEMMA2_27B_LAYERS),
    }


def _gemma3(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    local = gguf.of_model("rope.freq_base_swa")
    return {
        "rope_theta": known.get("rope_theta", 1e6),
        "rope_local_base_freq": plain_float(local) if isinstance(local, int | float) else 10000.0,
        "layer_types": _layer_types(gguf, known, every=6),
        "query_pre_attn_scalar": _gemma_scalar(known, _GEMMA3_27B_LAYERS),
    }


def _gemma_scalar(known: Mapping[str, Any], layers_of_largest: int) -> int | None:
    """What scores are divided by the root of: head_dim, but for the largest model."""
    if known.get("num_hidden_layers") == layers_of_largest:
        return width_of_heads(known)
    size = known.get("head_dim")
    return size if isinstance(size, int) and size > 0 else None


def width_of_heads(known: Mapping[str, Any]) -> int | None:
    """The width of a head where heads together are as wide as the model."""
    hidden, heads = known.get("hidden_size"), known.get("num_attention_heads")
    if not isinstance(hidden, int) or not isinstance(heads, int) or heads < 1:
        return None
    return hidden // heads


def _phi3(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    settings: Settings = {
        "sliding_window": known.get("sliding_window") or None,
        "partial_rotary_factor": _turned_part(gguf, known),
    }
    if not gguf.has_vector(_LONG) or not gguf.has_vector(_SHORT):
        return settings
    old = gguf.of_model("rope.scaling.original_context_length")
    longer, shorter = gguf.vector(_LONG), gguf.vector(_SHORT)
    return settings | {
        "original_max_position_embeddings": old,
        "rope_scaling": {
            "rope_type": "longrope",
            "long_factor": [plain_float(factor) for factor in longer],
            "short_factor": [plain_float(factor) for factor in shorter],
            "original_max_position_embeddings": old,
        },
    }


def _turned_part(gguf: Gguf, known: Mapping[str, Any]) -> float:
    """The part of every head that rotary embedding turns."""
    turned, size = gguf.of_model("rope.dimension_count"), known.get("head_dim")
    if not isinstance(turned, int) or not isinstance(size, int) or not 0 < turned < size:
        return 1.0
    return turned / size


def _granite(gguf: Gguf, _: Mapping[str, Any]) -> Settings:
    if gguf.of_model("rope.scaling.finetuned") is False:  # llama.cpp's switch for all turning
        raise ModelError(
            "This Granite doesn't turn queries and keys by position, which isn't supported.",
            "Choose Granite 3, or a Granite 4 that does.",
        )
    return {}


def _olmo2(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    """OLMo 3 is stored as OLMo 2 with windows."""
    if not _positive(known.get("sliding_window")):
        return {"sliding_window": None}
    return {"model_type": "olmo3", "layer_types": _layer_types(gguf, known, every=4)}


def _gpt_oss(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    settings: Settings = {
        "num_local_experts": gguf.of_model("expert_count"),
        "num_experts_per_tok": gguf.of_model("expert_used_count"),
        "intermediate_size": gguf.of_model("expert_feed_forward_length"),
        "sliding_window": known.get("sliding_window", 128),
        "layer_types": _layer_types(gguf, known, every=2),
        "swiglu_limit": 7.0,
    }
    if isinstance(scaling := known.get("rope_scaling"), dict):
        usual = {"beta_fast": 32.0, "beta_slow": 1.0, "truncate": False}
        settings["rope_scaling"] = usual | scaling
    return settings


def _lfm2(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    """A file has the width of the MLP as it is; `config.json` one that is still to be adjusted."""
    settings = {
        "norm_eps": known.get("rms_norm_eps"),
        "conv_L_cache": gguf.of_model("shortconv.l_cache"),
        "conv_bias": "blk.0.shortconv.in_proj.bias" in gguf.tensors,
        "layer_types": _stateful_types(gguf, known),
        "block_auto_adjust_ff_dim": False,
    }
    if gguf.architecture != "lfm2moe":
        return settings
    return settings | {
        "num_experts": gguf.of_model("expert_count"),
        "num_experts_per_tok": gguf.of_model("expert_used_count"),
        "moe_intermediate_size": gguf.of_model("expert_feed_forward_length"),
        "num_dense_layers": gguf.of_model("leading_dense_block_count") or 0,
        "norm_topk_prob": True,
        "use_expert_bias": any(name.endswith("exp_probs_b.bias") for name in gguf.tensors),
    }


def _stateful_types(gguf: Gguf, known: Mapping[str, Any]) -> list[str] | None:
    """The kinds of all layers: those without heads of keys hold a state."""
    count = known.get("num_hidden_layers")
    if not isinstance(count, int) or not 0 < count <= _MOST_LAYERS:
        return None
    window = "sliding_attention" if _positive(known.get("sliding_window")) else "full_attention"
    heads = list(gguf.numbers(f"{gguf.architecture}.attention.head_count_kv"))
    if len(heads) != count:
        return [window] * count
    return [window if one else "conv" for one in heads]


_SETTINGS: dict[str, Callable[[Gguf, Mapping[str, Any]], Settings]] = {
    "llama": _llama,
    "mistral3": _mistral3,
    "qwen3moe": _qwen3moe,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "phi3": _phi3,
    "granite": _granite,
    "olmo2": _olmo2,
    "gpt-oss": _gpt_oss,
    **dict.fromkeys(("lfm2", "lfm2moe"), _lfm2),
}


def _layer_types(gguf: Gguf, known: Mapping[str, Any], every: int) -> list[str] | None:
    """The kinds of all layers: as the file says, else each `every`-th sees all."""
    count = known.get("num_hidden_layers")
    if not isinstance(count, int) or not 0 < count <= _MOST_LAYERS:
        return None
    pattern = gguf.of_model("attention.sliding_window_pattern")
    if isinstance(pattern, int) and 0 < pattern <= _MOST_LAYERS:
        every = pattern
    marks = list(gguf.numbers(f"{gguf.architecture}.attention.sliding_window_pattern"))
    if len(marks) != count:
        marks = [(index + 1) % every != 0 for index in range(count)]
    return ["sliding_attention" if mark else "full_attention" for mark in marks]


def plain_float(number: float) -> float:
    """A number without the digits that float32 doesn't have."""
    return float(f"{number:.7g}")


def _positive(value: object) -> bool:
    return isinstance(value, int) and value > 0
