"""Which of torch's attention kernels a card takes, and what that one demands.

Source: torch 2.13, `sdp_utils.cpp`, `attention.cpp` (`preprocess_mask`) and
`mem_eff_attention/kernel_forward.h`.
"""

from __future__ import annotations

import torch
from torch import Tensor

_HALVES = (torch.float16, torch.bfloat16)
_PADDED_STRIDE = 8  # numbers: torch copies a mask whose strides aren't multiples of this
POINTER_BYTES = 16


class AttentionError(RuntimeError):
    """Raised for arguments that a real card's kernel would refuse."""


def check_attention(
    capability: tuple[int, int], q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
) -> str:
    """The kernel's name: flash, efficient or math.

    Raises:
        AttentionError: The chosen kernel refuses what it is given.
    """
    if not q.dtype == keys.dtype == values.dtype:
        raise AttentionError(
            f"attention: queries, keys, values are {q.dtype}, {keys.dtype}, {values.dtype}"
        )
    if mask is not None and mask.dtype not in (torch.bool, q.dtype):
        raise AttentionError(f"attention: the mask is {mask.dtype}, queries are {q.dtype}")
    if q.dtype == torch.float64:
        return "math"
    if q.dtype == torch.bfloat16 and capability < (8, 0):
        return "math"
    if mask is None and q.dtype in _HALVES and capability >= (8, 0):
        return "flash"
    if any(tensor.stride(-1) != 1 for tensor in (q, keys, values)) or q.shape[-1] % 8:
        return "math"
    for name, tensor in (("query", q), ("key", keys), ("value", values)):
        _check_pointer(name, tensor)
    if mask is not None:
        _check_mask(mask)
    return "efficient"


def is_padded(mask: Tensor) -> bool:
    """Return whether torch copies this mask to align its rows."""
    strides = mask.stride()
    return strides[-1] != 1 or any(stride % _PADDED_STRIDE for stride in strides[:-1])


def _check_mask(mask: Tensor) -> None:
    if not is_padded(mask):
        _check_pointer("attn_bias", mask)


def _check_pointer(name: str, tensor: Tensor) -> None:
    if tensor.storage_offset() * tensor.itemsize % POINTER_BYTES:
        raise AttentionError(
            f"{name} is not correctly aligned: it begins at number {tensor.storage_offset()} of "
            f"{tensor.itemsize} bytes"
        )
