"""Small random models of transformers that ours are compared with, one or more of every family."""

import random
from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from transformers import (
    BambaConfig,
    Ernie4_5Config,
    Exaone4Config,
    FalconH1Config,
    Gemma2Config,
    Gemma3TextConfig,
    Gemma4TextConfig,
    Gemma4UnifiedTextConfig,
    GemmaConfig,
    Glm4Config,
    Glm4MoeConfig,
    GptOssConfig,
    GraniteConfig,
    GraniteMoeHybridConfig,
    GraniteSWAConfig,
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
    Qwen3NextConfig,
    SeedOssConfig,
    SmolLM3Config,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING

SIZES: dict[str, Any] = {
    "vocab_size": 320,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,
    "eos_token_id": 1,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
EXPERTS = {"num_experts": 6, "moe_intermediate_size": 24}
GLM4_MOE = {
    **SIZES,
    "num_hidden_layers": 3,
    "head_dim": 16,
    "attention_bias": True,
    "use_qk_norm": True,
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "n_shared_experts": 2,
    "routed_scaling_factor": 1.5,
    "pad_token_id": 0,
}
GPT_OSS = {
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "head_dim": 16,
    "sliding_window": 24,
    "pad_token_id": 0,
}
GRANITE4 = {
    "num_local_experts": 0,
    "shared_intermediate_size": 48,
    "layer_types": ["attention", "attention"],
    "position_embedding_type": "rope",
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
}
# A chunk of transformers ends within the texts of the tests.
MAMBA = {
    **SIZES,
    "max_position_embeddings": 8192,  # room for the states of several sessions
    "mamba_n_heads": 8,
    "mamba_d_head": 8,
    "mamba_n_groups": 2,
    "mamba_d_state": 16,
    "mamba_chunk_size": 16,
}
GRANITE4_HYBRID = {
    **GRANITE4,
    **MAMBA,
    "num_hidden_layers": 4,
    "layer_types": ["mamba", "mamba", "attention", "mamba"],
    "position_embedding_type": "nope",
    "attention_multiplier": 0.2,
    "embedding_multiplier": 3.0,
    "residual_multiplier": 0.4,
    "logits_scaling": 4.0,
}
FALCON_H1 = {
    **MAMBA,
    "mamba_d_ssm": 64,
    "pad_token_id": 0,
    "head_dim": 8,
    "lm_head_multiplier": 0.25,
    "embedding_multiplier": 2.0,
    "mlp_multipliers": [0.7, 1.3],
    "key_multiplier": 0.6,
    "attention_in_multiplier": 1.1,
    "attention_out_multiplier": 0.9,
    "ssm_in_multiplier": 1.2,
    "ssm_out_multiplier": 0.8,
    "ssm_multipliers": [0.5, 0.8, 1.2, 1.1, 0.9],
}
# No step is cut short where transformers reads many rows at once: llama.cpp and vLLM cut none.
MAMBA2 = {
    "vocab_size": 320,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_heads": 8,
    "head_dim": 8,
    "state_size": 16,
    "n_groups": 2,
    "chunk_size": 16,
    "initializer_range": 0.4,
    "eos_token_id": 1,
}
NEMOTRON_H = {
    **SIZES,
    "max_position_embeddings": 8192,
    "layers_block_type": ["mamba", "mlp", "attention", "mlp", "mamba"],
    "head_dim": 16,
    "mamba_num_heads": 8,
    "mamba_head_dim": 8,
    "n_groups": 2,
    "ssm_state_size": 16,
    "chunk_size": 16,
    "time_step_min": 1e-12,
    "pad_token_id": 0,
}
# Smaller weights: a gated delta net normalises what it reads, however little that is.
DELTA_NET = {
    "max_position_embeddings": 8192,  # room for the states of several sessions
    "num_hidden_layers": 4,
    "head_dim": 16,
    "initializer_range": 0.1,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 6,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "pad_token_id": 0,
}
SHARED_EXPERT = {
    **{name: size for name, size in SIZES.items() if name != "intermediate_size"},
    **DELTA_NET,
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
    "shared_expert_intermediate_size": 40,
}
NEMOTRON_H_EXPERTS = {
    "layers_block_type": ["mamba", "moe", "attention", "moe", "mamba"],
    "n_routed_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 64,
    "moe_shared_expert_intermediate_size": 64,
    "routed_scaling_factor": 1.5,
}
# The old context is short, so that queries grow within the texts of the tests.
GROWING = {
    "rope_type": "yarn",
    "rope_theta": 1e6,
    "factor": 16.0,
    "original_max_position_embeddings": 16,
    "mscale": 1.0,
    "mscale_all_dim": 1.0,
    "llama_4_scaling_beta": 0.1,
}
LFM2 = {
    "num_hidden_layers": 4,
    "hidden_size": 64,  # wide enough for the compiled step
    "initializer_range": 0.2,
    "max_position_embeddings": 2048,  # room for the states of several sessions
    "layer_types": ["conv", "full_attention", "conv", "conv"],
    "pad_token_id": 0,
    "block_multiple_of": 32,
}
LFM2_MOE: dict[str, Any] = {
    **{name: value for name, value in LFM2.items() if name != "block_multiple_of"},
    "num_experts": 6,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "num_dense_layers": 1,
}
GEMMA4 = {"head_dim": 8, "global_head_dim": 16, "sliding_window": 24, "pad_token_id": 0}
EVERY_THIRD = ["sliding_attention", "sliding_attention", "full_attention"]
# The models that people run, as their config.json describes them, with small sizes.
CONFIGS: dict[str, Callable[[], Any]] = {
    "llama 2, vicuna": lambda: LlamaConfig(**{**SIZES, "num_key_value_heads": 4}),
    "llama 3": lambda: LlamaConfig(**SIZES, rope_parameters=LLAMA3_ROPE),
    "llama 3.2": lambda: LlamaConfig(
        **SIZES, rope_parameters=LLAMA3_ROPE, tie_word_embeddings=True, head_dim=16
    ),
    "tinyllama": lambda: LlamaConfig(**{**SIZES, "num_key_value_heads": 1}),
    "yi": lambda: LlamaConfig(
        **SIZES, rope_parameters={"rope_type": "default", "rope_theta": 5000000.0}
    ),
    "a longer llama 2": lambda: LlamaConfig(
        **SIZES, rope_parameters={"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 4.0}
    ),
    "mistral": lambda: MistralConfig(**SIZES, sliding_window=128),
    "mistral without a window": lambda: MistralConfig(**SIZES, sliding_window=None),
    "mistral nemo": lambda: MistralConfig(**SIZES, sliding_window=None, head_dim=16),
    "qwen 2.5": lambda: Qwen2Config(**SIZES),
    "qwen 2.5, small": lambda: Qwen2Config(**SIZES, tie_word_embeddings=True),
    "qwen 3": lambda: Qwen3Config(**SIZES, head_dim=16),
    "qwen 3, small": lambda: Qwen3Config(**SIZES, head_dim=16, tie_word_embeddings=True),
    "gemma 2": lambda: Gemma2Config(**SIZES, head_dim=16, sliding_window=24, pad_token_id=0),
    "gemma 2 without caps": lambda: Gemma2Config(
        **SIZES,
        head_dim=16,
        query_pre_attn_scalar=24,
        sliding_window=16,
        pad_token_id=0,
        attn_logit_softcapping=None,
        final_logit_softcapping=None,
    ),
    "gemma 2, wide": lambda: Gemma2Config(
        **{**SIZES, "num_hidden_layers": 3}, head_dim=16, sliding_window=512, pad_token_id=0
    ),
    "gemma 3": lambda: Gemma3TextConfig(
        **{**SIZES, "num_hidden_layers": 7}, head_dim=16, sliding_window=24, pad_token_id=0
    ),
    "gemma 3, longer": lambda: Gemma3TextConfig(
        **{**SIZES, "num_hidden_layers": 6},
        head_dim=16,
        sliding_window=16,
        pad_token_id=0,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
        },
    ),
    "gemma 3, grouped by all": lambda: Gemma3TextConfig(
        **{**SIZES, "num_key_value_heads": 1}, head_dim=16, sliding_window=30, pad_token_id=0
    ),
    "gemma 4 E2B": lambda: Gemma4TextConfig(
        **{**SIZES, "num_hidden_layers": 6, "num_key_value_heads": 1},
        **GEMMA4,
        layer_types=EVERY_THIRD * 2,
        num_kv_shared_layers=3,
        use_double_wide_mlp=True,
        vocab_size_per_layer_input=320,
        hidden_size_per_layer_input=8,
        final_logit_softcapping=30.0,
    ),
    "gemma 4 E4B": lambda: Gemma4TextConfig(
        **{**SIZES, "num_hidden_layers": 5},
        **GEMMA4,
        layer_types=["full_attention", *EVERY_THIRD, "full_attention"],
        num_kv_shared_layers=2,
        vocab_size_per_layer_input=400,
        hidden_size_per_layer_input=16,
        final_logit_softcapping=20.0,
    ),
    "gemma 4 31B": lambda: Gemma4TextConfig(
        **{**SIZES, "num_hidden_layers": 3},
        **GEMMA4,
        layer_types=EVERY_THIRD,
        hidden_size_per_layer_input=0,
        attention_k_eq_v=True,
        num_global_key_value_heads=1,
        final_logit_softcapping=30.0,
    ),
    "gemma 4 26B": lambda: Gemma4TextConfig(
        **{**SIZES, "num_hidden_layers": 3},
        **GEMMA4,
        layer_types=EVERY_THIRD,
        hidden_size_per_layer_input=0,
        attention_k_eq_v=True,
        num_global_key_value_heads=1,
        enable_moe_block=True,
        num_experts=5,
        top_k_experts=2,
        moe_intermediate_size=24,
    ),
    "gemma 4 12B": lambda: Gemma4UnifiedTextConfig(
        **{**SIZES, "num_hidden_layers": 4},
        **GEMMA4,
        layer_types=["sliding_attention", "full_attention"] * 2,
        attention_k_eq_v=True,
        num_global_key_value_heads=4,
        num_kv_shared_layers=1,
        attention_bias=True,
        tie_word_embeddings=False,
    ),
    "olmo 2": lambda: Olmo2Config(**SIZES),
    "olmo 2, every head its keys": lambda: Olmo2Config(**{**SIZES, "num_key_value_heads": 4}),
    "olmo 2 with biases": lambda: Olmo2Config(**SIZES, attention_bias=True),
    "olmo 3": lambda: Olmo3Config(**{**SIZES, "num_hidden_layers": 4}, sliding_window=24),
    "olmo 3, one layer sees all": lambda: Olmo3Config(**SIZES, sliding_window=16),
    "olmo 3, longer": lambda: Olmo3Config(
        **{**SIZES, "num_hidden_layers": 4},
        sliding_window=16,
        rope_parameters={
            "full_attention": {"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5},
            "sliding_attention": {"rope_type": "default", "rope_theta": 5e5},
        },
    ),
    "granite": lambda: GraniteConfig(
        **SIZES,
        attention_multiplier=0.2,
        embedding_multiplier=3.0,
        residual_multiplier=0.4,
        logits_scaling=2.0,
    ),
    "granite, tied": lambda: GraniteConfig(
        **SIZES, attention_multiplier=0.3, embedding_multiplier=2.0, tie_word_embeddings=True
    ),
    "granite with biases": lambda: GraniteConfig(**SIZES, attention_bias=True, mlp_bias=True),
    "granite swa": lambda: GraniteSWAConfig(
        **{**SIZES, "num_hidden_layers": 5},
        sliding_window=24,
        attention_multiplier=0.2,
        embedding_multiplier=3.0,
        residual_multiplier=0.4,
        logits_scaling=2.0,
        layer_rope_theta=[0, 1e4, 1e4, 5e5, 5e5],
    ),
    "granite swa, untied, with biases": lambda: GraniteSWAConfig(
        **SIZES, attention_bias=True, mlp_bias=True, tie_word_embeddings=False, sliding_window=16
    ),
    "smollm 3": lambda: SmolLM3Config(**{**SIZES, "num_hidden_layers": 5}, pad_token_id=0),
    "smollm 3, untied": lambda: SmolLM3Config(
        **SIZES, no_rope_layers=[0, 1], tie_word_embeddings=False, pad_token_id=0
    ),
    "smollm 3 with biases": lambda: SmolLM3Config(
        **SIZES, attention_bias=True, mlp_bias=True, pad_token_id=0
    ),
    "phi 3": lambda: Phi3Config(**SIZES, pad_token_id=0),
    "phi 3 with a window": lambda: Phi3Config(**SIZES, sliding_window=128, pad_token_id=0),
    "phi 4 mini": lambda: Phi3Config(
        **SIZES | {"num_attention_heads": 2, "num_key_value_heads": 1},
        pad_token_id=0,
        original_max_position_embeddings=64,
        rope_parameters={
            "rope_type": "longrope",
            "rope_theta": 10000.0,
            "partial_rotary_factor": 0.75,
            "short_factor": [1.0, 1.1, 1.3, 1.5, 1.9, 2.3],
            "long_factor": [1.0, 1.5, 2.5, 4.0, 7.0, 8.0],
        },
    ),
    "qwen 3, longer": lambda: Qwen3Config(
        **SIZES,
        head_dim=16,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 1e6,
            "factor": 4.0,
            "original_max_position_embeddings": 128,
        },
    ),
    "llama, longer": lambda: LlamaConfig(
        **SIZES,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 1e4,
            "factor": 8.0,
            "beta_fast": 4.0,
            "beta_slow": 0.5,
            "mscale": 0.7,
            "mscale_all_dim": 1.2,
            "truncate": False,
            "original_max_position_embeddings": 64,
        },
    ),
    "qwen 3 with biases": lambda: Qwen3Config(**SIZES, head_dim=16, attention_bias=True),
    "qwen 3 with experts": lambda: Qwen3MoeConfig(
        **SIZES,
        **EXPERTS,
        head_dim=16,
        num_experts_per_tok=2,
        norm_topk_prob=True,
    ),
    "qwen 3 with experts, some layers without": lambda: Qwen3MoeConfig(
        **{**SIZES, "num_hidden_layers": 4},
        **EXPERTS,
        head_dim=16,
        num_experts_per_tok=3,
        norm_topk_prob=False,
        mlp_only_layers=[3],
        decoder_sparse_step=2,
        tie_word_embeddings=True,
    ),
    "qwen 3 with experts, all chosen": lambda: Qwen3MoeConfig(
        **SIZES, **EXPERTS, head_dim=16, num_experts_per_tok=6, attention_bias=True
    ),
    "qwen 3.5": lambda: Qwen3_5TextConfig(**{**SIZES, **DELTA_NET}),
    "qwen 3.5, tied, one key head": lambda: Qwen3_5TextConfig(
        **{**SIZES, **DELTA_NET, "linear_num_key_heads": 1},
        tie_word_embeddings=True,
        attention_bias=True,
        linear_conv_kernel_dim=3,
        rope_parameters={
            "rope_type": "default",
            "rope_theta": 1e7,
            "partial_rotary_factor": 0.5,
            "mrope_section": [2, 1, 1],
            "mrope_interleaved": True,
        },
    ),
    "qwen 3.5, most layers attend": lambda: Qwen3_5TextConfig(
        **{**SIZES, **DELTA_NET, "linear_num_key_heads": 6},
        layer_types=["full_attention", "linear_attention", "full_attention", "full_attention"],
    ),
    "qwen 3.5 with experts": lambda: Qwen3_5MoeTextConfig(**SHARED_EXPERT),
    "qwen 3 next": lambda: Qwen3NextConfig(**SHARED_EXPERT),
    "qwen 3 next, shares as they are": lambda: Qwen3NextConfig(
        **SHARED_EXPERT, norm_topk_prob=False, linear_conv_kernel_dim=2
    ),
    "granite 4": lambda: GraniteMoeHybridConfig(**SIZES, **GRANITE4),
    "granite 4 without turns": lambda: GraniteMoeHybridConfig(
        **SIZES, **{**GRANITE4, "position_embedding_type": "nope"}, tie_word_embeddings=True
    ),
    "granite 4 with factors": lambda: GraniteMoeHybridConfig(
        **SIZES,
        **GRANITE4,
        attention_multiplier=0.2,
        embedding_multiplier=3.0,
        residual_multiplier=0.4,
        logits_scaling=2.0,
        attention_bias=True,
    ),
    "granite 4 hybrid": lambda: GraniteMoeHybridConfig(**GRANITE4_HYBRID),
    "granite 4 hybrid with experts": lambda: GraniteMoeHybridConfig(
        **{
            **GRANITE4_HYBRID,
            "num_local_experts": 6,
            "num_experts_per_tok": 2,
            "logits_scaling": 6.0,
        },
        tie_word_embeddings=True,
    ),
    "granite 4 hybrid with turns and biases": lambda: GraniteMoeHybridConfig(
        **{**GRANITE4_HYBRID, "position_embedding_type": "rope", "mamba_n_groups": 1},
        attention_bias=True,
        mamba_proj_bias=True,
        time_step_limit=[0.01, 0.5],
    ),
    "bamba": lambda: BambaConfig(
        **{**MAMBA, "num_hidden_layers": 3}, attn_layer_indices=[1], pad_token_id=0
    ),
    "falcon h1": lambda: FalconH1Config(**FALCON_H1),
    "falcon h1 with norms": lambda: FalconH1Config(
        **{**FALCON_H1, "mamba_conv_bias": False}, mamba_rms_norm=True, mlp_bias=True
    ),
    "falcon h1, gated before its norm": lambda: FalconH1Config(
        **FALCON_H1,
        mamba_rms_norm=True,
        mamba_norm_before_gate=False,
        projectors_bias=True,
        tie_word_embeddings=True,
    ),
    "mamba 2": lambda: Mamba2Config(**MAMBA2),
    "mamba 2 with biases, tied": lambda: Mamba2Config(
        **{**MAMBA2, "n_groups": 1, "tie_word_embeddings": True}, use_bias=True, use_conv_bias=False
    ),
    "nemotron h": lambda: NemotronHConfig(**NEMOTRON_H),
    "nemotron h with biases": lambda: NemotronHConfig(**NEMOTRON_H, mlp_bias=True, use_bias=True),
    "nemotron h with experts": lambda: NemotronHConfig(**NEMOTRON_H | NEMOTRON_H_EXPERTS),
    "ministral 3": lambda: Ministral3Config(
        **SIZES, head_dim=16, sliding_window=None, rope_parameters=GROWING
    ),
    "ministral 3, tied": lambda: Ministral3Config(
        **SIZES,
        head_dim=8,
        sliding_window=None,
        tie_word_embeddings=True,
        rope_parameters={**GROWING, "llama_4_scaling_beta": 0.5, "factor": 2.0},
    ),
    "ministral 3 with a window": lambda: Ministral3Config(
        **SIZES, head_dim=16, sliding_window=128, rope_parameters=GROWING
    ),
    "gpt-oss": lambda: GptOssConfig(**{**SIZES, "num_hidden_layers": 3}, **GPT_OSS),
    "gpt-oss, longer": lambda: GptOssConfig(
        **SIZES,
        **{**GPT_OSS, "num_local_experts": 3, "num_experts_per_tok": 3, "swiglu_limit": 1.0},
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 150000.0,
            "factor": 4.0,
            "beta_fast": 32.0,
            "beta_slow": 1.0,
            "truncate": False,
            "original_max_position_embeddings": 64,
        },
    ),
    "exaone 4": lambda: Exaone4Config(
        **{**SIZES, "num_hidden_layers": 5},
        sliding_window=24,
        sliding_window_pattern=4,
        rope_parameters=LLAMA3_ROPE,
    ),
    "exaone 4, small": lambda: Exaone4Config(
        **SIZES,
        head_dim=16,
        sliding_window=None,
        layer_types=["full_attention"] * 2,
        tie_word_embeddings=True,
    ),
    "exaone 4, all see all": lambda: Exaone4Config(
        **SIZES, sliding_window=16, layer_types=["full_attention"] * 2
    ),
    "seed-oss": lambda: SeedOssConfig(**SIZES, head_dim=16, pad_token_id=0),
    "seed-oss with biases": lambda: SeedOssConfig(
        **SIZES, head_dim=16, attention_out_bias=True, mlp_bias=True, pad_token_id=0
    ),
    "seed-oss without biases": lambda: SeedOssConfig(
        **SIZES, attention_bias=False, tie_word_embeddings=True, head_dim=None, pad_token_id=0
    ),
    "hunyuan": lambda: HunYuanDenseV1Config(
        **SIZES,
        head_dim=16,
        rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "alpha": 1000.0, "factor": 1.0},
        tie_word_embeddings=True,
    ),
    "hunyuan with biases": lambda: HunYuanDenseV1Config(**SIZES, head_dim=8, attention_bias=True),
    "hunyuan, longer": lambda: HunYuanDenseV1Config(
        **SIZES,
        head_dim=16,
        rope_parameters={
            "rope_type": "yarn",
            "rope_theta": 1e4,
            "factor": 4.0,
            "original_max_position_embeddings": 128,
        },
    ),
    "ernie 4.5": lambda: Ernie4_5Config(**SIZES, head_dim=16),
    "ernie 4.5 with biases": lambda: Ernie4_5Config(**SIZES, head_dim=16, use_bias=True),
    "ernie 4.5, untied": lambda: Ernie4_5Config(
        **{**SIZES, "num_key_value_heads": 4}, head_dim=8, tie_word_embeddings=False
    ),
    "glm 4": lambda: Glm4Config(**SIZES, head_dim=16, pad_token_id=0),
    "glm 4 without biases": lambda: Glm4Config(
        **SIZES, head_dim=8, attention_bias=False, tie_word_embeddings=True, pad_token_id=0
    ),
    "glm 4, all of a head turned": lambda: Glm4Config(
        **SIZES, head_dim=16, partial_rotary_factor=1.0, pad_token_id=0
    ),
    "glm 4 with experts": lambda: Glm4MoeConfig(**GLM4_MOE),
    "gemma": lambda: GemmaConfig(**SIZES, head_dim=16),
    "gemma, every head its keys": lambda: GemmaConfig(
        **{**SIZES, "num_key_value_heads": 4}, head_dim=8
    ),
    "gemma with biases": lambda: GemmaConfig(**SIZES, head_dim=16, attention_bias=True),
    "gpt-oss, every head its keys": lambda: GptOssConfig(
        **{**SIZES, "num_key_value_heads": 4}, **{**GPT_OSS, "num_experts_per_tok": 1}
    ),
    "lfm 2": lambda: Lfm2Config(**{**SIZES, **LFM2}),
    "lfm 2 with biases, untied": lambda: Lfm2Config(
        **{**SIZES, **LFM2, "layer_types": ["conv", "conv", "full_attention", "full_attention"]},
        conv_bias=True,
        conv_L_cache=4,
        block_auto_adjust_ff_dim=False,
        tie_word_embeddings=False,
    ),
    "lfm 2, attention alone": lambda: Lfm2Config(
        **{**SIZES, "pad_token_id": 0}, conv_L_cache=2, block_ffn_dim_multiplier=1.3
    ),
    "lfm 2 with experts": lambda: Lfm2MoeConfig(**{**SIZES, **LFM2_MOE}),
    "lfm 2 with experts, without bias": lambda: Lfm2MoeConfig(
        **{**SIZES, **LFM2_MOE, "num_dense_layers": 0},
        use_expert_bias=False,
        norm_topk_prob=False,
        routed_scaling_factor=2.5,
        conv_bias=True,
    ),
}
# Families that are another one under their own name.
RENAMED = {"mimo": "qwen 2.5"}


def make_peer(name: str, config: Any) -> PreTrainedModel:
    """Transformers' model with random weights, norms and biases included.

    Args:
        name: Another name gives other weights.
        config: Its configuration.
    """
    torch.manual_seed(random.Random(name).randrange(1000))
    model: PreTrainedModel = MODEL_FOR_CAUSAL_LM_MAPPING[type(config)](config).eval()
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            is_zero = parameter_name.endswith("sinks") and not parameter.any()
            if parameter_name.endswith(("bias", "scale")) or "norm" in parameter_name or is_zero:
                parameter.add_(torch.randn_like(parameter) * 0.2)
        for buffer_name, buffer in model.named_buffers():
            if buffer_name.endswith(("bias", "layer_scalar")):
                buffer.add_(torch.randn_like(buffer) * 0.2)
    return model


def peer_of(name: str) -> PreTrainedModel:
    """The model of one of `CONFIGS`."""
    return make_peer(name, CONFIGS[name]())


@cache
def first_of_family() -> dict[str, str]:
    """Return the first of `CONFIGS` of every family, by `model_type`."""
    return {CONFIGS[name]().model_type: name for name in reversed(CONFIGS)}
