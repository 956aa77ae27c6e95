"""Lets a torch without CUDA hold tensors that say they lie on a card.

Torch asks a device's guard before it touches a tensor. A build for the CPU has none for CUDA: one
statement of C++ registers a guard that does nothing.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

_SOURCE = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
namespace c10::impl {
C10_REGISTER_GUARD_IMPL(CUDA, NoOpDeviceGuardImpl<DeviceType::CUDA>)
}
"""


NO_COMPILER = (
    "The kernels for cards need a C++ compiler to be tried. Install g++ (apt-get install g++), "
    "or the extra native: pip install -c installer/constraints.txt -e '.[native]'"
)


def system_compiler() -> list[str] | None:
    """Return the command of the system's C++ compiler, which can link libraries of torch."""
    found = os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")
    return [found] if found else None


def find_compiler() -> list[str] | None:
    """Return the command of a C++ compiler: the system's, else that of ziglang."""
    if found := system_compiler():
        return found
    if importlib.util.find_spec("ziglang") is None:
        return None
    # Zig's debug builds end programs that overflow integers, as half precision does on purpose.
    return [sys.executable, "-m", "ziglang", "c++", "-fno-sanitize=undefined"]


def register_guard(folder: Path, compiler: Sequence[str]) -> None:
    """Build the guard into a folder and load it; once in a process."""
    source, library = folder / "guard.cpp", folder / "guard.so"
    source.write_text(_SOURCE, encoding="utf-8")
    root = Path(torch.__file__).parent
    folders = [f"-I{root / 'include'}", f"-L{root / 'lib'}"]
    command = [*compiler, "-std=c++20", "-O0", "-shared", "-fPIC", *folders, str(source)]
    subprocess.run([*command, "-lc10", "-o", str(library)], check=True, capture_output=True)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
