"""Shapes of the tensors of Llama layers within heads."""

from __future__ import annotations

from medusa_core.models.config import ModelConfig

Shapes = dict[str, tuple[int, ...]]


def llama_shapes(layers: ModelConfig, num_inputs: int) -> Shapes:
    """Return the shape of each part of a layer; kinds of heads use a subset.

    Args:
        layers: Sizes of the layers.
        num_inputs: Width of attention's input.
    """
    hidden, inner, size = layers.hidden_size, layers.intermediate_size, layers.head_dim
    queries, keys = layers.num_heads * size, layers.num_kv_heads * size
    return {
        "q": (queries, num_inputs),
        "k": (keys, num_inputs),
        "v": (keys, num_inputs),
        "o": (hidden, queries),
        "q_bias": (queries,),
        "k_bias": (keys,),
        "v_bias": (keys,),
        "o_bias": (hidden,),
        "q_norm": (size,),
        "k_norm": (size,),
        "mlp_norm": (hidden,),
        "gate": (inner, hidden),
        "up": (inner, hidden),
        "down": (hidden, inner),
    }
