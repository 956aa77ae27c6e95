"""Attention of a few rows over cached keys and values.

Backends share one signature; the first that takes the device serves. Queries arrive scaled.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


def attend_by_products(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Two batched products and a softmax: the fastest way for few rows on a CPU.

    Args:
        q: [n, q heads, head_dim], scaled, in the cache's dtype.
        keys: [kv heads, s, head_dim]
        values: [kv heads, s, head_dim]
        mask: Additive [q heads / kv heads · n, s] (rows repeated per query head of a group), or
            None if every row sees everything.

    Returns:
        [n, q heads · head_dim]
    """
    num_rows, num_kv = len(q), len(keys)
    grouped = by_kv_head(q, num_kv)
    transposed = keys.transpose(1, 2)
    if mask is None:
        scores = torch.bmm(grouped, transposed)
    else:
        scores = torch.baddbmm(mask, grouped, transposed)
    mixed = torch.bmm(torch.softmax(scores, dim=-1), values)
    return by_row(mixed, num_rows)


def attend_fused(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Torch's fused kernel; arguments as in `attend_by_products`."""
    num_rows, num_kv = len(q), len(keys)
    grouped = by_kv_head(q, num_kv).unsqueeze(0)
    mixed = F.scaled_dot_product_attention(
        grouped, keys.unsqueeze(0), values.unsqueeze(0), attn_mask=mask, scale=1.0
    )
    return by_row(mixed.squeeze(0), num_rows)


def choose_attention(device: torch.device) -> Attend:
    """The backend for a device."""
    return attend_by_products if device.type == "cpu" else attend_fused


def by_kv_head(q: Tensor, num_kv: int) -> Tensor:
    """Query heads of a group become rows, so that keys are read once and never repeated.

    [n, q heads, head_dim] → [kv heads, group · n, head_dim]
    """
    num_rows, num_q, head_dim = q.shape
    if num_q == num_kv:
        return q.transpose(0, 1)
    grouped = q.view(num_rows, num_kv, num_q // num_kv, head_dim).permute(1, 2, 0, 3)
    return grouped.reshape(num_kv, -1, head_dim)


def by_row(mixed: Tensor, num_rows: int) -> Tensor:
    """Rows as they were: [kv heads, group · n, head_dim] → [n, q heads · head_dim]"""
    num_kv, _, head_dim = mixed.shape
    by_row = mixed.view(num_kv, -1, num_rows, head_dim).permute(2, 0, 1, 3)
    return by_row.reshape(num_rows, -1)
