"""compressed-tensors: integers of 4 or 8 bits, packed or as bytes.

Some of these models are meant to be served with quantized inputs, too; here inputs aren't
quantized for that.

Source: the layouts `pack-quantized` and `int-quantized` of compressed-tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.i18n import tr
from medusa_core.models.checkpoints.packing import (
    Packing,
    checked,
    integer,
    layer_names,
    unsupported,
)
from medusa_core.models.stored import packed_format

if TYPE_CHECKING:
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.checkpoints.grouped import Grouped

_METHOD = "compressed-tensors"
_FORMS = ("pack-quantized", "int-quantized")


def _parse(settings: Mapping[str, Any]) -> Packing:
    """Parse the `quantization_config` of llm-compressor: one scheme for all linear layers."""
    groups = settings.get("config_groups")
    schemes = list(groups.values()) if isinstance(groups, Mapping) else []
    scheme = schemes[0] if len(schemes) == 1 and isinstance(schemes[0], Mapping) else {}
    weights = scheme.get("weights")
    if not isinstance(weights, Mapping) or scheme.get("targets") != ["Linear"]:
        raise unsupported(
            _METHOD, tr("several schemes"), tr("Choose one with one scheme for all layers")
        )
    form = scheme.get("format") or settings.get("format")
    if form not in _FORMS or weights.get("type", "int") != "int":
        raise unsupported(_METHOD, str(form)[:40], tr("Choose whole numbers of 4 or 8 bits"))
    if weights.get("actorder") not in (None, False, "weight", "static"):
        raise unsupported(
            _METHOD, tr("columns in another order, actorder"), tr("Choose one without it")
        )
    is_by_row = weights.get("strategy") == "channel"
    if not is_by_row and weights.get("strategy") != "group":
        raise unsupported(
            _METHOD, tr("one scale for a matrix"), tr("Choose groups, or a scale a row")
        )
    return checked(
        Packing(
            _METHOD,
            integer(weights, "num_bits", 8, _METHOD),
            0 if is_by_row else max(0, integer(weights, "group_size", 128, _METHOD)),
            bool(weights.get("symmetric", True)),
            ignored=layer_names(settings.get("ignore"), _METHOD),
        )
    )


def _read_tensor(checkpoint: Checkpoint, name: str, packing: Packing) -> Grouped:
    """Read codes, zero points and scales of a layer, packed or stored as int8."""
    import torch

    from medusa_core.models.checkpoints import grouped

    bits, zeros = packing.bits, f"{name}.weight_zero_point"
    if f"{name}.weight_shape" in checkpoint.names:
        checkpoint.integers(f"{name}.weight_shape")  # marks it as read; config.json has the shape
    if f"{name}.weight_packed" in checkpoint.names:
        codes = grouped.unpack(grouped.read_words(checkpoint, f"{name}.weight_packed"), bits)
    else:  # signed bytes
        codes = checkpoint.integers(f"{name}.weight").to(torch.int16) + (1 << (bits - 1))
    scales = grouped.read_scales(checkpoint, f"{name}.weight_scale")
    scales = scales.view(len(codes), -1) if scales.numel() % max(1, len(codes)) == 0 else scales
    if packing.is_symmetric:
        if zeros in checkpoint.names:
            checkpoint.raw(zeros)  # marks it as read: all are the middle
        return grouped.Grouped.symmetric(codes, scales, bits)
    stored = grouped.unpack(grouped.read_words(checkpoint, zeros).t().contiguous(), bits)
    return grouped.Grouped(codes, stored.t()[: len(codes)].contiguous(), scales)


SPEC = packed_format("compressed-tensors", _parse, _read_tensor, "weight_scale")
