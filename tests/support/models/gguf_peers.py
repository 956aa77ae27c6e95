"""Models of transformers whose sizes fit GGUF files."""

from collections.abc import Callable
from typing import Any

from transformers import (
    Ernie4_5Config,
    Exaone4Config,
    FalconH1Config,
    Gemma2Config,
    Gemma3TextConfig,
    Gemma4TextConfig,
    GemmaConfig,
    Glm4Config,
    Glm4MoeConfig,
    GptOssConfig,
    GraniteConfig,
    GraniteMoeHybridConfig,
    HunYuanDenseV1Config,
    Lfm2Config,
    Lfm2MoeConfig,
    LlamaConfig,
    Mamba2Config,
    Ministral3Config,
    MistralConfig,
    NemotronHConfig,
    Olmo2Config,
    Olmo3Config,
    Phi3Config,
    PreTrainedModel,
    Qwen2Config,
    Qwen3_5MoeTextConfig,
    Qwen3_5TextConfig,
    Qwen3Config,
    Qwen3MoeConfig,
    SeedOssConfig,
    SmolLM3Config,
)

from tests.support.models.peers import (
    DELTA_NET,
    FALCON_H1,
    GLM4_MOE,
    GRANITE4_HYBRID,
    LFM2,
    LFM2_MOE,
    LLAMA3_ROPE,
    MAMBA2,
    NEMOTRON_H,
    NEMOTRON_H_EXPERTS,
    SHARED_EXPERT,
    SIZES,
    make_peer,
)

GEMMA = {**SIZES, "num_hidden_layers": 7, "pad_token_id": 0, "head_dim": 16}
GEMMA4 = {
    **GEMMA,
    "global_head_dim": 32,
    "sliding_window": 24,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"] * 2
    + ["full_attention"],
    "final_logit_softcapping": 30.0,
}
# llama.cpp has one size of keys' heads and values'; blocks are 32 numbers wide.
WIDE_STATES = DELTA_NET | {
    "linear_key_head_dim": 32,
    "linear_value_head_dim": 32,
    "linear_num_value_heads": 6,
}
YARN = {
    "rope_type": "yarn",
    "rope_theta": 10000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 128,
    "beta_fast": 32.0,
    "beta_slow": 1.0,
}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10000.0,
    "partial_rotary_factor": 0.75,
    "original_max_position_embeddings": 32,
    "short_factor": [1.0, 1.125, 1.25],
    "long_factor": [1.0, 4.0, 16.0],
}
# What a file can't say, and llama.cpp knows by heart, is as the publishers have it.
CONFIGS: dict[str, Callable[[], Any]] = {
    "llama": lambda: LlamaConfig(**SIZES, attention_bias=True, mlp_bias=True),
    "llama 3, tied": lambda: LlamaConfig(
        **SIZES, rope_parameters=LLAMA3_ROPE, tie_word_embeddings=True
    ),
    "mistral nemo": lambda: MistralConfig(**SIZES, sliding_window=None, head_dim=16),
    "qwen2": lambda: Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen3": lambda: Qwen3Config(**SIZES, head_dim=16),
    "gemma2": lambda: Gemma2Config(**GEMMA, query_pre_attn_scalar=16, sliding_window=24),
    "gemma3": lambda: Gemma3TextConfig(**GEMMA, query_pre_attn_scalar=16, sliding_window=24),
    "gemma3, longer": lambda: Gemma3TextConfig(
        **GEMMA,
        query_pre_attn_scalar=16,
        sliding_window=16,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    ),
    "gemma4": lambda: Gemma4TextConfig(
        **GEMMA4,
        num_kv_shared_layers=2,
        use_double_wide_mlp=True,
        vocab_size_per_layer_input=320,
        hidden_size_per_layer_input=32,
    ),
    "gemma4, keys as values": lambda: Gemma4TextConfig(
        **GEMMA4,
        hidden_size_per_layer_input=0,
        attention_k_eq_v=True,
        num_global_key_value_heads=1,
    ),
    "gemma4, experts": lambda: Gemma4TextConfig(
        **GEMMA4,
        hidden_size_per_layer_input=0,
        enable_moe_block=True,
        num_experts=6,
        top_k_experts=2,
        moe_intermediate_size=32,
    ),
    "granite": lambda: GraniteConfig(
        **SIZES,
        attention_multiplier=0.2,
        embedding_multiplier=3.0,
        residual_multiplier=0.4,
        logits_scaling=2.0,
        tie_word_embeddings=True,
    ),
    "smollm3": lambda: SmolLM3Config(**{**SIZES, "num_hidden_layers": 5}, pad_token_id=0),
    "olmo2": lambda: Olmo2Config(**SIZES),
    "olmo3": lambda: Olmo3Config(**{**SIZES, "num_hidden_layers": 5}, sliding_window=24),
    "phi3": lambda: Phi3Config(**SIZES, pad_token_id=0, sliding_window=None),
    "phi4, longer": lambda: Phi3Config(
        **SIZES,
        pad_token_id=0,
        sliding_window=None,
        original_max_position_embeddings=32,
        tie_word_embeddings=True,
        rope_parameters=LONGROPE,
    ),
    "exaone4": lambda: Exaone4Config(
        **SIZES, sliding_window=None, layer_types=["full_attention"] * 2, tie_word_embeddings=True
    ),
    "exaone4, longer": lambda: Exaone4Config(
        **{**SIZES, "num_hidden_layers": 64},  # llama.cpp: only then it has windows
        sliding_window=24,
        sliding_window_pattern=4,
        rope_parameters=LLAMA3_ROPE,
    ),
    "seed_oss": lambda: SeedOssConfig(**SIZES, head_dim=16, pad_token_id=0),
    "hunyuan-dense": lambda: HunYuanDenseV1Config(
        **SIZES,
        head_dim=16,
        rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "alpha": 9.0, "factor": 1.0},
        tie_word_embeddings=True,
    ),
    "ernie4_5": lambda: Ernie4_5Config(**SIZES, head_dim=16),
    "glm4": lambda: Glm4Config(**SIZES, head_dim=16, pad_token_id=0),
    "gemma": lambda: GemmaConfig(**SIZES, head_dim=16),
    "qwen3moe": lambda: Qwen3MoeConfig(
        **SIZES,
        head_dim=16,
        num_experts=6,
        num_experts_per_tok=2,
        moe_intermediate_size=32,
        norm_topk_prob=True,
    ),
    "qwen35": lambda: Qwen3_5TextConfig(**SIZES | WIDE_STATES),
    "qwen35, tied, other layers": lambda: Qwen3_5TextConfig(
        **SIZES | WIDE_STATES | {"linear_num_key_heads": 1},
        layer_types=["full_attention", "linear_attention", "linear_attention", "full_attention"],
        tie_word_embeddings=True,
    ),
    "qwen35moe": lambda: Qwen3_5MoeTextConfig(**SHARED_EXPERT | WIDE_STATES),
    "ministral3": lambda: Ministral3Config(
        **SIZES,
        head_dim=16,
        sliding_window=None,
        rope_parameters=YARN | {"mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1},
    ),
    "granite hybrid": lambda: GraniteMoeHybridConfig(**GRANITE4_HYBRID),
    "granite hybrid with experts": lambda: GraniteMoeHybridConfig(
        **{
            **GRANITE4_HYBRID,
            "intermediate_size": 32,
            "shared_intermediate_size": 64,
            "num_local_experts": 6,
            "num_experts_per_tok": 2,
        },
    ),
    "falcon-h1": lambda: FalconH1Config(**FALCON_H1, tie_word_embeddings=False),
    "falcon-h1 with norms": lambda: FalconH1Config(
        **FALCON_H1, mamba_rms_norm=True, mamba_norm_before_gate=False
    ),
    "mamba2": lambda: Mamba2Config(**MAMBA2),
    "nemotron_h": lambda: NemotronHConfig(**NEMOTRON_H, mlp_bias=True),
    "nemotron_h_moe": lambda: NemotronHConfig(**NEMOTRON_H | NEMOTRON_H_EXPERTS),
    "gpt-oss": lambda: GptOssConfig(
        **{**SIZES, "num_hidden_layers": 3},
        head_dim=16,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=24,
        pad_token_id=0,
        rope_parameters=YARN | {"truncate": False},
    ),
    "glm4moe": lambda: Glm4MoeConfig(**GLM4_MOE),
    "lfm2": lambda: Lfm2Config(**{**SIZES, **LFM2}),
    "lfm2moe": lambda: Lfm2MoeConfig(**{**SIZES, **LFM2_MOE}),
}


def peer_of(name: str) -> PreTrainedModel:
    """The model of one of `CONFIGS`."""
    return make_peer(name, CONFIGS[name]())
