"""Loads the kernel library for this machine, and declares its functions."""

from __future__ import annotations

import ctypes
import logging
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from ctypes import POINTER, Structure, addressof, byref, c_char_p, c_int32
from functools import cache
from pathlib import Path

import torch

from medusa_core.system.native import structs
from medusa_core.system.native.constants import TensorType
from medusa_core.system.native.structs import SHORT_FUNCTIONS, Entry, LinearStruct, functions
from medusa_core.system.resources import native_dir

log = logging.getLogger(__name__)

_VARIABLE = "MEDUSA_NATIVE"  # 0 disables the library
# Instruction sets with a library, and the CPU features that each needs.
_AVX512 = ("avx512_f", "avx512_bw", "avx512_cd", "avx512_dq", "avx512_vl")
_INSTRUCTIONS = {
    "avx512bf16": (*_AVX512, "avx512_vnni", "avx512_bf16"),
    "avx512vnni": (*_AVX512, "avx512_vnni"),
    "avx512": _AVX512,
    "avx2vnni": ("avx2", "fma3", "avx_vnni"),
    "avx2": ("avx2", "fma3"),
}
_CPU_FILE, _DOT_PRODUCTS = Path("/proc/cpuinfo"), "asimddp"
# The second library is used if it takes less than this share of the first one's time.
_MAX_RELATIVE_TIME, _REPEATS = 0.8, 100
_MAX_LISTED = 5


class _Entry(Structure):
    """`Entry` of abi.c."""

    _fields_ = (
        ("owner", c_char_p),
        ("name", c_char_p),
        ("c_type", c_char_p),
        ("value", c_int32),
        ("size", c_int32),
    )


@cache
def native_library() -> ctypes.CDLL | None:
    """Return the library for this machine, or None if there is none.

    The environment variable `MEDUSA_NATIVE` disables it with 0; any other value is the name of an
    instruction set, such as `avx2`, or the path of a library.
    """
    wanted = os.environ.get(_VARIABLE, "")
    if wanted == "0":
        log.info("no compiled step: %s is 0", _VARIABLE)
        return None
    folder, suffix = native_dir() / system_name(), library_suffix()
    names = [wanted] if wanted else instruction_sets()
    of_names = [folder / f"{name}{suffix}" for name in names]
    paths = [path for path in ([Path(wanted)] if os.sep in wanted else of_names) if path.is_file()]
    if wanted and not paths:
        known = ", ".join(sorted(path.stem for path in folder.glob(f"*{suffix}")))
        log.warning(
            "%s=%s names no compiled step; there are: %s", _VARIABLE, wanted, known or "none"
        )
    try:
        library = fastest([open_library(path) for path in paths[:2]])
    except OSError as error:
        log.warning("the compiled step can't be loaded, decoding is slower: %s", error)
        return None
    log.info("the compiled step: %s", "none for this machine" if library is None else library._name)
    return library


def agree_on(name: str) -> bool:
    """Choose the library of this process, unless it is in use already.

    Args:
        name: An instruction set; empty for no library.

    Returns:
        Whether this process uses that library.
    """
    if not native_library.cache_info().currsize:
        os.environ[_VARIABLE] = name or "0"
    library = native_library()
    return ("" if library is None else Path(library._name).stem) == name


def fastest(libraries: Sequence[ctypes.CDLL]) -> ctypes.CDLL | None:
    """Return the first of two libraries, unless the second multiplies clearly faster.

    The names of instruction sets don't tell: products of bfloat16 are twice as fast as those of
    floats on some processors, and half as fast on others.
    """
    if len(libraries) < 2:
        return libraries[0] if libraries else None
    inputs, outputs, rows = 256, 512, 4
    weight = torch.zeros(outputs, inputs, dtype=torch.bfloat16)
    layer = LinearStruct(
        weight=weight.data_ptr(), outputs=outputs, inputs=inputs, type=TensorType.BF16
    )
    x, packed = torch.zeros(rows, inputs), torch.empty(rows, inputs)
    y = torch.empty(rows, outputs)
    arguments = (addressof(layer), x.data_ptr(), packed.data_ptr(), rows, None, y.data_ptr())

    def time_of(library: ctypes.CDLL) -> float:
        """Time one product of a library."""
        begin = time.perf_counter()
        library.linear(None, *arguments)
        return time.perf_counter() - begin

    runs = [[time_of(library) for library in libraries] for _ in range(_REPEATS)]
    times = [min(column) for column in zip(*runs, strict=True)]
    best = min(range(len(times)), key=times.__getitem__)
    return libraries[best if times[best] < _MAX_RELATIVE_TIME * times[0] else 0]


def system_name(system: str = sys.platform, machine: str = "") -> str:
    """Return the folder name of a system's libraries, such as `linux-x86_64`."""
    machine = (machine or platform.machine()).lower()
    architecture = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return f"{ {'win32': 'windows', 'darwin': 'macos'}.get(system, system) }-{architecture}"


def library_suffix(system: str = sys.platform) -> str:
    """Return the suffix of shared libraries."""
    return {"win32": ".dll", "darwin": ".dylib"}.get(system, ".so")


def instruction_sets() -> list[str]:
    """Return the instruction sets of this CPU that have a library, usually the best one first."""
    if system_name() == "linux-aarch64":
        return ["neondot", "neon"] if _DOT_PRODUCTS in _arm_features() else ["neon"]
    if system_name().endswith("aarch64"):
        return ["neon"]  # of all Apple's, with dot products
    # torch 2.11 has no such function: no library then.
    has: Mapping[str, object] = getattr(torch.cpu, "get_capabilities", dict)()
    return [name for name, needed in _INSTRUCTIONS.items() if all(has.get(one) for one in needed)]


def _arm_features() -> list[str]:
    """Return the CPU features that Linux lists; empty if it doesn't."""
    try:
        text = _CPU_FILE.read_text(encoding="ascii", errors="replace")
    except OSError:
        return []
    lines = (line.partition(":") for line in text.splitlines())
    return next((words.split() for name, _, words in lines if name.strip() == "Features"), [])


def open_library(path: Path) -> ctypes.CDLL:
    """Load a library and declare its functions.

    Raises:
        OSError: It can't be loaded, or was built from other sources.
    """
    library = ctypes.CDLL(str(path))
    holding = ctypes.PyDLL(str(path))
    _check_abi(library, path)
    for described in functions():
        function = getattr(
            holding if described.name in SHORT_FUNCTIONS else library, described.name
        )
        function.argtypes, function.restype = described.arguments, described.result
        setattr(library, described.name, function)
    return library


def _check_abi(library: ctypes.CDLL, path: Path) -> None:
    """Compare the library's structures, constants and functions with their description.

    Raises:
        OSError: They differ.
    """
    differing = _differing(library)
    if differing:
        more = f" and {len(differing) - _MAX_LISTED} more" if len(differing) > _MAX_LISTED else ""
        raise OSError(
            f"{path.name} was built from other sources, which differ in "
            f"{', '.join(differing[:_MAX_LISTED])}{more}: "
            "python -m medusa_core.system.native.build builds it again"
        )


def _differing(library: ctypes.CDLL) -> list[str]:
    """Name everything that differs in C and Python."""
    if not hasattr(library, "abi_entries"):
        return ["the table itself"]
    library.abi_entries.restype = POINTER(_Entry)
    count = c_int32()
    table = library.abi_entries(byref(count))
    in_c = dict.fromkeys(
        Entry(one.owner.decode(), one.name.decode(), one.c_type.decode(), one.value, one.size)
        for one in table[: count.value]
    )
    in_python = dict.fromkeys(structs.entries())
    differing = [one for one in in_python if one not in in_c]
    differing += [one for one in in_c if one not in in_python]
    return list(dict.fromkeys(f"{one.owner}.{one.name}".rstrip(".") for one in differing))
