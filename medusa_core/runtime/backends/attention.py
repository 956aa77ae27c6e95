"""Attention of a few rows over cached keys and values.

Backends share one signature; the first that takes the device serves. Queries arrive scaled.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

Attend = Callable[[Tensor, Tensor, Tensor, Tensor | None], Tensor]


def attend_by_products(
    q: Tensor,
    keys: Tensor,
    values: Tensor,
    mask: Tensor | None,
    sinks: Tensor | None = None,
    softcap: float | None = None,
) -> Tensor:
    """Two batched products and a softmax: the fastest way for few rows on a CPU.

    Args:
        q: [n, q heads, head_dim], scaled, in the cache's dtype.
        keys: [kv heads, s, head_dim]
        values: [kv heads, s, head_dim]
        mask: Additive [q heads / kv heads · n, s] (rows repeated per query head of a group), or
            None if every row sees everything.
        sinks: Scores that belong to no row, to which a part of the weights goes (GPT-OSS, OpenAI
            2025). [q heads], or None.
        softcap: `attn_logit_softcapping`, before the mask; None for none.

    Returns:
        [n, q heads · head_dim]
    """
    num_rows, num_kv = len(q), len(keys)
    grouped = by_kv_head(q, num_kv)
    transposed = keys.transpose(1, 2)
    if softcap is not None:
        scores = torch.tanh(torch.bmm(grouped, transposed) / softcap) * softcap
        scores = scores if mask is None else scores + mask
    elif mask is None:
        scores = torch.bmm(grouped, transposed)
    else:
        scores = torch.baddbmm(mask, grouped, transposed)
    if sinks is None:
        weights = torch.softmax(scores, dim=-1)
    else:
        sink = sinks.to(scores).view(num_kv, -1, 1).repeat_interleave(num_rows, dim=1)
        weights = torch.softmax(torch.cat([scores, sink], dim=-1), dim=-1)[..., :-1]
    return by_row(torch.bmm(weights, values), num_rows)


def attend_fused(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
    """Compute attention by torch's fused kernel; see `attend_by_products`."""
    num_rows, num_kv = len(q), len(keys)
    grouped = by_kv_head(q, num_kv).unsqueeze(0)
    mixed = F.scaled_dot_product_attention(
        grouped, keys.unsqueeze(0), values.unsqueeze(0), attn_mask=mask, scale=1.0
    )
    return by_row(mixed.squeeze(0), num_rows)


def attend_sparsely(attended: int) -> Attend:
    """Return attention over the `attended` largest weights of each row and head.

    Keys are read whole. A row chooses by itself, so drafts change nothing; but what is left out is
    lost, and the text isn't that of full attention.

    Source: Sheng et al., "FlexGen" (2023), section 5.2.
    """

    def attend(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Attend to the rows with the largest weights; see `attend_by_products`."""
        if keys.shape[1] <= attended:
            return attend_by_products(q, keys, values, mask)
        num_kv = len(keys)
        scores = torch.bmm(by_kv_head(q, num_kv), keys.transpose(1, 2))
        weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
        largest, places = weights.topk(attended, dim=-1)  # [kv heads, group · n, attended]
        heads = torch.arange(num_kv, device=q.device)[:, None, None]
        mixed = (largest.unsqueeze(2) @ values[heads, places]).squeeze(2)
        return by_row(mixed, len(q))

    return attend


def attend_in_groups(group_size: int, is_causal: bool = False) -> Attend:
    """Return attention of rows that share some keys, and have others that only their group sees.

    Drafts of many positions are trained side by side: all of them see the text before, and each
    sees its own draft. A mask over all rows would hide nearly all of their keys.

    Args:
        group_size: Consecutive rows of a group; the keys after the shared ones are divided evenly
            among the groups, in their order.
        is_causal: Row i of a group attends to the group's first i + 1 keys, instead of all.

    Returns:
        Attention whose mask covers the shared keys alone: [q heads / kv heads · n, shared].
    """

    def attend(q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None) -> Tensor:
        """Attend to shared keys and to the own group's; see `attend_by_products`."""
        assert mask is not None
        shared, num_kv, size = mask.shape[1], len(keys), q.shape[-1]
        rows = by_kv_head(q, num_kv)
        num_groups = len(q) // group_size
        per_group = (num_kv, -1, num_groups, group_size)
        own_keys, own_values = (
            part[:, shared:].reshape(num_kv, num_groups, -1, size) for part in (keys, values)
        )
        own = torch.einsum("hgbrd,hbmd->hgbrm", rows.reshape(*per_group, size), own_keys)
        if is_causal:
            later = torch.ones(own.shape[-2:], dtype=torch.bool, device=q.device).triu(1)
            own = own.masked_fill(later, float("-inf"))
        scores = torch.baddbmm(mask, rows, keys[:, :shared].transpose(1, 2))
        weights = torch.softmax(torch.cat([scores, own.flatten(1, 3)], dim=-1), dim=-1)
        weights = weights.to(values.dtype)
        of_own = weights[..., shared:].reshape(own.shape)
        mixed = torch.bmm(weights[..., :shared], values[:, :shared])
        mixed = mixed + torch.einsum("hgbrm,hbmd->hgbrd", of_own, own_values).flatten(1, 3)
        return by_row(mixed, len(q))

    return attend


def choose_attention(device: torch.device, attended: int = 0) -> Attend:
    """Return the attention function for a device.

    Args:
        device: Device that computes.
        attended: Rows whose values are used, those of the largest weights; 0 for all.
    """
    if attended:
        return attend_sparsely(attended)
    return attend_by_products if device.type == "cpu" else attend_fused


def by_kv_head(q: Tensor, num_kv: int) -> Tensor:
    """Make rows of the query heads of a group, so that keys are read once and never repeated.

    [n, q heads, head_dim] → [kv heads, group · n, head_dim]
    """
    num_rows, num_q, head_dim = q.shape
    if num_q == num_kv:
        return q.transpose(0, 1)
    grouped = q.view(num_rows, num_kv, num_q // num_kv, head_dim).permute(1, 2, 0, 3)
    return grouped.reshape(num_kv, -1, head_dim)


def by_row(mixed: Tensor, num_rows: int) -> Tensor:
    """Undo `by_kv_head`. [kv heads, group · n, head_dim] → [n, q heads · head_dim]"""
    num_kv, _, head_dim = mixed.shape
    by_row = mixed.view(num_kv, -1, num_rows, head_dim).permute(2, 0, 1, 3)
    return by_row.reshape(num_rows, -1)
