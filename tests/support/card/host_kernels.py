"""The CUDA kernels on the CPU: the shipped sources, compiled with a host shim."""

from __future__ import annotations

import ctypes
import mmap
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from filelock import FileLock
from torch import Tensor

from medusa_core.system.native.cuda.build import SOURCES
from medusa_core.system.native.cuda.kernels import Argument
from tests.support.card.guard import NO_COMPILER, find_compiler

SHIM = Path(__file__).parent / "shim"
_LIBRARY = "kernels.so"
_MOST_INTEGERS, _MOST_DOUBLES = 24, 4  # of host_shim.h


class HostKernels:
    """Kernels of a compiled library.

    Attributes:
        launched: How often each kernel ran.
        seed: Decides the order in which threads run.
    """

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self.launched: Counter[str] = Counter()
        self.seed = 1

    def launch(self, name: str, grid: int, threads: int, *args: Argument) -> None:
        integers, doubles = [], []
        for argument in args:
            if isinstance(argument, float):
                doubles.append(argument)
            elif isinstance(argument, Tensor):
                integers.append(argument.data_ptr())
            else:
                integers.append((argument or 0) & (1 << 64) - 1)
        self.launched[name] += 1
        self._library.shim_launch(
            ctypes.cast(getattr(self._library, name), ctypes.c_void_p),
            (ctypes.c_uint * 3)(grid, 1, 1),
            threads,
            (ctypes.c_uint64 * _MOST_INTEGERS)(*integers),
            (ctypes.c_double * _MOST_DOUBLES)(*doubles),
            self.seed,
        )


def build_host_kernels(
    folder: Path, compiler: Sequence[str], sources: Path = SOURCES
) -> HostKernels:
    """Compile the sources for this machine.

    Args:
        folder: Takes the library.
        compiler: Command of a C++ compiler.
        sources: Folder of the kernels' sources.
    """
    library = folder / _LIBRARY
    flags = ["-std=c++17", "-O1", "-shared", "-fPIC", "-DHOST_SHIM", "-fvisibility=hidden"]
    files = ["-x", "c++", *map(str, sorted(sources.glob("*.cu"))), str(SHIM / "host_shim.cpp")]
    command = [*compiler, *flags, f"-I{SHIM}", f"-I{sources}", "-o", str(library), *files]
    subprocess.run(command, check=True, capture_output=True, text=True)
    return HostKernels(library)


def shared_host_kernels() -> HostKernels:
    """Return the shipped kernels compiled for the host, once per test session."""
    folder = Path(os.environ["MEDUSA_TEST_SHARED"]) / "card_kernels"
    folder.mkdir(exist_ok=True)
    with FileLock(folder / "lock"):
        if not (folder / _LIBRARY).exists():
            compiler = find_compiler()
            if compiler is None and not sys.platform.startswith("linux"):
                pytest.skip(NO_COMPILER)
            assert compiler is not None, NO_COMPILER
            return build_host_kernels(folder, compiler)
    return HostKernels(folder / _LIBRARY)


def before_guard_page(tensor: Tensor) -> Tensor:
    """Copy a tensor to memory that ends where a page begins that can't be read or written."""
    pages = -(-tensor.nbytes // mmap.PAGESIZE)
    memory = mmap.mmap(-1, (pages + 1) * mmap.PAGESIZE)
    whole = torch.frombuffer(memory, dtype=torch.uint8)
    start = whole.data_ptr() + pages * mmap.PAGESIZE
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(mmap.PAGESIZE), 0):
        raise OSError(ctypes.get_errno(), "mprotect")
    end = pages * mmap.PAGESIZE
    copied = whole[end - tensor.nbytes : end].view(tensor.dtype).view(tensor.shape)
    return copied.copy_(tensor)
