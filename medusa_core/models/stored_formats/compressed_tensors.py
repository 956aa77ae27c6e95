"""Files of the compressed-tensors library: whole numbers of 4 or 8 bits, packed or plain bytes.

Inputs may be rounded, too, where such a model is served; here they are as the step has them.
Source: the layouts `pack-quantized` and `int-quantized` of compressed-tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.models.checkpoints.packing import (
    Packing,
    checked,
    names,
    unsupported,
    whole,
)
from medusa_core.models.stored import StoredFormat, StoredSpec

if TYPE_CHECKING:
    from torch import Tensor

    from medusa_core.models.blocks.tensors import LinearSpec
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.checkpoints.grouped import Grouped
    from medusa_core.models.config import ModelConfig
    from medusa_core.models.quant.choice import PartFormats
    from medusa_core.models.quant.format import QuantSpec

_METHOD = "compressed-tensors"
_FORMS = ("pack-quantized", "int-quantized")


def _format_of(settings: Mapping[str, Any]) -> StoredFormat:
    groups = settings.get("config_groups")
    schemes = list(groups.values()) if isinstance(groups, Mapping) else []
    scheme = schemes[0] if len(schemes) == 1 and isinstance(schemes[0], Mapping) else {}
    weights = scheme.get("weights")
    if not isinstance(weights, Mapping) or scheme.get("targets") != ["Linear"]:
        raise unsupported(_METHOD, "several schemes", "Choose one with one scheme for all layers")
    form = scheme.get("format") or settings.get("format")
    if form not in _FORMS or weights.get("type", "int") != "int":
        raise unsupported(_METHOD, str(form)[:40], "Choose whole numbers of 4 or 8 bits")
    if weights.get("actorder") not in (None, False, "weight", "static"):
        raise unsupported(_METHOD, "columns in another order, actorder", "Choose one without it")
    is_by_row = weights.get("strategy") == "channel"
    if not is_by_row and weights.get("strategy") != "group":
        raise unsupported(_METHOD, "one scale for a matrix", "Choose groups, or a scale a row")
    packing = checked(
        Packing(
            _METHOD,
            whole(weights, "num_bits", 8, _METHOD),
            0 if is_by_row else max(0, whole(weights, "group_size", 128, _METHOD)),
            bool(weights.get("symmetric", True)),
            left_out=names(settings.get("ignore"), _METHOD),
        )
    )
    return StoredFormat(packing.kind, packing)


def _holds(checkpoint: Checkpoint, part: LinearSpec) -> bool:
    from medusa_core.models.checkpoints.grouped import holds_packed

    return holds_packed(checkpoint, part, "weight_scale")


def _read(
    checkpoint: Checkpoint, part: LinearSpec, config: ModelConfig, formats: PartFormats
) -> tuple[QuantSpec, dict[str, Tensor]]:
    from medusa_core.models.checkpoints.grouped import read_packed

    return read_packed(_piece, checkpoint, part, config.head_rows, config.packing, formats)


def _piece(checkpoint: Checkpoint, name: str, packing: Packing) -> Grouped:
    import torch

    from medusa_core.models.checkpoints.grouped import (
        Grouped,
        middle,
        scales_of,
        unpacked,
        words_of,
    )

    if f"{name}.weight_shape" in checkpoint.names:
        checkpoint.integers(f"{name}.weight_shape")  # config.json says it, too
    if f"{name}.weight_packed" in checkpoint.names:
        codes = unpacked(words_of(checkpoint, f"{name}.weight_packed"), packing.bits)
    else:  # signed bytes
        codes = checkpoint.integers(f"{name}.weight").to(torch.int16) + (1 << (packing.bits - 1))
    scales = scales_of(checkpoint, f"{name}.weight_scale")
    scales = scales.view(len(codes), -1) if scales.numel() % max(1, len(codes)) == 0 else scales
    zeros = f"{name}.weight_zero_point"
    if packing.is_symmetric:
        if zeros in checkpoint.names:
            checkpoint.raw(zeros)  # the middle, all of them
        return middle(codes, scales, packing.bits)
    stored = unpacked(words_of(checkpoint, zeros).t().contiguous(), packing.bits)
    return Grouped(codes, stored.t()[: len(codes)].contiguous(), scales)


SPEC = StoredSpec("compressed-tensors", _format_of, _holds, _read)
