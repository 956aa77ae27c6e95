"""Huge pages for memory that is read again and again, such as weights."""

from __future__ import annotations

import ctypes
import platform
from functools import cache
from typing import Any

_HUGE_PAGE = 1 << 21  # bytes, on x86-64 and most of arm64
_MADV_HUGEPAGE = 14


def prefer_huge_pages(address: int, nbytes: int) -> None:
    """Ask Linux to back memory that was not written yet by huge pages; no effect elsewhere.

    The processor fetches ahead within a page only. No more memory is taken: only huge pages that
    lie inside the range are asked for.

    Args:
        address: Address of the first byte.
        nbytes: Size of the memory.
    """
    first = -(-address // _HUGE_PAGE) * _HUGE_PAGE
    end = (address + nbytes) // _HUGE_PAGE * _HUGE_PAGE
    madvise = _madvise()
    if madvise is not None and end > first:
        madvise(first, end - first, _MADV_HUGEPAGE)  # mere advice: the result doesn't matter


@cache
def _madvise() -> Any:
    """Return the C library's `madvise`; None outside Linux."""
    if platform.system() != "Linux":
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return madvise
