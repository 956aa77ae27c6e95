"""A checkpoint whose weights are quantized in its files."""

import json
import shutil
from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from medusa_core.models.quant.nf4_tensors import quantize
from medusa_core.system.files.json_file import read_json


def quantized_checkpoint(source: Path, folder: Path, is_nested: bool, skips: str = "") -> Path:
    """Write a bitsandbytes checkpoint: linear weights in 4 bits, the rest unchanged."""
    shutil.copytree(source, folder)
    tensors: dict[str, Tensor] = {}
    for name, tensor in load_file(source / "model.safetensors").items():
        if not name.endswith("proj.weight") or (skips and skips in name):
            tensors[name] = tensor
            continue
        for key, part in quantize(tensor, is_nested).items():
            tensors[name if key == "weight" else f"{name}.{key}"] = part
    save_file(tensors, folder / "model.safetensors")
    raw = read_json(folder / "config.json")
    raw["quantization_config"] = {
        "quant_method": "bitsandbytes",
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": is_nested,
        "llm_int8_skip_modules": [skips] if skips else None,
    }
    (folder / "config.json").write_text(json.dumps(raw), encoding="utf-8")
    return folder
