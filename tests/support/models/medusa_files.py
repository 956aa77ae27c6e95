"""Medusa heads in the layouts of other programs."""

import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from tests.support.models.targets import GROUPED
from tests.support.models.tiny import random_heads

Tensors = dict[str, Tensor]
# Tokens that heads of a part of the vocabulary draft from.
REDUCED = torch.randperm(GROUPED.vocab_size, generator=torch.Generator().manual_seed(1))[:100]


def save(folder: Path, name: str, tensors: Tensors, config: dict[str, object]) -> Path:
    """Write a file of heads and their configuration; returns the folder."""
    folder.mkdir(exist_ok=True)
    save_file({key: value.contiguous() for key, value in tensors.items()}, folder / name)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def split(name: str) -> tuple[str, str, str]:
    """`1.0.linear.weight` → head, layer, rest."""
    head, layer, rest = name.split(".", 2)
    return head, layer, rest


def vllm_names(tensors: Tensors, prefix: str = "") -> Tensors:
    """Return the heads under vLLM's names."""
    renamed = {}
    for name, tensor in tensors.items():
        head, layer, rest = split(name)
        if rest == "weight":
            renamed[f"{prefix}lm_heads.{head}.weight"] = tensor
        else:
            last = rest.removeprefix("linear.")
            renamed[f"{prefix}blocks.{head}.layers.{layer}.{last}"] = tensor
    return renamed


def reduced(ids: Tensor) -> Tensors:
    """vLLM heads that draft from these tokens alone."""
    full = random_heads(GROUPED)
    kept = {k: v[ids] if split(k)[2] == "weight" else v for k, v in full.items()}
    return vllm_names(kept)
