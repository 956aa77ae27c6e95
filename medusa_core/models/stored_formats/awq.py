"""AWQ: codes packed along the outputs, eight to a 32-bit word, in an order of their own.

Source: the layout "gemm" that AutoAWQ writes (Lin et al. 2023, "AWQ").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from medusa_core.i18n import tr
from medusa_core.models.checkpoints.packing import (
    Packing,
    checked,
    integer,
    names_containing,
    unsupported,
)
from medusa_core.models.stored import packed_format

if TYPE_CHECKING:
    import torch

    from medusa_core.models.checkpoints.checkpoint import Checkpoint
    from medusa_core.models.checkpoints.grouped import Grouped

_METHOD = "AWQ"
_ORDER = (0, 4, 1, 5, 2, 6, 3, 7)  # position of each of eight outputs within its word


def _parse(settings: Mapping[str, Any]) -> Packing:
    """Parse an AWQ `quantization_config`."""
    version = str(settings.get("version", "gemm")).lower()
    if version != "gemm":
        raise unsupported(_METHOD, version[:40], tr("Choose the version gemm"))
    if (bits := integer(settings, "bits", integer(settings, "w_bit", 4, _METHOD), _METHOD)) != 4:
        raise unsupported(_METHOD, tr("{0} bits", bits), tr("Choose 4 bits"))
    default = integer(settings, "q_group_size", 128, _METHOD)
    group = max(0, integer(settings, "group_size", default, _METHOD))
    ignored = names_containing(settings.get("modules_to_not_convert"), _METHOD)
    return checked(Packing(_METHOD, 4, group, is_symmetric=False, ignored=ignored))


def _read_tensor(checkpoint: Checkpoint, name: str, _: Packing) -> Grouped:
    """Read codes, zero points and scales of a layer, transposed to [rows, columns]."""
    from medusa_core.models.checkpoints import grouped

    def transposed(key: str) -> torch.Tensor:
        """Unpack a tensor and transpose it to [rows, columns]."""
        return grouped.unpack(grouped.read_words(checkpoint, key), 4, _ORDER).t().contiguous()

    codes = transposed(f"{name}.qweight")
    scales = grouped.read_scales(checkpoint, f"{name}.scales").t().contiguous()
    if f"{name}.qzeros" not in checkpoint.names:  # of versions without zero points
        return grouped.Grouped.symmetric(codes, scales, 4)
    return grouped.Grouped(codes, transposed(f"{name}.qzeros"), scales)


# GPTQ's tensors have the same names, and one more: its words run along the inputs.
SPEC = packed_format("awq", _parse, _read_tensor, "qweight", absent="g_idx")
