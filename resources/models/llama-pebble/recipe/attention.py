"""Attention over packed rows: no position sees a document other than its own."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

Visible = Tensor | Sequence[int]


def attend(q: Tensor, k: Tensor, v: Tensor, visible: Visible) -> Tensor:
    """Attention over [B, heads, L, d], where `visible` allows it."""
    if isinstance(visible, Tensor):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
    return attend_runs(q, k, v, visible)


def attend_runs(q: Tensor, k: Tensor, v: Tensor, runs: Sequence[int]) -> Tensor:
    """Causal attention inside each document, document by document.

    A mask over whole rows computes mostly what it then hides, and PyTorch's fused kernel is slow
    in bfloat16 on processors without matrix units: products of each document by itself are twice
    as fast there.

    Args:
        q: queries [B, heads, L, d].
        k: keys, alike.
        v: values, alike.
        runs: lengths of the documents, row after row; they add up to B x L.

    Returns:
        [B, heads, L, d].
    """
    batch, heads, length, width = q.shape
    flat = [x.transpose(0, 1).reshape(heads, batch * length, width) for x in (q, k, v)]
    longest = max(runs)
    hidden = torch.full((longest, longest), -torch.inf, dtype=q.dtype).triu_(1)
    parts = []
    split = (torch.split(x, list(runs), dim=1) for x in flat)
    for queries, keys, values in zip(*split, strict=True):
        num = queries.shape[1]
        scores = torch.baddbmm(hidden[:num, :num], queries, keys.mT, alpha=width**-0.5)
        parts.append(torch.bmm(scores.softmax(-1, dtype=q.dtype), values))
    return torch.cat(parts, dim=1).view(heads, batch, length, width).transpose(0, 1)


def document_mask(document_ids: Tensor) -> Tensor:
    """Which positions each position may see: earlier ones of its own document.

    Args:
        document_ids: [B, L].

    Returns:
        bool [B, 1, L, L], True where row i may see column j.
    """
    length = document_ids.shape[1]
    same = document_ids[:, :, None] == document_ids[:, None, :]
    causal = torch.ones(length, length, dtype=torch.bool, device=document_ids.device).tril()
    return (same & causal)[:, None]


def document_runs(document_ids: Tensor) -> list[int]:
    """Lengths of the documents, row after row; those of [B, L] numbers add up to B x L.

    Args:
        document_ids: [B, L]; a document's positions are neighbours.
    """
    rows = torch.arange(len(document_ids), device=document_ids.device)[:, None]
    both = torch.stack((rows.expand_as(document_ids), document_ids.long()), dim=-1).flatten(0, 1)
    lengths: list[int] = torch.unique_consecutive(both, return_counts=True, dim=0)[1].tolist()
    return lengths
