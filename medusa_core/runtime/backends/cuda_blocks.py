"""Attention of a few rows on a card by our own kernels, split over the keys.

Torch's kernels that take a mask run a block per head, which leaves most of a card idle; these run a
block per head and split. Keys and values stay in the cache's dtype, also where the model computes
in float32, and keys that no row attends to aren't read.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from medusa_core.runtime.backends.attention import attend_by_products
from medusa_core.system import cuda
from medusa_core.system.native.cuda.kernels import DTYPES, Kernels, load_kernels

log = logging.getLogger(__name__)

_MMA_DIMS = (64, 96, 128, 256)  # head_dim that attention.cu is compiled for
_MOST_ROWS = 64  # nodes of a tree
_MOST_DIMS = 256
_KEYS_PER_SPLIT, _MOST_SPLITS = 256, 32
_MOST_ERROR = 0.005  # relative; halves lose 5e-4


@dataclass(frozen=True, slots=True)
class CardAttention:
    """Attention over a cache in 16 bits.

    Attributes:
        kernels: Compiled kernels for the card.
        has_tensor_cores: The card multiplies halves by tensor cores.
    """

    kernels: Kernels
    has_tensor_cores: bool

    def takes(self, q: Tensor, keys: Tensor) -> bool:
        """Whether the kernels compute these rows: few, without gradients, over 16-bit keys."""
        return (
            len(q) <= _MOST_ROWS
            and q.shape[-1] <= _MOST_DIMS
            and q.shape[-1] % 8 == 0
            and keys.dtype in (torch.float16, torch.bfloat16)
            and keys.stride()[1:] == (keys.shape[2], 1)
            and keys.data_ptr() % 16 == 0
            and not q.requires_grad
        )

    def __call__(
        self,
        q: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor | None,
        sinks: Tensor | None = None,
        softcap: float | None = None,
    ) -> Tensor:
        """Attend to cached keys.

        Args:
            q: [n, q heads, head_dim], scaled.
            keys: [kv heads, s, head_dim], float16 or bfloat16.
            values: [kv heads, s, head_dim], with the strides of `keys`.
            mask: Additive [≥ n, s], of which the first n rows count; None if every row attends to
                every key.
            sinks: Attention sinks. [q heads]
            softcap: `attn_logit_softcapping`.

        Returns:
            [n, q heads · head_dim]
        """
        nodes, q_heads, head_dim = q.shape
        kv_heads, num_keys = keys.shape[:2]
        q = q.contiguous()
        rows = nodes * q_heads // kv_heads
        splits = max(1, min(_MOST_SPLITS, num_keys // _KEYS_PER_SPLIT))
        sums = q.new_empty(kv_heads, splits, rows, head_dim, dtype=torch.float32)
        statistics = q.new_empty(kv_heads, splits, rows, 2, dtype=torch.float32)
        uses_mma = self.has_tensor_cores and head_dim in _MMA_DIMS
        masked = (None, 0, 0) if mask is None else (mask, DTYPES[mask.dtype], mask.stride(0))
        arguments = (
            *(q, DTYPES[q.dtype], keys, values, DTYPES[keys.dtype], keys.stride(0), *masked),
            *(sums, statistics, nodes, q_heads, kv_heads, num_keys, splits, softcap or 0.0),
        )
        if uses_mma:
            grid = kv_heads * splits * -(-rows // 64)
            self.kernels.launch(f"attend_mma_{head_dim}", grid, 128, *arguments)
        else:
            grid = kv_heads * splits * -(-rows // 16)
            self.kernels.launch("attend_dot", grid, 128, *arguments, head_dim)
        out = torch.empty_like(q)
        sinks_dtype = 0 if sinks is None else DTYPES[sinks.dtype]
        self.kernels.launch(
            "merge_splits", kv_heads * rows, -(-head_dim // 32) * 32,
            sums, statistics, sinks, sinks_dtype, out, DTYPES[q.dtype],
            nodes, q_heads, kv_heads, splits, head_dim,
        )  # fmt: skip
        return out.view(nodes, q_heads * head_dim)


@cache
def card_attention(device: torch.device) -> CardAttention | None:
    """Return attention by a card's kernels; None if they are missing or compute wrong results."""
    kernels = load_kernels(device) if device.type == "cuda" else None
    if kernels is None:
        return None
    attention = CardAttention(kernels, cuda.has_tensor_cores(device))
    for head_dim in (*_MMA_DIMS, 80):
        if not _is_correct(attention, head_dim, device):
            log.warning("the kernel for attention is wrong on %s: not used", cuda.name(device))
            return None
    return attention


def _is_correct(attention: CardAttention, head_dim: int, device: torch.device) -> bool:
    """Compare a tree of 7 nodes over 530 keys with torch in float64."""
    nodes, q_heads, kv_heads, num_keys = 7, 4, 2, 530
    generator = torch.Generator().manual_seed(head_dim)
    shapes = ((nodes, q_heads, head_dim), *[(kv_heads, num_keys, head_dim)] * 2)
    q, keys, values = (torch.randn(*shape, generator=generator).half() for shape in shapes)
    q *= head_dim**-0.5
    mask = torch.zeros(nodes, num_keys)
    mask[torch.rand(nodes, num_keys, generator=generator) < 0.3] = -torch.inf
    mask[:, 256:400] = -torch.inf  # tiles that are skipped
    wide = mask.double().repeat(q_heads // kv_heads, 1)
    expected = attend_by_products(q.double(), keys.double(), values.double(), wide)
    torch.full((kv_heads, num_keys, head_dim), torch.nan, device=device)  # what isn't written
    on_card = attention(q.to(device), keys.to(device), values.to(device), mask.to(device))
    found = on_card.cpu().double()
    return bool((found - expected).norm() / expected.norm() < _MOST_ERROR)
