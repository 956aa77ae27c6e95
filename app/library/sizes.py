"""Sizes, speeds and verdicts in words."""

from __future__ import annotations

from medusa_core.api import format_bits
from medusa_core.messages import Fit, MemoryPlan

GIB = 1 << 30
FIT_WORDS = {Fit.FITS: "Fits", Fit.TIGHT: "Just fits", Fit.NO: "Too large"}


def gib(nbytes: int) -> str:
    """Memory, in GiB, or in MiB where that says more."""
    if abs(nbytes) < GIB // 10:
        return f"{nbytes / (1 << 20):.0f} MiB"
    size = nbytes / GIB
    digits = 2 if size < 10 else 1 if size < 100 else 0
    return f"{size:.{digits}f} GiB"


def on_disk(nbytes: int) -> str:
    """Bytes of files, in the units that disks are sold in."""
    if nbytes >= 10**9:
        return f"{nbytes / 1e9:.1f} GB"
    return f"{nbytes / 1e6:.0f} MB" if nbytes >= 10**6 else f"{nbytes / 1e3:.0f} kB"


def duration(seconds: float) -> str:
    """A time that is left."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def verdict(plan: MemoryPlan, how: str = "") -> str:
    """Does it fit, and by how much?

    Args:
        plan: Where the memory goes.
        how: As what it would be loaded, such as `(4-bit)`.
    """
    words = f"{FIT_WORDS[plan.fit]} {how}".rstrip()
    if plan.free_bytes >= 0:
        return f"{words}, {gib(plan.free_bytes)} free"
    return f"{words}: needs {gib(-plan.free_bytes)} more than the {gib(plan.total_bytes)} here"


def loaded_as(linears: str) -> str:
    """A weight format behind a verdict."""
    return f"({format_bits(linears)}-bit)" if linears else "unchanged"
