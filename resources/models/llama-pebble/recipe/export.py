"""The model in its published layout: written, and read back into the network."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from medusa_core.errors import TrainingError
from recipe.network import PebbleNetwork
from recipe.recipe import BOS, END, PAD, SPECIAL_TOKENS, ModelSize

MODEL_NAME = "llama-pebble"
HEADS_NAME = "llama-pebble-medusa"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


def model_config(size: ModelSize) -> dict[str, Any]:
    """The Hugging Face config of a model of this size."""
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": size.hidden_size,
        "num_hidden_layers": size.num_layers,
        "num_attention_heads": size.num_heads,
        "num_key_value_heads": size.num_heads,
        "head_dim": size.head_dim,
        "intermediate_size": size.intermediate_size,
        "vocab_size": size.vocab_size,
        "max_position_embeddings": size.max_positions,
        "rope_theta": size.rope_theta,
        "rms_norm_eps": size.rms_norm_eps,
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "bos_token_id": SPECIAL_TOKENS.index(BOS),
        "eos_token_id": SPECIAL_TOKENS.index(END),
        "pad_token_id": SPECIAL_TOKENS.index(PAD),
    }


def export_model(network: PebbleNetwork, tokenizer_dir: Path, folder: Path) -> None:
    """Write config, weights in bfloat16, tokenizer, chat template and generation defaults.

    Args:
        network: trained weights.
        tokenizer_dir: holds the tokenizer's files.
        folder: receives the model.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = {
        name: tensor.detach().to("cpu", torch.bfloat16).contiguous()
        for name, tensor in network.state_dict().items()
    }
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config = model_config(network.size)
    write_json(folder / "config.json", config)
    ids = {name: config[name] for name in ("bos_token_id", "eos_token_id", "pad_token_id")}
    write_json(folder / "generation_config.json", {**ids, "do_sample": False})
    for name in TOKENIZER_FILES:
        if (tokenizer_dir / name).resolve() != (folder / name).resolve():
            shutil.copyfile(tokenizer_dir / name, folder / name)


def load_exported(folder: Path) -> tuple[PebbleNetwork, Tokenizer]:
    """Read an exported demo model into the trainable network, in float32.

    Raises:
        TrainingError: a file is missing.
    """
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        if not (folder / name).is_file():
            raise TrainingError(
                f"{folder} holds no {name}.", "Name a folder that the recipe's `train` wrote."
            )
    config = json.loads((folder / "config.json").read_text())
    size = ModelSize(
        config["hidden_size"],
        config["num_hidden_layers"],
        config["num_attention_heads"],
        config["intermediate_size"],
        config["vocab_size"],
        config["max_position_embeddings"],
        config["rope_theta"],
        config["rms_norm_eps"],
    )
    network = PebbleNetwork(size)
    network.load_state_dict(
        {k: v.float() for k, v in load_file(folder / "model.safetensors").items()}
    )
    return network.eval(), Tokenizer.from_file(str(folder / "tokenizer.json"))


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    path.write_text(json.dumps(value, indent=2) + "\n")
