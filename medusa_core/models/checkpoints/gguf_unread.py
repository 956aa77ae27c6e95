"""Refuse GGUF metadata keys that change a model's output and aren't implemented.

Ignoring them would silently change the text. A key is accepted at the value that changes nothing,
because some programs write all keys that they know. Keys that aren't listed are implemented, don't
affect the output (lengths, labels, images), or are read by no known program.

Source: the keys of llama.cpp's `llama-arch.cpp`, and what its loaders do with them.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from medusa_core.models.gguf_architecture import GgufArchitecture
from medusa_core.system.files.gguf import Gguf
from medusa_core.system.files.gguf_header import Value

_ONE = (1,)
# Keys without the architecture's name, and the neutral values other than 0.
_CHANGING: Mapping[str, tuple[float, ...]] = {
    **dict.fromkeys(
        (
            *("use_parallel_residual", "swin_norm", "rescale_every_n_layers", "token_shift_count"),
            *("time_mix_extra_dim", "time_decay_extra_dim", "wkv.head_size", "kda.head_dim"),
            *("attn_res.block_size", "activation.situ_beta", "activation.situ_linear_beta"),
            *("swiglu_clamp_exp", "swiglu_clamp_shexp", "expert_chunk_feed_forward_length"),
            *("expert_latent_length", "experts_per_group", "router_logit_softcapping"),
            *("adapters.count", "skip_loop_final_norm", "hrm.h_cycles", "hrm.l_cycles"),
            *("hrm.layers_per_stack", "hrm.prefix_lm", "hyper_connection.count"),
            *("hash_layer_count", "ple.layers", "ssm.dt_b_c_rms", "decoder_block_count"),
            *("attention.clamp_kqv", "attention.max_alibi_bias", "attention.group_norm_groups"),
            *("attention.q_lora_rank", "attention.kv_lora_rank", "attention.kv_lora_rank_swa"),
            *("attention.decay_lora_rank", "attention.iclr_lora_rank"),
            *("attention.value_residual_mix_lora_rank", "attention.gate_lora_rank"),
            *("attention.output_lora_rank", "attention.relative_buckets_count"),
            *("attention.rope_pattern", "attention.key_length_mla", "attention.value_length_mla"),
            *("attention.key_length_mla_swa", "attention.value_length_mla_swa"),
            *("attention.indexer.head_count", "attention.indexer.top_k"),
            *("attention.compress_rope_freq_base", "attention.compress_ratios"),
            *("attn_logit_softcapping", "final_logit_softcapping"),
            *("attention.temperature_scale", "attention.shared_kv_layers"),
            "embedding_length_per_layer_input",
        ),
        (),
    ),
    **dict.fromkeys(
        (
            *("expert_group_scale", "expert_group_used_count", "moe_every_n_layers"),
            *("interleave_moe_layer_step", "num_loops", "attention.output_group_count"),
            *("attention.output_scale", "attention.value_scale", "rope.scaling.alpha"),
            *("rope.scaling.attn_factor", "embedding_scale", "residual_scale", "logit_scale"),
            *("attention.scale", "attention.sliding_window_pattern"),
        ),
        _ONE,
    ),
    "rope.scaling.yarn_ext_factor": (1, -1),
    "expert_gating_func": (2,),
    "attention.value_length": (),
    "attention.key_length_swa": (),
    "attention.value_length_swa": (),
    "rope.dimension_count_swa": (),
    "rope.freq_base_swa": (),
}
_BASE = 10000.0  # where a file doesn't say


def unread_key(gguf: Gguf, architecture: GgufArchitecture, head_dim: object) -> str:
    """Return the first unimplemented key that would change the output; empty if there is none.

    Args:
        architecture: Conventions of its architecture.
        head_dim: Size of an attention head's keys; None if unknown.
    """
    read, repeated = architecture.reads.union(architecture.keys.values()), _repeated(gguf, head_dim)
    if not architecture.sigmoid_router:
        read |= {"expert_gating_func"}
    if architecture.full_attention_every:
        read |= {"attention.sliding_window_pattern"}
    for key, value in gguf.entries.items():
        name = key.removeprefix(f"{gguf.architecture}.")
        neutral = _CHANGING.get(name) if name != key else None
        if neutral is None or name in read:
            continue
        if any(one not in (0, *neutral, repeated.get(name)) for one in _numbers(value)):
            return name
    return ""


def _repeated(gguf: Gguf, head_dim: object) -> dict[str, object]:
    """Return the value at which each key is redundant, because other keys imply it."""
    base = gguf.of_model("rope.freq_base") or _BASE
    windows = gguf.of_model("attention.sliding_window")
    return {
        "attention.value_length": head_dim,
        "attention.key_length_swa": head_dim,
        "attention.value_length_swa": head_dim,
        "rope.dimension_count_swa": gguf.of_model("rope.dimension_count") or head_dim,
        "rope.freq_base_swa": base if windows else gguf.of_model("rope.freq_base_swa"),
    }


def _numbers(value: Value) -> set[object]:
    """Return the distinct numbers of a metadata value; empty for strings."""
    if isinstance(value, array):
        return set(value)
    return {value} if isinstance(value, int | float) else set()
