"""Random LoRAs in PEFT's layout, written from its documents, and what they add, layer by layer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

ALL = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")


@dataclass(frozen=True, slots=True)
class LoraSpec:
    """A random LoRA.

    Attributes:
        rank: Usual one.
        alpha: Usual one.
        ranks: Of layers whose names end so.
        alphas: Likewise.
        is_rslora: Divides by the root of the rank.
        modules: Last parts of the names of changed layers.
        size: Of what is added, beside the weights' own.
        more: Further entries of the configuration.
        seed: Of the numbers.
    """

    rank: int = 4
    alpha: float = 8
    ranks: Mapping[str, int] = field(default_factory=dict)
    alphas: Mapping[str, float] = field(default_factory=dict)
    is_rslora: bool = False
    modules: tuple[str, ...] = ALL
    size: float = 0.5
    more: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 31

    def rank_of(self, layer: str) -> int:
        return next((r for end, r in self.ranks.items() if layer.endswith(end)), self.rank)

    def scale_of(self, layer: str) -> float:
        alpha = next((a for end, a in self.alphas.items() if layer.endswith(end)), self.alpha)
        rank = self.rank_of(layer)
        return alpha / rank**0.5 if self.is_rslora else alpha / rank


def sizes_of(model_dir: Path, spec: LoraSpec) -> dict[str, tuple[int, int]]:
    """Rows and columns of the layers of a checkpoint that a LoRA changes."""
    tensors = load_file(model_dir / "model.safetensors")
    endings = tuple(f"{module}.weight" for module in spec.modules)
    return {
        name.removesuffix(".weight"): (tensor.shape[0], tensor.shape[1])
        for name, tensor in tensors.items()
        if name.endswith(endings)
    }


def random_lora(
    sizes: Mapping[str, tuple[int, int]], spec: LoraSpec
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Tensors by PEFT's names, and in float64 what they add to each layer of those sizes."""
    generator = torch.Generator().manual_seed(spec.seed)
    tensors, added = {}, {}
    for layer, (rows, columns) in sorted(sizes.items()):
        rank, scale = spec.rank_of(layer), spec.scale_of(layer)
        a = torch.randn(rank, columns, generator=generator) / columns**0.5
        b = torch.randn(rows, rank, generator=generator) * spec.size / scale / rank**0.5
        tensors[f"base_model.model.{layer}.lora_A.weight"] = a
        tensors[f"base_model.model.{layer}.lora_B.weight"] = b
        added[layer] = scale * (b.double() @ a.double())
    return tensors, added


def config_of(spec: LoraSpec) -> dict[str, Any]:
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": "somebody/tiny",
        "r": spec.rank,
        "lora_alpha": spec.alpha,
        "lora_dropout": 0.05,
        "use_rslora": spec.is_rslora,
        "rank_pattern": dict(spec.ranks),
        "alpha_pattern": dict(spec.alphas),
        "target_modules": list(spec.modules),
        "bias": "none",
        "use_dora": False,
        "modules_to_save": None,
        "fan_in_fan_out": False,
        "init_lora_weights": True,
        "inference_mode": True,
        "layers_to_transform": None,
        **spec.more,
    }


def write_lora(folder: Path, tensors: Mapping[str, Tensor], config: Mapping[str, Any]) -> Path:
    """Write both files of an adapter and return its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    save_file(dict(tensors), folder / "adapter_model.safetensors", {"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def lora_for(model_dir: Path, folder: Path, spec: LoraSpec | None = None) -> dict[str, Tensor]:
    """Write a random LoRA for a checkpoint of plain numbers; returns what it adds to each layer."""
    spec = spec or LoraSpec()
    tensors, added = random_lora(sizes_of(model_dir, spec), spec)
    write_lora(folder, tensors, config_of(spec))
    return added


def merge_slowly(model_dir: Path, added: Mapping[str, Tensor]) -> None:
    """Add to a checkpoint's weights in float64, in place."""
    path = model_dir / "model.safetensors"
    tensors = load_file(path)
    for layer, change in added.items():
        name = f"{layer}.weight"
        tensors[name] = tensors[name].double() + change
    save_file(tensors, path)
