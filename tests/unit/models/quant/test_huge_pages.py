"""Memory that Linux may back by huge pages."""

import mmap
import re
from pathlib import Path

import pytest
import torch

from medusa_core.models.quant.tiles import prefer_huge_pages

MIB = 1 << 20


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="the kernel has no huge pages"
)
def test_whole_huge_pages_inside_of_a_range_are_asked_for() -> None:
    # A mapping of its own: the allocator may return memory that was advised before.
    memory = torch.frombuffer(mmap.mmap(-1, 9 * MIB), dtype=torch.uint8)
    first, end = memory.data_ptr(), memory.data_ptr() + memory.numel()
    prefer_huge_pages(first, memory.numel())
    mappings = Path("/proc/self/smaps").read_text(encoding="ascii", errors="replace")
    advised = 0
    for entry in re.split(r"\n(?=[0-9a-f]+-[0-9a-f]+ )", mappings):
        begin, stop = (int(part, 16) for part in entry.split(maxsplit=1)[0].split("-"))
        if " hg" in entry.partition("VmFlags:")[2]:
            advised += max(0, min(end, stop) - max(first, begin))
    assert advised in (6 * MIB, 8 * MIB)


def test_a_range_without_a_whole_huge_page_is_left_alone() -> None:
    memory = torch.zeros(MIB, dtype=torch.uint8)
    prefer_huge_pages(memory.data_ptr(), memory.numel())
    assert not memory.any()
