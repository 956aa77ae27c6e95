"""Random models as transformers writes them."""

import json
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from medusa_core.models.through_transformers.known import transformers_config
from tests.support.models.tiny import EOS_ID, VOCAB_SIZE, write_text_files

USUAL: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "bos_token_id": 0,
    "eos_token_id": EOS_ID,
    "pad_token_id": None,
}


# Those that take token trees: names of their own for sizes, and all of one kind; partial rope;
# windows in some layers, which these texts leave behind; windows in all; experts.
WITH_TREES: dict[str, dict[str, Any]] = {
    "gpt2": {
        "vocab_size": VOCAB_SIZE,
        "n_embd": 32,
        "n_layer": 2,
        "n_head": 4,
        "n_positions": 512,
        "bos_token_id": 0,
        "eos_token_id": EOS_ID,
    },
    "stablelm": USUAL,
    "cohere2": USUAL
    | {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]},
    "starcoder2": USUAL | {"sliding_window": 16},
    "mixtral": USUAL | {"num_local_experts": 4},
}


# Those that don't: states alone, states beside keys and values, and positions without masks.
PLAIN: dict[str, dict[str, Any]] = {
    "mamba": {
        "vocab_size": VOCAB_SIZE,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "state_size": 8,
        "bos_token_id": 0,
        "eos_token_id": EOS_ID,
        "pad_token_id": 0,
    },
    "jamba": USUAL
    | {"attn_layer_period": 2, "attn_layer_offset": 1, "num_experts": 2, "pad_token_id": 0},
    "bloom": {
        "vocab_size": VOCAB_SIZE,
        "hidden_size": 32,
        "n_layer": 2,
        "n_head": 4,
        "bos_token_id": 0,
        "eos_token_id": EOS_ID,
        "pad_token_id": 0,
        "seq_length": 512,
    },
}


EVERY = WITH_TREES | PLAIN


def write_model(folder: Path, name: str, **changes: object) -> Path:
    """A random model of a family, as transformers writes it."""
    raw = EVERY[name] | {"model_type": name}
    torch.manual_seed(len(name))
    model = AutoModelForCausalLM.from_config(transformers_config(raw), dtype=torch.float32)
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    write_text_files(folder)
    if changes:
        path = folder / "config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes), encoding="utf-8")
    return folder
