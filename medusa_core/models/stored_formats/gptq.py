"""GPTQ's files: codes packed along the inputs, eight to a word of 32 bits.

Source: the layout that AutoGPTQ and GPTQModel write (Frantar et al. 2022, "GPTQ").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.models.checkpoints.packing import (
    Packing,
    checked,
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

_METHOD = "GPTQ"


def _format_of(settings: Mapping[str, Any]) -> StoredFormat:
    if settings.get("desc_act"):
        raise unsupported(_METHOD, "columns in another order, desc_act", "Choose one without it")
    if settings.get("lm_head"):
        raise unsupported(_METHOD, "the last projection, too", "Choose one without that")
    form = settings.get("checkpoint_format", "gptq")
    if form not in ("gptq", "gptq_v2"):
        raise unsupported(_METHOD, str(form)[:40], "Choose the format gptq")
    group = whole(settings, "group_size", 128, _METHOD)
    packing = checked(
        Packing(
            _METHOD,
            whole(settings, "bits", 4, _METHOD),
            max(0, group),
            bool(settings.get("sym", True)),
            zero_shift=1 if form == "gptq" else 0,
        )
    )
    return StoredFormat(packing.kind, packing)


def _holds(checkpoint: Checkpoint, part: LinearSpec) -> bool:
    from medusa_core.models.checkpoints.grouped import holds_packed

    # AWQ's words run along the outputs; its files have no g_idx.
    is_gptq = any(f"{piece.name}.g_idx" in checkpoint.names for piece in part.pieces)
    return is_gptq and holds_packed(checkpoint, part, "qweight")


def _read(
    checkpoint: Checkpoint, part: LinearSpec, config: ModelConfig, formats: PartFormats
) -> tuple[QuantSpec, dict[str, Tensor]]:
    from medusa_core.models.checkpoints.grouped import read_packed

    return read_packed(_piece, checkpoint, part, config.head_rows, config.packing, formats)


def _piece(checkpoint: Checkpoint, name: str, packing: Packing) -> Grouped:
    import torch

    from medusa_core.errors import CheckpointError
    from medusa_core.models.checkpoints.grouped import (
        Grouped,
        middle,
        scales_of,
        unpacked,
        words_of,
    )

    codes = unpacked(words_of(checkpoint, f"{name}.qweight").t().contiguous(), packing.bits)
    scales = scales_of(checkpoint, f"{name}.scales").t().contiguous()
    places = checkpoint.integers(f"{name}.g_idx")
    in_order = torch.arange(codes.shape[1]) // (packing.group or codes.shape[1])
    if not torch.equal(places, in_order):
        raise CheckpointError(
            f"{name} has its columns in another order (g_idx).",
            "Choose a version of this model that was made without desc_act, or a GGUF file.",
        )
    stored = unpacked(words_of(checkpoint, f"{name}.qzeros"), packing.bits).t().contiguous()
    if packing.is_symmetric:
        return middle(codes, scales, packing.bits)
    return Grouped(codes, stored + packing.zero_shift, scales)


SPEC = StoredSpec("gptq", _format_of, _holds, _read)
