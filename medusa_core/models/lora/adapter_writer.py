"""Write a LoRA in PEFT's format."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from medusa_core.models.lora.adapter_config import CONFIG_NAME
from medusa_core.models.lora.adapter_shape import (
    PREFIX,
    WEIGHTS_NAME,
)


def write_adapter(
    folder: Path,
    matrices: Iterable[tuple[str, Tensor, Tensor]],
    alpha: float,
    base_model: str,
) -> None:
    """Write `adapter_config.json` and `adapter_model.safetensors`, in bfloat16.

    Args:
        folder: Target folder; created if it doesn't exist.
        matrices: Name, A and B of every layer. [rank, columns], [rows, rank]
        alpha: The LoRA adds alpha / rank · B A.
        base_model: Name of the base model.
    """
    tensors: dict[str, Tensor] = {}
    modules: dict[str, None] = {}
    rank = 0
    for layer, a, b in matrices:
        rank = len(a)
        modules[layer.rpartition(".")[2]] = None
        for which, matrix in (("A", a), ("B", b)):
            saved = matrix.detach().to("cpu", torch.bfloat16).contiguous()
            tensors[f"{PREFIX}{layer}.lora_{which}.weight"] = saved
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base_model,
        "r": rank,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "use_rslora": False,
        "use_dora": False,
        "target_modules": list(modules),
        "bias": "none",
        "fan_in_fan_out": False,
        "modules_to_save": None,
        "inference_mode": True,
    }
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / WEIGHTS_NAME, metadata={"format": "pt"})
    text = json.dumps(config, indent=2) + "\n"
    (folder / CONFIG_NAME).write_text(text, encoding="utf-8")
