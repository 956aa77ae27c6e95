"""Configurations of Gemma 4."""

from typing import Any

from medusa_core.system.files.json_file import read_json
from medusa_core.system.resources import shapes_dir

# Wide enough for the compiled step.
WIDE: dict[str, Any] = {
    "model_type": "gemma4_text",
    "vocab_size": 4096,
    "hidden_size": 256,
    "intermediate_size": 256,
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "global_head_dim": 64,
    "sliding_window": 24,
    "max_position_embeddings": 512,
    "use_double_wide_mlp": True,
    "hidden_size_per_layer_input": 32,
    "layer_types": ["sliding_attention", "sliding_attention", "full_attention"],
}
E2B = read_json(shapes_dir() / "gemma-4-e2b.json")
