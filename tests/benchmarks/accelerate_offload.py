"""Accelerate's disk offload of the same shape in 16 bits: a row beside a block of ours."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from medusa_core.bench.random_target import shape_config
from medusa_core.bench.step_race import OnTimed
from medusa_core.models.blocks.sizes import EMBEDDING, FINAL_NORM, block_tensors, lm_head_spec
from medusa_core.models.config import ModelConfig
from medusa_core.system.resources import shapes_dir

_DRAWN = 1 << 22  # numbers; larger matrices repeat them
_SPARE_BYTES = 2 << 30  # that the disk keeps free


@dataclass(frozen=True, slots=True)
class OffloadRow:
    """Accelerate's measured speed for a shape.

    Attributes:
        tokens_per_s: 0 where it couldn't be measured.
        num_tokens: Tokens that it wrote.
        layers_here: Layers in memory.
        note: Why it couldn't be measured; else empty.
    """

    tokens_per_s: float
    num_tokens: int
    layers_here: int
    note: str = ""


def accelerate_row(
    shape: str, folder: Path, memory_bytes: int, num_tokens: int, on_timed: OnTimed
) -> OffloadRow:
    """Generate a few tokens by Accelerate, with layers without room in memory on the disk.

    Args:
        shape: Name of a shape.
        folder: On the disk; takes the weights, and gives their room back.
        memory_bytes: For weights in memory.
        num_tokens: Tokens to write.
        on_timed: Called with what is being done.
    """
    config = shape_config(shape)
    layer = 2 * _num_weights(config, 0)
    ends = 4 * config.vocab_size * config.hidden_size
    if shutil.disk_usage(folder).free < config.num_layers * layer + ends + _SPARE_BYTES:
        return OffloadRow(0.0, 0, 0, f"{folder} has no room for the weights in 16 bits")
    here = max(0, min(config.num_layers, (memory_bytes - ends) // layer))
    with tempfile.TemporaryDirectory(dir=folder, prefix="offload-") as name:
        on_timed("writing the weights in 16 bits")
        write_random(shape, config, Path(name))
        on_timed(f"accelerate: {here} of {config.num_layers} layers in memory")
        model = _load(Path(name), config, here)
        ids = torch.arange(5, 21).unsqueeze(0)
        started = time.perf_counter()
        model.generate(ids, max_new_tokens=num_tokens, min_new_tokens=num_tokens, do_sample=False)
        return OffloadRow(num_tokens / (time.perf_counter() - started), num_tokens, here)


def _load(folder: Path, config: ModelConfig, here: int) -> Any:
    from transformers import AutoModelForCausalLM

    ends = ("model.embed_tokens", "model.norm", "model.rotary_emb", "lm_head")
    device_map = dict.fromkeys(ends, "cpu")
    for index in range(config.num_layers):
        device_map[f"model.layers.{index}"] = "cpu" if index < here else "disk"
    return AutoModelForCausalLM.from_pretrained(
        folder, device_map=device_map, offload_folder=folder / "offload", dtype=torch.bfloat16
    )


def write_random(shape: str, config: ModelConfig, folder: Path) -> None:
    """Random weights of a shape in Hugging Face layout, a file for each layer."""
    shutil.copy(shapes_dir() / f"{shape}.json", folder / "config.json")
    where: dict[str, str] = {}
    for number, tensors in enumerate(_tensors(config)):
        file = f"model-{number:05}.safetensors"
        save_file(tensors, folder / file)
        where |= dict.fromkeys(tensors, file)
    index = {"metadata": {}, "weight_map": where}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")


def _tensors(config: ModelConfig) -> Iterator[dict[str, Tensor]]:
    """The tensors of each file."""
    drawn = (torch.randn(_DRAWN, generator=torch.Generator().manual_seed(1)) * 0.02).bfloat16()

    def matrix(rows: int, columns: int) -> Tensor:
        return drawn.repeat(-(-rows * columns // _DRAWN))[: rows * columns].view(rows, columns)

    ends = {f"{EMBEDDING}.weight": matrix(config.vocab_size, config.hidden_size)}
    ends[f"{FINAL_NORM}.weight"] = torch.ones(config.hidden_size).bfloat16()
    if not config.tie_embeddings:
        last = lm_head_spec(config)
        ends["lm_head.weight"] = matrix(last.rows, last.columns)
    yield ends
    for index in range(config.num_layers):
        block = block_tensors(config, index)
        tensors = {
            f"{piece.name}.weight": matrix(piece.rows, part.columns)
            for part in block.linears
            for piece in part.pieces
        }
        norms = {f"{name}.weight": torch.ones(size) for name, size in block.norms.items()}
        yield tensors | {name: norm.bfloat16() for name, norm in norms.items()}


def _num_weights(config: ModelConfig, index: int) -> int:
    return sum(part.rows * part.columns for part in block_tensors(config, index).linears)
