"""Sizes, speeds and verdicts in words."""

from __future__ import annotations

from medusa_core.messages import Fit, MemoryPlan

GIB = 1 << 30
FIT_WORDS = {Fit.FITS: "fits", Fit.TIGHT: "tight", Fit.NO: "too large"}


def gib(nbytes: int) -> str:
    """Memory, in GiB, or in MiB where that says more."""
    if abs(nbytes) < GIB // 10:
        return f"{nbytes / (1 << 20):.0f} MiB"
    return f"{nbytes / GIB:.2f} GiB" if nbytes < 10 * GIB else f"{nbytes / GIB:.1f} GiB"


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


def verdict(plan: MemoryPlan) -> str:
    """Does it fit, and by how much?"""
    if plan.free_bytes >= 0:
        return f"{FIT_WORDS[plan.fit]}: {gib(plan.free_bytes)} left"
    return f"{FIT_WORDS[plan.fit]}: {gib(-plan.free_bytes)} missing"
