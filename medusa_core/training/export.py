"""Writing the model, the heads and the trees in the published layouts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from medusa_core.training.network import PebbleNetwork
from medusa_core.training.recipe import BOS, END, PAD, SPECIAL_TOKENS, ModelSize

MODEL_NAME = "llama-pebble"
HEADS_NAME = "llama-pebble-medusa"
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
TREES_FORMAT_VERSION = 1


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


def export_trees(
    folder: Path,
    head_accuracies: Sequence[Sequence[float]],
    drawn_accuracies: Mapping[float, Sequence[Sequence[float]]],
    trees: Mapping[int, Sequence[Sequence[int]]],
    num_positions: int,
    default_rows: int,
) -> None:
    """Write medusa_trees.json.

    Args:
        folder: the heads' folder.
        head_accuracies: [heads][ranks], how often the later token had this rank; greedy answers.
        drawn_accuracies: the same of answers drawn at some temperatures.
        trees: rows (root included) to rank paths.
        num_positions: positions that were measured.
        default_rows: the tree to use where nothing is calibrated.
    """
    document = {
        "format_version": TREES_FORMAT_VERSION,
        "measured": {
            "num_positions": num_positions,
            "rule": "greedy",
            "text": "own answers, in-domain",
        },
        "head_accuracies": _rounded(head_accuracies),
        "drawn_accuracies": {str(t): _rounded(table) for t, table in drawn_accuracies.items()},
        "trees": {str(rows): [list(path) for path in paths] for rows, paths in trees.items()},
        "default_rows": default_rows,
    }
    # one tree per line: readable, and a diff shows what changed
    text = json.dumps(document).replace('], "', '],\n "').replace('}, "', '},\n "')
    (folder / "medusa_trees.json").write_text(text + "\n")


def _rounded(table: Sequence[Sequence[float]]) -> list[list[float]]:
    return [[round(value, 5) for value in row] for row in table]


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON."""
    path.write_text(json.dumps(value, indent=2) + "\n")
