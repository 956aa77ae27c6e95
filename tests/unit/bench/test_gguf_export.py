"""Random weights in a GGUF file: its sizes are the shape's, and every tensor is there."""

from pathlib import Path

import pytest

from medusa_core.bench.gguf_export import write_random_gguf
from medusa_core.models.blocks.sizes import block_tensors, num_parameters
from medusa_core.models.model_files import ModelFiles
from tests.support.models.shapes import resized

SMALL = {"vocab_size": 64, "hidden_size": 64, "intermediate_size": 128}
HEADS = {"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16}


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [
        ("llama-3-8b", HEADS | {"num_hidden_layers": 2}),
        ("qwen3.5-4b", HEADS),
        ("gemma-4-e2b", {"vocab_size_per_layer_input": 64}),
        ("lfm2-8b-a1b", {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}),
    ],
)
def test_a_random_gguf_file_has_the_tensors_of_the_shape(
    shape: str, sizes: dict[str, int], tmp_path: Path
) -> None:
    config = resized(shape, **SMALL, **sizes)
    write_random_gguf(config, "q8_0", tmp_path / "model.gguf")

    files = ModelFiles.open(tmp_path / "model.gguf")

    assert num_parameters(files.config) == num_parameters(config)
    checkpoint = files.checkpoint()
    for layer in range(config.num_layers):
        for part in block_tensors(files.config, layer).linears:
            assert all(f"{piece.name}.weight" in checkpoint.names for piece in part.pieces)
