"""Checkpoints packed as GPTQ, AWQ and compressed-tensors publish them, written from their layouts.

Every writer also says which numbers its weights are, by the layout's own formula in float64.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

_LAYER = re.compile(r"model\.layers\.\d+\..+_proj\.weight")
_AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)  # which quant_config each four bits of a word hold
Tensors = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class Packed:
    """A way to pack.

    Attributes:
        quant_config: Its `quantization_config`.
        write: Codes, zeros and scales as tensors by their endings.
        bits: Of a code.
        group: Inputs that share a scale; 0 for all.
        is_symmetric: Zero is the middle.
        dtype: Of scales.
        left_out: Parts that stay plain.
    """

    quant_config: dict[str, Any]
    write: Callable[[Tensor, Tensor, Tensor], Tensors]
    bits: int = 4
    group: int = 32
    is_symmetric: bool = True
    dtype: torch.dtype = torch.float16
    left_out: tuple[str, ...] = field(default=())


def pack_checkpoint(folder: Path, packed: Packed, seed: int = 0) -> Tensors:
    """Pack the layers of a checkpoint with random codes; returns the numbers that they are."""
    generator = torch.Generator().manual_seed(seed)
    tensors = load_file(folder / "model.safetensors")
    numbers: Tensors = {}
    for name in [name for name in tensors if _LAYER.fullmatch(name)]:
        stem = name.removesuffix(".weight")
        if any(left in stem for left in packed.left_out):
            continue
        rows, columns = tensors.pop(name).shape
        groups = columns // (packed.group or columns)
        most = 1 << packed.bits
        codes = torch.randint(0, most, (rows, columns), generator=generator)
        zeros = torch.randint(1, most - 1, (rows, groups), generator=generator)
        if packed.is_symmetric:
            zeros.fill_(most // 2)
        scales = torch.rand(rows, groups, generator=generator) + 0.5
        scales = (scales * 4 / most / columns**0.5).to(packed.dtype)
        for ending, tensor in packed.write(codes, zeros, scales).items():
            tensors[f"{stem}.{ending}"] = tensor.contiguous()
        each = columns // groups
        offset = codes - zeros.repeat_interleave(each, dim=1)
        numbers[name] = offset.double() * scales.double().repeat_interleave(each, dim=1)
    save_file(tensors, folder / "model.safetensors")
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(
        json.dumps(config | {"quantization_config": packed.quant_config}), encoding="utf-8"
    )
    return numbers


def words(codes: Tensor, bits: int) -> Tensor:
    """Codes of the last dimension in words of 32 bits, the first in the lowest bits."""
    per_word = 32 // bits
    parts = codes.reshape(*codes.shape[:-1], -1, per_word).long()
    shifts = torch.arange(per_word) * bits
    whole = (parts << shifts).sum(-1)
    return torch.where(whole >= 1 << 31, whole - (1 << 32), whole).to(torch.int32)


def gptq(bits: int = 4, group: int = 32, sym: bool = True, version: str = "gptq") -> Packed:
    """Write as AutoGPTQ (version "gptq", zeros minus one) and GPTQModel ("gptq_v2") do."""

    def write(codes: Tensor, zeros: Tensor, scales: Tensor) -> Tensors:
        columns = codes.shape[1]
        stored = zeros - (1 if version == "gptq" else 0)
        return {
            "qweight": words(codes, bits).t(),
            "qzeros": words(stored.t().contiguous(), bits),
            "scales": scales.t(),
            "g_idx": (torch.arange(columns) // (group or columns)).to(torch.int32),
        }

    quant_config = {
        "quant_method": "gptq",
        "bits": bits,
        "group_size": group or -1,
        "sym": sym,
        "desc_act": False,
        "checkpoint_format": version,
    }
    return Packed(quant_config, write, bits, group, sym)


def awq(group: int = 32, left_out: tuple[str, ...] = ()) -> Packed:
    """Write as AutoAWQ's version "gemm" does."""

    def across(codes: Tensor) -> Tensor:
        """[outputs, n] → [n, outputs / 8]"""
        eights = codes.t().reshape(codes.shape[1], -1, 8)[..., list(_AWQ_ORDER)]
        return words(eights.flatten(1), 4)

    def write(codes: Tensor, zeros: Tensor, scales: Tensor) -> Tensors:
        return {"qweight": across(codes), "qzeros": across(zeros), "scales": scales.t()}

    quant_config = {
        "quant_method": "awq",
        "bits": 4,
        "group_size": group,
        "version": "gemm",
        "zero_point": True,
        "modules_to_not_convert": list(left_out) or None,
    }
    return Packed(quant_config, write, 4, group, False, left_out=left_out)


def compressed(
    bits: int = 4, group: int = 32, sym: bool = True, form: str = "pack-quantized"
) -> Packed:
    """Write as compressed-tensors does: scales in bfloat16, codes along the inputs."""

    def write(codes: Tensor, zeros: Tensor, scales: Tensor) -> Tensors:
        if form == "int-quantized":
            return {"weight": (codes - 128).to(torch.int8), "weight_scale": scales}
        found = {
            "weight_packed": words(codes, bits),
            "weight_scale": scales,
            "weight_shape": torch.tensor(codes.shape),
        }
        if not sym:
            found["weight_zero_point"] = words(zeros.t().contiguous(), bits).t()
        return found

    weights = {
        "num_bits": bits,
        "type": "int",
        "symmetric": sym,
        "strategy": "group" if group else "channel",
        "group_size": group or None,
        "actorder": None,
    }
    quant_config = {
        "quant_method": "compressed-tensors",
        "format": form,
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head"],
    }
    return Packed(quant_config, write, bits, group, sym, torch.bfloat16)
