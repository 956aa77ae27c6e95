"""Random Gemma 4 assistants in the published layout; nothing here uses our reader."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

LOCAL, GLOBAL = "sliding_attention", "full_attention"


@dataclass(frozen=True)
class AssistantSpec:
    """A random assistant.

    Attributes:
        width: The target's.
        kv_heads: Heads of keys of the target's layers with a window.
        global_kv_heads: Of its layers that see all; 0 for as many.
        head_dim: Numbers of a head in layers with a window.
        global_head_dim: In layers that see all.
        clusters: Of tokens; 0 where all are scored.
        unified: As for a Gemma 4 12B.
    """

    width: int = 32
    vocab: int = 320
    hidden: int = 16
    inner: int = 24
    heads: int = 4
    kv_heads: int = 1
    global_kv_heads: int = 0
    head_dim: int = 8
    global_head_dim: int = 16
    window: int = 24
    kinds: tuple[str, ...] = (LOCAL, LOCAL, GLOBAL)
    clusters: int = 0
    read: int = 4
    has_bias: bool = False
    unified: bool = False
    seed: int = 17


# By the names of `peers.CONFIGS`, with what each size has.
ASSISTANTS = {
    "gemma 4 E2B": AssistantSpec(clusters=32),
    "gemma 4 E4B": AssistantSpec(kv_heads=2, clusters=16, read=16, seed=2),
    "gemma 4 31B": AssistantSpec(kv_heads=2, global_kv_heads=1, has_bias=True, seed=3),
    "gemma 4 26B": AssistantSpec(kv_heads=2, global_kv_heads=1, hidden=32, seed=4),
    "gemma 4 12B": AssistantSpec(kv_heads=2, global_kv_heads=4, unified=True, seed=5),
}


def tensors_of(spec: AssistantSpec, are_empty: bool = False) -> dict[str, Tensor]:
    """The tensors by their published names; where they are empty, their shapes alone."""
    generator = torch.Generator().manual_seed(spec.seed)

    def normal(*shape: int, scale: float = 0.0, mean: float = 0.0) -> Tensor:
        if are_empty:
            return torch.empty(shape, device="meta")
        scale = scale or 1.5 / shape[-1] ** 0.5
        return (torch.randn(*shape, generator=generator) * scale + mean).bfloat16()

    def norm(size: int) -> Tensor:
        return normal(size, scale=0.1, mean=1.0)

    hidden = spec.hidden
    tensors = {
        "pre_projection.weight": normal(hidden, 2 * spec.width),
        "post_projection.weight": normal(spec.width, hidden),
        "model.norm.weight": norm(hidden),
        "model.embed_tokens.weight": normal(spec.vocab, hidden, scale=1.0),
    }
    for index, kind in enumerate(spec.kinds):
        size = spec.global_head_dim if kind == GLOBAL else spec.head_dim
        queries = spec.heads * size
        own = {
            "self_attn.q_proj.weight": normal(queries, hidden),
            "self_attn.o_proj.weight": normal(hidden, queries),
            "self_attn.q_norm.weight": norm(size),
            "mlp.gate_proj.weight": normal(spec.inner, hidden),
            "mlp.up_proj.weight": normal(spec.inner, hidden),
            "mlp.down_proj.weight": normal(hidden, spec.inner),
            "input_layernorm.weight": norm(hidden),
            "post_attention_layernorm.weight": norm(hidden),
            "pre_feedforward_layernorm.weight": norm(hidden),
            "post_feedforward_layernorm.weight": norm(hidden),
            "layer_scalar": normal(1, scale=0.1, mean=0.9),
        }
        if spec.has_bias:
            own["self_attn.q_proj.bias"] = normal(queries, scale=0.3)
            own["self_attn.o_proj.bias"] = normal(hidden, scale=0.3)
        tensors |= {f"model.layers.{index}.{name}": tensor for name, tensor in own.items()}
    if spec.clusters:
        ordering = torch.randperm(spec.vocab, generator=generator)
        tensors["masked_embedding.centroids.weight"] = normal(spec.clusters, hidden)
        tensors["masked_embedding.token_ordering"] = ordering
    return tensors


def config_of(spec: AssistantSpec) -> dict[str, Any]:
    """`config.json`."""
    prefix = "gemma4_unified" if spec.unified else "gemma4"
    text = {
        "model_type": f"{prefix}_text",
        "vocab_size": spec.vocab,
        "hidden_size": spec.hidden,
        "intermediate_size": spec.inner,
        "num_hidden_layers": len(spec.kinds),
        "num_attention_heads": spec.heads,
        "num_key_value_heads": spec.kv_heads,
        "head_dim": spec.head_dim,
        "global_head_dim": spec.global_head_dim,
        "sliding_window": spec.window,
        "layer_types": list(spec.kinds),
        "num_kv_shared_layers": len(spec.kinds),
        "attention_bias": spec.has_bias,
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
    }
    if spec.global_kv_heads:
        more = {"attention_k_eq_v": True, "num_global_key_value_heads": spec.global_kv_heads}
        text |= more
    return {
        "model_type": f"{prefix}_assistant",
        "architectures": ["Gemma4AssistantForCausalLM"],
        "backbone_hidden_size": spec.width,
        "use_ordered_embeddings": bool(spec.clusters),
        "num_centroids": spec.clusters or 2048,
        "centroid_intermediate_top_k": spec.read,
        "tie_word_embeddings": True,
        "text_config": text,
    }


def write_assistant(folder: Path, spec: AssistantSpec) -> Path:
    """Write an assistant as it is published; returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors_of(spec), folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config_of(spec)), encoding="utf-8")
    return folder
