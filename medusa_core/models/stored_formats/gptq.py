"""GPTQ: codes packed along the inputs, 32 bits to a word.

Source: the layout that AutoGPTQ and GPTQModel write (Frantar et al. 2022, "GPTQ").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.errors import CheckpointError
from medusa_core.i18n import tr
from medusa_core.models.checkpoints.packing import Packing, checked, integer, unsupported
from medusa_core.models.stored import packed_format

if TYPE_CHECKING:
    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.checkpoints.grouped import Grouped

_METHOD = "GPTQ"


def _parse(settings: Mapping[str, Any]) -> Packing:
    """Parse a GPTQ `quantization_config`; activation order isn't supported."""
    if settings.get("desc_act"):
        raise unsupported(
            _METHOD, tr("columns in another order, desc_act"), tr("Choose one without it")
        )
    if settings.get("lm_head"):
        raise unsupported(_METHOD, tr("the last projection, too"), tr("Choose one without that"))
    form = settings.get("checkpoint_format", "gptq")
    if form not in ("gptq", "gptq_v2"):
        raise unsupported(_METHOD, str(form)[:40], tr("Choose the format gptq"))
    return checked(
        Packing(
            _METHOD,
            integer(settings, "bits", 4, _METHOD),
            max(0, integer(settings, "group_size", 128, _METHOD)),
            bool(settings.get("sym", True)),
            zero_shift=1 if form == "gptq" else 0,
        )
    )


def _read_tensor(checkpoint: Checkpoint, name: str, packing: Packing) -> Grouped:
    """Read codes, zero points and scales of a layer; `g_idx` must be in order."""
    import torch

    from medusa_core.models.checkpoints import grouped

    words = grouped.read_words(checkpoint, f"{name}.qweight")
    codes = grouped.unpack(words.t().contiguous(), packing.bits)
    scales = grouped.read_scales(checkpoint, f"{name}.scales").t().contiguous()
    group_of = checkpoint.integers(f"{name}.g_idx")
    in_order = torch.arange(codes.shape[1]) // (packing.group or codes.shape[1])
    if not torch.equal(group_of, in_order):
        raise CheckpointError(
            tr("{0} has its columns in another order (g_idx).", name),
            "Choose a version of this model that was made without desc_act, or a GGUF file.",
        )
    zeros = grouped.read_words(checkpoint, f"{name}.qzeros")
    if packing.is_symmetric:
        return grouped.Grouped.symmetric(codes, scales, packing.bits)
    stored = grouped.unpack(zeros, packing.bits).t().contiguous()
    return grouped.Grouped(codes, stored + packing.zero_shift, scales)


SPEC = packed_format("gptq", _parse, _read_tensor, "g_idx")
