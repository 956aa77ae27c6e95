"""The most memory that this process has held."""

from __future__ import annotations

import sys

import psutil


def peak_bytes() -> int:
    """Bytes of this computer's memory, at most so far."""
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
