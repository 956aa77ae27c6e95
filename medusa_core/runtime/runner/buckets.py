"""Numbers of rows and cache slots that steps with static shapes are padded to. Needs no torch."""

from __future__ import annotations

from collections.abc import Sequence

# 7: from 8 rows on bitsandbytes unpacks a whole matrix on cards without tensor cores.
ROW_BUCKETS = (1, 4, 7, 8, 16, 32, 64)
LENGTH_BUCKETS = (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072)
MAX_GRAPHS = len(ROW_BUCKETS)  # CUDA graphs that are kept


def bucket_of(needed: int, buckets: Sequence[int]) -> int:
    """Return the smallest bucket that is large enough, or the number itself if none is."""
    return next((bucket for bucket in buckets if bucket >= needed), needed)
