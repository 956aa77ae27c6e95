"""What single architectures' `config.json` would say beyond what all GGUF files say alike.

Where llama.cpp knows a number by heart, a file doesn't hold it: it stands here.

Source: llama.cpp's conversion scripts and model loaders, and the configurations that publishers
gave their models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from medusa_core.errors import ModelError
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.system.files.gguf import Gguf

Settings = dict[str, Any]

_MOST_LAYERS = 1 << 10
_LONG, _SHORT = "rope_factors_long.weight", "rope_factors_short.weight"
_GEMMA2_27B_LAYERS, _GEMMA3_27B_LAYERS = 46, 62


def settings_of(gguf: Gguf, known: Mapping[str, Any], architecture: str = "") -> Settings:
    """What an architecture adds to the sizes that are known of a file, or puts in their place.

    Args:
        gguf: The file.
        known: Its sizes.
        architecture: Whose blocks it has, where that isn't its own.

    Raises:
        ModelError: It has something that isn't supported.
    """
    make = _SETTINGS.get(architecture or gguf.architecture)
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


def _gemma4(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    """Sizes of layers with a window in the usual places; of those that see all beside them."""
    kinds = _layer_types(gguf, known, every=6) or []
    local_dim, turned = (
        gguf.of_model(key) for key in ("attention.key_length_swa", "rope.dimension_count_swa")
    )
    if turned is not None and turned != local_dim:
        raise ModelError(
            "Of this Gemma 4 layers with a window turn a part of a head, which isn't supported.",
            "Choose another file of this model.",
        )
    shared = gguf.of_model("attention.shared_kv_layers") or 0
    own = [index for index, kind in enumerate(kinds) if kind == "full_attention"]
    heads = _of_kinds(gguf, "attention.head_count_kv", kinds)
    table = gguf.tensors.get("per_layer_token_embd.weight")
    local_theta = gguf.of_model("rope.freq_base_swa")
    scaling = known.get("rope_scaling") or {"rope_type": "default"}
    return {
        "head_dim": local_dim or known.get("head_dim"),
        "global_head_dim": known.get("head_dim"),
        "num_key_value_heads": heads["sliding_attention"],
        "num_global_key_value_heads": heads["full_attention"],
        "attention_k_eq_v": any(
            f"blk.{index}.attn_k.weight" in gguf.tensors
            and f"blk.{index}.attn_v.weight" not in gguf.tensors
            for index in own
        ),
        "num_kv_shared_layers": shared,
        "layer_types": kinds or None,
        "hidden_size_per_layer_input": gguf.of_model("embedding_length_per_layer_input") or 0,
        "vocab_size_per_layer_input": None if table is None else table.shape[0],
        "rope_scaling": None,
        "rope_parameters": {
            "full_attention": {**scaling, "rope_theta": known.get("rope_theta", 1e6)},
            "sliding_attention": {
                "rope_theta": plain_float(local_theta)
                if isinstance(local_theta, int | float)
                else 10000.0
            },
        },
        "enable_moe_block": bool(gguf.of_model("expert_count")),
        "num_experts": gguf.of_model("expert_count"),
        "top_k_experts": gguf.of_model("expert_used_count"),
        "moe_intermediate_size": gguf.of_model("expert_feed_forward_length"),
        **_gemma4_widths(gguf, known, shared),
    }


def _of_kinds(gguf: Gguf, key: str, kinds: list[str]) -> dict[str, object]:
    """A number that layers of a kind have alike, by the kinds."""
    value = gguf.of_model(key)
    found: dict[str, object] = dict.fromkeys(("sliding_attention", "full_attention"), value)
    if isinstance(value, int):
        return found
    numbers = list(gguf.numbers(f"{gguf.architecture}.{key}"))
    for kind in found:
        of_kind = {one for one, its in zip(numbers, kinds, strict=False) if its == kind}
        if len(numbers) != len(kinds) or len(of_kind) > 1:
            raise _layers_differ()
        found[kind] = next(iter(of_kind), None)
    return found


def _gemma4_widths(gguf: Gguf, known: Mapping[str, Any], shared: object) -> Settings:
    """One width for all MLPs, or twice that in layers that share keys and values."""
    if "intermediate_size" in known:
        return {}
    widths = list(gguf.numbers(f"{gguf.architecture}.feed_forward_length"))
    num_own = len(widths) - shared if isinstance(shared, int) else 0
    if not widths or widths != [
        widths[0] * (1 if index < num_own else 2) for index in range(len(widths))
    ]:
        raise _layers_differ()
    return {"intermediate_size": widths[0], "use_double_wide_mlp": True}


def _layers_differ() -> ModelError:
    return ModelError(
        "The layers of this model differ in their sizes.", "Choose one whose layers are alike."
    )


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


def _exaone4(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    """The small one has no windows, and turns all layers."""
    if not _positive(known.get("sliding_window")):
        count = known.get("num_hidden_layers")
        count = count if isinstance(count, int) and 0 < count <= _MOST_LAYERS else 0
        return {"sliding_window": None, "layer_types": ["full_attention"] * count}
    return {"layer_types": _layer_types(gguf, known, every=4)}


def _seed_oss(gguf: Gguf, _: Mapping[str, Any]) -> Settings:
    return {"attention_out_bias": "blk.0.attn_output.bias" in gguf.tensors}


def _ernie(_: Gguf, known: Mapping[str, Any]) -> Settings:
    return {"use_bias": known.get("attention_bias")}


def _glm4(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    return {"partial_rotary_factor": _turned_part(gguf, known)}


def _glm4moe(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    scale = gguf.of_model("expert_weights_scale")
    return {
        "n_routed_experts": gguf.of_model("expert_count"),
        "num_experts_per_tok": gguf.of_model("expert_used_count"),
        "moe_intermediate_size": gguf.of_model("expert_feed_forward_length"),
        "n_shared_experts": gguf.of_model("expert_shared_count"),
        "first_k_dense_replace": gguf.of_model("leading_dense_block_count"),
        "routed_scaling_factor": plain_float(scale) if isinstance(scale, float) else None,
        "norm_topk_prob": gguf.of_model("expert_weights_norm"),
        "n_group": gguf.of_model("expert_group_count"),
        "attention_bias": any(name.endswith(".attn_q.bias") for name in gguf.tensors),
        "use_qk_norm": any(name.endswith(".attn_q_norm.weight") for name in gguf.tensors),
        "partial_rotary_factor": _turned_part(gguf, known),
    }


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
    attends = "sliding_attention" if _positive(known.get("sliding_window")) else "full_attention"
    mixers = _mixers(gguf) or []
    settings: Settings = {
        "norm_eps": known.get("rms_norm_eps"),
        "conv_L_cache": gguf.of_model("shortconv.l_cache"),
        "conv_bias": "blk.0.shortconv.in_proj.bias" in gguf.tensors,
        "layer_types": [attends if one == "attention" else "conv" for one in mixers] or None,
        "block_auto_adjust_ff_dim": False,
    }
    if gguf.architecture != "lfm2moe":
        return settings
    return settings | {
        **_qwen3moe(gguf, known),
        "num_dense_layers": gguf.of_model("leading_dense_block_count") or 0,
        "use_expert_bias": any(name.endswith("exp_probs_b.bias") for name in gguf.tensors),
    }


def _mamba(gguf: Gguf) -> Settings:
    """The sizes of Mamba-2 layers, and biases wherever a layer has them."""
    settings: Settings = {
        "mamba_n_heads": gguf.of_model("ssm.time_step_rank"),
        "mamba_n_groups": gguf.of_model("ssm.group_count"),
        "mamba_d_state": gguf.of_model("ssm.state_size"),
        "mamba_d_ssm": gguf.of_model("ssm.inner_size"),
        "mamba_d_conv": gguf.of_model("ssm.conv_kernel"),
    }
    biases = {
        "attention_bias": "attn_q",
        "mlp_bias": "ffn_up",
        "mamba_conv_bias": "ssm_conv1d",
        "mamba_proj_bias": "ssm_in",
    }
    for key, part in biases.items():
        settings[key] = any(name.endswith(f".{part}.bias") for name in gguf.tensors)
    return settings


def _granitehybrid(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    shared, experts = known.get("intermediate_size"), gguf.of_model("expert_count")
    if experts:
        shared = gguf.of_model("expert_shared_feed_forward_length")
    turns = gguf.of_model("rope.scaling.finetuned") is not False
    return _mamba(gguf) | {
        "layer_types": _mixers(gguf),
        "shared_intermediate_size": shared,
        "num_local_experts": experts,
        "num_experts_per_tok": gguf.of_model("expert_used_count"),
        "position_embedding_type": "rope" if turns else "nope",
        "fuses_gate": False,
    }


def _mixers(gguf: Gguf) -> list[str]:
    """What mixes the rows of each layer: attention where it has heads of keys."""
    count, heads = num_layers(gguf), list(_each(gguf, "attention.head_count_kv"))
    heads = heads * count if len(heads) == 1 else heads[:count]
    return ["attention" if number else "mamba" for number in heads]


def _falcon_h1(gguf: Gguf, _: Mapping[str, Any]) -> Settings:
    """Its factors are in its weights."""
    return _mamba(gguf) | {
        "projectors_bias": any(name.endswith(".ssm_out.bias") for name in gguf.tensors),
        "mamba_rms_norm": any(name.endswith(".ssm_norm.weight") for name in gguf.tensors),
        "mamba_norm_before_gate": False,
    }


def _nemotron_h(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    """MLPs have a width, attention heads of keys; what has neither is a Mamba-2 layer."""
    mlp = "moe" if gguf.of_model("expert_count") else "mlp"
    widths, kinds = list(_each(gguf, "feed_forward_length")), _mixers(gguf)
    if len(widths) >= len(kinds):
        kinds = [mlp if wide else one for wide, one in zip(widths, kinds, strict=False)]
    eps = known.get("rms_norm_eps", gguf.of_model("attention.layer_norm_epsilon"))
    sizes = _mamba(gguf)
    heads, inner = sizes["mamba_n_heads"], sizes["mamba_d_ssm"]
    fits = isinstance(heads, int) and isinstance(inner, int) and heads > 0
    scale = gguf.of_model("expert_weights_scale")
    return sizes | {
        "layers_block_type": kinds,
        "mamba_d_head": inner // heads if fits else None,
        "rms_norm_eps": plain_float(eps) if isinstance(eps, float) else None,
        "hidden_act": "relu2",
        "partial_rotary_factor": 1.0,  # nothing is turned, whatever the file says
        "n_routed_experts": gguf.of_model("expert_count"),
        "num_experts_per_tok": gguf.of_model("expert_used_count"),
        "moe_intermediate_size": gguf.of_model("expert_feed_forward_length"),
        "moe_shared_expert_intermediate_size": gguf.of_model("expert_shared_feed_forward_length"),
        "norm_topk_prob": gguf.of_model("expert_weights_norm"),
        "routed_scaling_factor": plain_float(scale) if isinstance(scale, float) else None,
        "n_group": gguf.of_model("expert_group_count"),
        "moe_latent_size": gguf.of_model("moe_latent_size"),
    }


def _each(gguf: Gguf, key: str) -> Iterator[float]:
    """A number of the model for each layer, or one for all."""
    value = gguf.of_model(key)
    if isinstance(value, int):
        yield value
    else:
        yield from gguf.numbers(f"{gguf.architecture}.{key}")


def _qwen35(gguf: Gguf, known: Mapping[str, Any]) -> Settings:
    """The sizes of gated delta nets, and which layers are some."""
    heads, inner = gguf.of_model("ssm.time_step_rank"), gguf.of_model("ssm.inner_size")
    count, groups = num_layers(gguf), gguf.of_model("ssm.group_count")
    marks = list(gguf.numbers(f"{gguf.architecture}.attention.recurrent_layers"))[:count]
    every = gguf.of_model("full_attention_interval")
    tiles = [
        index
        for index in range(count)
        if (tensor := gguf.tensors.get(f"blk.{index}.ssm_out.weight")) is not None
        and tensor.kind in BLOCK_SIZES
        and heads != groups
    ]
    settings: Settings = {
        "num_hidden_layers": count,
        "linear_num_key_heads": groups,
        "linear_num_value_heads": heads,
        "linear_key_head_dim": gguf.of_model("ssm.state_size"),
        "linear_conv_kernel_dim": gguf.of_model("ssm.conv_kernel"),
        "partial_rotary_factor": _turned_part(gguf, known),
        "attention_bias": any(name.endswith(".attn_q.bias") for name in gguf.tensors),
        "full_attention_interval": every,
        "tiled_outputs": tiles,
        "num_experts": gguf.of_model("expert_count"),
        "num_experts_per_tok": gguf.of_model("expert_used_count"),
        "moe_intermediate_size": gguf.of_model("expert_feed_forward_length"),
        "shared_expert_intermediate_size": gguf.of_model("expert_shared_feed_forward_length"),
    }
    if marks:
        kinds = ("full_attention", "linear_attention")
        settings["layer_types"] = [kinds[bool(mark)] for mark in marks]
    if isinstance(heads, int) and isinstance(inner, int) and heads > 0:
        settings["linear_value_head_dim"] = inner // heads
    return settings


def num_layers(gguf: Gguf) -> int:
    """Layers of the model itself, without those that only guess; 0 where a file doesn't say."""
    count, guessing = gguf.of_model("block_count"), gguf.of_model("nextn_predict_layers") or 0
    if not isinstance(count, int) or not isinstance(guessing, int) or count > _MOST_LAYERS:
        return 0
    return max(0, count - guessing)


_SETTINGS: dict[str, Callable[[Gguf, Mapping[str, Any]], Settings]] = {
    "llama": _llama,
    "mistral3": _mistral3,
    "qwen3moe": _qwen3moe,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma4": _gemma4,
    "phi3": _phi3,
    "granite": _granite,
    "olmo2": _olmo2,
    "exaone4": _exaone4,
    "seed_oss": _seed_oss,
    "ernie4_5": _ernie,
    "glm4": _glm4,
    "glm4moe": _glm4moe,
    "gpt-oss": _gpt_oss,
    **dict.fromkeys(("lfm2", "lfm2moe"), _lfm2),
    **dict.fromkeys(("qwen35", "qwen35moe"), _qwen35),
    "granitehybrid": _granitehybrid,
    "falcon-h1": _falcon_h1,
    **dict.fromkeys(("nemotron_h", "nemotron_h_moe"), _nemotron_h),
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
