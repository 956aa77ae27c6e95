"""Precision of training: bfloat16 or float32, whichever is faster, without denormals."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import torch

log = logging.getLogger(__name__)

# Shapes of a training step: rows of a batch, and a layer of the small model.
_ROWS, _INPUTS, _OUTPUTS = 3072, 256, 704
_DTYPES = (torch.float32, torch.bfloat16)
_TURNS = 10
_CLEARLY = 0.8  # float32 is chosen if it takes less than this share of bfloat16's time


@contextmanager
def flush_denormals() -> Iterator[None]:
    """Flush float32 denormals to zero, in this thread and threads that it starts.

    Confident attention produces ever more denormal gradients, and some processors then take two to
    three times as long per step.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@cache
def trains_in_bf16(device: str) -> bool:
    """Whether to train in bfloat16, measured once per process (0.1 s).

    Some processors multiply bfloat16 twice as fast as float32, others half as fast.

    Args:
        device: `cpu`, or `cuda`, which always does.
    """
    if torch.device(device).type != "cpu":
        return True
    turns = [[_product_s(dtype) for dtype in _DTYPES] for _ in range(_TURNS)]
    full, half = (min(times) for times in zip(*turns, strict=True))
    chosen = bool(full >= _CLEARLY * half)
    log.info("trains in %s", "bfloat16" if chosen else "float32")
    return chosen


def _product_s(dtype: torch.dtype) -> float:
    """Return the seconds of one matrix product."""
    x, weight = torch.ones(_ROWS, _INPUTS, dtype=dtype), torch.ones(_OUTPUTS, _INPUTS, dtype=dtype)
    begin = time.perf_counter()
    x @ weight.T
    return time.perf_counter() - begin
