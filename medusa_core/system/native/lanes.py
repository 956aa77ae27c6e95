"""Sizes that the compiled step supports. Nothing here needs torch."""

from __future__ import annotations

LANES = 16  # of lanes.h
MOST_TAPS = 64  # of convolution.h: inputs that a convolution reads


def fits_lanes(*sizes: int) -> bool:
    """Whether sizes are multiples of the vector width of the compiled step."""
    return all(size % LANES == 0 for size in sizes)
