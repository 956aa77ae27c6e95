"""Which sizes the compiled step computes. Nothing here needs torch."""

from __future__ import annotations

LANES = 16  # of lanes.h


def fits_lanes(*sizes: int) -> bool:
    """Do its lanes divide rows of these sizes?"""
    return all(size % LANES == 0 for size in sizes)
