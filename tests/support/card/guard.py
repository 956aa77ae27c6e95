"""Lets a torch without CUDA hold tensors that say they lie on a card.

Torch asks a device's guard before it touches a tensor. A build for the CPU has none for CUDA: one
statement of C++ registers a guard that does nothing.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from pathlib import Path

import torch

_SOURCE = """
#include <c10/core/impl/DeviceGuardImplInterface.h>
namespace c10::impl {
C10_REGISTER_GUARD_IMPL(CUDA, NoOpDeviceGuardImpl<DeviceType::CUDA>)
}
"""


def find_compiler() -> str | None:
    """A C++ compiler, if there is one."""
    return os.environ.get("CXX") or shutil.which("g++") or shutil.which("clang++")


def register_guard(folder: Path, compiler: str) -> None:
    """Build the guard into a folder and load it; once in a process."""
    source, library = folder / "guard.cpp", folder / "guard.so"
    source.write_text(_SOURCE, encoding="utf-8")
    root = Path(torch.__file__).parent
    folders = [f"-I{root / 'include'}", f"-L{root / 'lib'}"]
    command = [compiler, "-std=c++20", "-O0", "-shared", "-fPIC", *folders, str(source)]
    subprocess.run([*command, "-lc10", "-o", str(library)], check=True, capture_output=True)
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
