"""Launches the CUDA kernels that ship with the program.

The cubin of a card's generation is loaded by torch's driver loader
(`torch.cuda._utils._cuda_load_module`, which is private: a test pins its interface), so that no
compiler is needed on the user's machine. Tests replace `load_kernels` by kernels that run on the
CPU (tests/support/card).
"""

from __future__ import annotations

import logging
import lzma
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.cuda._utils import _cuda_load_module

from medusa_core.system import cuda
from medusa_core.system.native.cuda.build import ARCHITECTURES, PTX_ARCHITECTURE
from medusa_core.system.resources import native_dir

log = logging.getLogger(__name__)

Argument = Tensor | int | None
DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}  # `Dtype` of device.cuh


class Kernels(Protocol):
    """The kernels of one card."""

    def launch(self, name: str, grid: int, threads: int, *args: Argument) -> None:
        """Launch a kernel on the current stream.

        Args:
            name: Its name in the sources.
            grid: Number of blocks.
            threads: Threads of a block.
            *args: Its arguments; None is a null pointer.
        """


class CardKernels:
    """Kernels of a cubin that is loaded on a card."""

    def __init__(self, module: Any, device: torch.device) -> None:
        """Take a module of torch's loader, which has a callable attribute for each kernel."""
        self._module = module
        # torch passes integers in four bytes; an empty tensor's address is a null pointer of eight.
        self._null = torch.empty(0, device=device)

    def launch(self, name: str, grid: int, threads: int, *args: Argument) -> None:
        kernel = getattr(self._module, name)
        kernel((grid, 1, 1), (threads, 1, 1), [self._null if a is None else a for a in args])


@cache
def load_kernels(device: torch.device) -> Kernels | None:
    """Load the kernels for a card; None where that fails, and torch's own kernels serve."""
    path = kernel_file(cuda.capability(device))
    try:
        with torch.cuda.device(device):
            module = _cuda_load_module(lzma.decompress(path.read_bytes()))
    except (RuntimeError, OSError, lzma.LZMAError) as error:
        log.warning("the kernels in %s can't be loaded", path.name, exc_info=error)
        return None
    return CardKernels(module, device)


def kernel_file(capability: tuple[int, int], stem: str = "rows") -> Path:
    """Return the file for a card: the newest cubin of its major version, else PTX.

    Args:
        capability: Compute capability, such as (8, 6).
        stem: Name of the source.
    """
    major, minor = capability
    fitting = [number for number in ARCHITECTURES if 0 <= 10 * major + minor - number < 10]
    fitting = [number for number in fitting if number // 10 == major]
    name = f"sm{max(fitting)}.cubin" if fitting else f"compute{PTX_ARCHITECTURE}.ptx"
    return native_dir() / "cuda" / f"{stem}_{name}.xz"
