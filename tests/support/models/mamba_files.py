"""Mamba checkpoints that are wide enough to be quantized."""

from pathlib import Path

from tests.support.models.peers import CONFIGS, make_peer
from tests.support.models.tiny import write_text_files


def wide(name: str, folder: Path) -> Path:
    """Return one of `CONFIGS` with more layers and wider rows, with a tokenizer."""
    config = CONFIGS[name]()
    config.hidden_size, config.intermediate_size = 64, 96
    if config.model_type == "granitemoehybrid":
        config.layer_types = ["linear_attention", "linear_attention", "full_attention"] * 2
        config.shared_intermediate_size = 64
    if config.model_type == "falcon_h1":
        config.head_dim = 16
    if config.model_type == "bamba":
        config.attn_layer_indices = [1, 4]
    if config.model_type in ("granitemoehybrid", "bamba"):
        config.mamba_n_heads = 16
    if config.model_type != "nemotron_h":
        config.num_hidden_layers = 6
    make_peer(name, config).save_pretrained(folder)
    write_text_files(folder)
    return folder
