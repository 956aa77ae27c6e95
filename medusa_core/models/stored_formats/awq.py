"""AWQ's files: codes packed along the outputs, eight to a word of 32 bits, in an order of its own.

Source: the layout "gemm" that AutoAWQ writes (Lin et al. 2023, "AWQ").
"""

from __future__ import annotations

import re
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

_METHOD = "AWQ"
_PLACES = (0, 4, 1, 5, 2, 6, 3, 7)  # where each of eight outputs stands in its word


def _format_of(settings: Mapping[str, Any]) -> StoredFormat:
    version = str(settings.get("version", "gemm")).lower()
    if version != "gemm":
        raise unsupported(_METHOD, version[:40], "Choose the version gemm")
    if (bits := whole(settings, "bits", whole(settings, "w_bit", 4, _METHOD), _METHOD)) != 4:
        raise unsupported(_METHOD, f"{bits} bits", "Choose 4 bits")
    group = whole(settings, "group_size", whole(settings, "q_group_size", 128, _METHOD), _METHOD)
    plain = names(settings.get("modules_to_not_convert"), _METHOD)
    left_out = tuple(f"re:.*{re.escape(part)}" for part in plain)  # parts of names
    packing = checked(Packing(_METHOD, 4, max(0, group), False, left_out=left_out))
    return StoredFormat(packing.kind, packing)


def _holds(checkpoint: Checkpoint, part: LinearSpec) -> bool:
    from medusa_core.models.checkpoints.grouped import holds_packed

    is_gptq = any(f"{piece.name}.g_idx" in checkpoint.names for piece in part.pieces)
    return not is_gptq and holds_packed(checkpoint, part, "qweight")


def _read(
    checkpoint: Checkpoint, part: LinearSpec, config: ModelConfig, formats: PartFormats
) -> tuple[QuantSpec, dict[str, Tensor]]:
    from medusa_core.models.checkpoints.grouped import read_packed

    return read_packed(_piece, checkpoint, part, config.head_rows, config.packing, formats)


def _piece(checkpoint: Checkpoint, name: str, _: Packing) -> Grouped:
    from medusa_core.models.checkpoints.grouped import (
        Grouped,
        middle,
        scales_of,
        unpacked,
        words_of,
    )

    codes = unpacked(words_of(checkpoint, f"{name}.qweight"), 4, _PLACES).t().contiguous()
    scales = scales_of(checkpoint, f"{name}.scales").t().contiguous()
    zeros = f"{name}.qzeros"
    if zeros not in checkpoint.names:  # of versions without zeros
        return middle(codes, scales, 4)
    stored = unpacked(words_of(checkpoint, zeros), 4, _PLACES).t().contiguous()
    return Grouped(codes, stored, scales)


SPEC = StoredSpec("awq", _format_of, _holds, _read)
