"""What a cubin says about its kernels: registers, stack and loops, without NVIDIA's tools.

A cubin is an ELF file. A kernel's code is the section `.text.NAME`; `.nv.info` has the registers
and the frame size of each kernel. An instruction has 16 bytes, on Pascal eight, where every fourth
word says how the next three are issued.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

# Format and attribute in `.nv.info`, each followed by a symbol and a number.
_FRAME_SIZE, _REGISTERS = (0x04, 0x11), (0x04, 0x2F)
_LEAST_LOOP = 20  # instructions; smaller loops aren't what a kernel spends its time in


class KernelResources(NamedTuple):
    """Registers and memory of a kernel.

    Attributes:
        registers: Registers of 32 bits.
        stack_bytes: Local memory: spilled registers and arrays that have no registers.
        code_bytes: Size of the code.
        loop_instructions: Instructions of the first loop that isn't tiny and has none within; 0 if
            there is none, and since Hopper, whose branches this can't read.
    """

    registers: int
    stack_bytes: int
    code_bytes: int
    loop_instructions: int


def kernel_resources(cubin: bytes) -> dict[str, KernelResources]:
    """Return the resources of every kernel, by name."""
    sections = list(_sections(cubin))
    # The compute capability is the first byte of the ELF header's flags, since 12.0 the second.
    capability = max(cubin[0x30:0x32])
    is_pascal = capability < 70
    by_name = {section.name: section for section in sections}
    symbols = _symbol_names(by_name[".symtab"].data, by_name[".strtab"].data)
    info = by_name[".nv.info"].data
    stacks, registers = (
        {symbols[number]: value for number, value in _attributes(info, wanted)}
        for wanted in (_FRAME_SIZE, _REGISTERS)
    )
    return {
        name: KernelResources(
            registers[name],
            stacks.get(name, 0),
            len(section.data),
            _main_loop(section.data, is_pascal) if capability < 90 else 0,
        )
        for section in sections
        if section.name.startswith(".text.") and (name := section.name.removeprefix(".text."))
    }


def _main_loop(code: bytes, is_pascal: bool) -> int:
    """Instructions of the first loop without another in it: from its target to its branch."""
    loops = sorted(_backward_branches(code, is_pascal), key=lambda loop: loop[1])
    size = 32 / 3 if is_pascal else 16
    sizes = (round((end - start) / size) for start, end in loops)
    return next((size for size in sizes if size >= _LEAST_LOOP), 0)


def _backward_branches(code: bytes, is_pascal: bool) -> Iterator[tuple[int, int]]:
    """Yield the bytes at which each loop begins and ends."""
    for at in range(0, len(code), 8 if is_pascal else 16):
        if is_pascal:
            (word,) = struct.unpack_from("<Q", code, at)
            is_branch, bits, value, end = word >> 52 == 0xE24, 24, word >> 20 & 0xFFFFFF, at + 8
            is_branch &= at % 32 != 0
        else:
            low, high = struct.unpack_from("<QQ", code, at)
            value = low >> 34 | (high & 0x3FFFF) << 30
            is_branch, bits, end = low & 0xFFF == 0x947, 48, at + 16
        offset = value - (1 << bits if value >> bits - 1 else 0)
        start = end + offset * (1 if is_pascal else 4)
        if is_branch and 0 <= start < at:  # not the branch to itself that ends a kernel
            yield start, end


class _Section(NamedTuple):
    name: str
    data: bytes


def _sections(cubin: bytes) -> Iterator[_Section]:
    assert cubin[:4] == b"\x7fELF"
    (start,) = struct.unpack_from("<Q", cubin, 0x28)
    size, count, of_names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, start + i * size) for i in range(count)]
    names = headers[of_names]
    for name, kind, _, _, offset, length, _, _, _, _ in headers:
        first = names[4] + name
        text = cubin[first : cubin.index(b"\0", first)].decode()
        has_no_data = kind == 8  # SHT_NOBITS
        yield _Section(text, b"" if has_no_data else cubin[offset : offset + length])


def _symbol_names(table: bytes, strings: bytes) -> list[str]:
    offsets = (struct.unpack_from("<I", table, at)[0] for at in range(0, len(table), 24))
    return [strings[at : strings.index(b"\0", at)].decode() for at in offsets]


def _attributes(info: bytes, wanted: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """Yield the symbol and the number of each entry of a kind."""
    at = 0
    while at < len(info):
        form, attribute, size = struct.unpack_from("<BBH", info, at)
        has_payload = form == 0x04
        if (form, attribute) == wanted:
            yield struct.unpack_from("<II", info, at + 4)
        at += 4 + (size if has_payload else 0)
