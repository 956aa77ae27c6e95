"""What a cubin says about its kernels: registers and stack, without NVIDIA's tools.

A cubin is an ELF file. A kernel's code is the section `.text.NAME`; `.nv.info` has the registers
and the frame size of each kernel.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

# Format and attribute in `.nv.info`, each followed by a symbol and a number.
_FRAME_SIZE, _REGISTERS = (0x04, 0x11), (0x04, 0x2F)


class KernelResources(NamedTuple):
    """What a thread of a kernel takes.

    Attributes:
        registers: Registers of 32 bits.
        stack_bytes: Local memory: spilled registers and arrays that have no registers.
        code_bytes: Size of the code.
    """

    registers: int
    stack_bytes: int
    code_bytes: int


def kernel_resources(cubin: bytes) -> dict[str, KernelResources]:
    """Return the resources of every kernel, by name."""
    sections = list(_sections(cubin))
    by_name = {section.name: section for section in sections}
    symbols = _symbol_names(by_name[".symtab"].data, by_name[".strtab"].data)
    info = by_name[".nv.info"].data
    stacks, registers = (
        {symbols[number]: value for number, value in _attributes(info, wanted)}
        for wanted in (_FRAME_SIZE, _REGISTERS)
    )
    return {
        name: KernelResources(registers[name], stacks.get(name, 0), len(section.data))
        for section in sections
        if section.name.startswith(".text.") and (name := section.name.removeprefix(".text."))
    }


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
