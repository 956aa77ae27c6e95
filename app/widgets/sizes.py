"""Formats sizes, speeds, durations and verdicts."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication

from app.i18n.numbers import Number
from app.i18n.words import QT_TRANSLATE_NOOP
from medusa_core.api import format_bits
from medusa_core.messages import Fit, MemoryPlan

GIB = 1 << 30
FIT_WORDS = {
    Fit.FITS: QT_TRANSLATE_NOOP("Library", "Fits"),
    Fit.TIGHT: QT_TRANSLATE_NOOP("Library", "Just fits"),
    Fit.NO: QT_TRANSLATE_NOOP("Library", "Too large"),
}


def gib(nbytes: int) -> str:
    """Format a memory size in GiB, or in MiB if it is small."""
    if abs(nbytes) < GIB // 10:
        return f"{nbytes / (1 << 20):.0f} MiB"
    size = nbytes / GIB
    digits = 2 if size < 10 else 1 if size < 100 else 0
    return f"{Number(size):.{digits}f} GiB"


def on_disk(nbytes: int) -> str:
    """Format a file size in decimal units."""
    if nbytes >= 10**9:
        return f"{Number(nbytes / 1e9):.1f} GB"
    return f"{nbytes / 1e6:.0f} MB" if nbytes >= 10**6 else f"{nbytes / 1e3:.0f} kB"


def parameters(count: int) -> str:
    """Format a number of parameters in billions or millions."""
    return f"{Number(count / 1e9):,.1f} B" if count >= 10**9 else f"{Number(count / 1e6):,.1f} M"


def speed(tokens_per_s: float) -> str:
    """Format an estimate of tokens per second with few digits."""
    return f"{tokens_per_s:.0f}" if tokens_per_s >= 10 else f"{Number(tokens_per_s):.1f}"


def duration(seconds: float) -> str:
    """Format the time left."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{Number(minutes / 60):.1f} h"


def verdict(plan: MemoryPlan, how: str = "") -> str:
    """Say whether a plan fits, and by how much.

    Args:
        plan: Memory plan.
        how: Weight format, such as `(4-bit)`.
    """
    words = f"{library_text(FIT_WORDS[plan.fit])} {how}".rstrip()
    if plan.free_bytes >= 0:
        free = QCoreApplication.translate("Library", "{0}, {1} left")
        return free.format(words, gib(plan.free_bytes))
    lacks = QCoreApplication.translate("Library", "{0}: needs {1} more than the {2} here")
    return lacks.format(words, gib(-plan.free_bytes), gib(plan.total_bytes))


def library_text(text: str) -> str:
    """Return a text of the model manager in the window's language."""
    return QCoreApplication.translate("Library", text)


def loaded_as(linears: str) -> str:
    """Return the weight format for a verdict."""
    if not linears:
        return ""
    return QCoreApplication.translate("Library", "({0}-bit)").format(format_bits(linears))
