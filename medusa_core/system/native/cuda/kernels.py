"""Launches the CUDA kernels that ship with the program.

The cubin of a card's generation is loaded by the driver loader of torch (`system/cuda.py`), so that
no compiler is needed on the user's machine. Tests replace `load_kernels` by kernels that run on the
CPU (tests/support/card).
"""

from __future__ import annotations

import logging
import lzma
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from medusa_core.i18n import tr
from medusa_core.system import cuda
from medusa_core.system.native.cuda.build import ARCHITECTURES, PTX_ARCHITECTURE
from medusa_core.system.resources import native_dir

log = logging.getLogger(__name__)

Argument = Tensor | int | float | None
SOURCES = ("rows", "attention", "fused")
DTYPES = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 2}  # `Dtype` of device.cuh
KV_DTYPES = DTYPES | {torch.uint8: 5}  # of keys and values; uint8 is `KV_Q8_0` of kv.cuh
PREPARED, QUANTIZED = 3, 4  # others: what rows_mma and what rows_dot reads


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
    """Kernels of cubins that are loaded on a card."""

    def __init__(self, modules: Sequence[Any], device: torch.device) -> None:
        """Take modules of torch's loader, which have a callable attribute for each kernel."""
        self._modules = modules
        self._kernels: dict[str, Any] = {}
        # torch passes integers in four bytes; an empty tensor's address is a null pointer of eight.
        self._null = torch.empty(0, device=device)

    def launch(self, name: str, grid: int, threads: int, *args: Argument) -> None:
        """Launch a kernel on the current stream; looked up on first use."""
        if name not in self._kernels:
            (module,) = (module for module in self._modules if hasattr(module, name))
            self._kernels[name] = getattr(module, name)
        kernel = self._kernels[name]
        kernel((grid, 1, 1), (threads, 1, 1), [self._null if a is None else a for a in args])


_wrong: dict[torch.device, list[str]] = {}


def report_wrong(device: torch.device, kernel: str) -> None:
    """Remember that a kernel gives wrong numbers on a card, and that others replace it."""
    log.warning("wrong numbers on %s, torch replaces: %s", cuda.name(device), kernel)
    _wrong.setdefault(device, []).append(kernel)


def wrong_kernels(device: torch.device) -> tuple[str, ...]:
    """Return the kernels that failed their checks on a card so far."""
    return tuple(_wrong.get(device, ()))


def kernel_note(device: torch.device) -> str:
    """Return which kernels torch replaces on a card, for people; empty if it replaces none."""
    note, names = "", ", ".join(wrong_kernels(device))
    if names:
        note = tr("Wrong on this card, and replaced by PyTorch: {0}.", names)
    return note


@cache
def load_kernels(device: torch.device) -> Kernels | None:
    """Load the kernels for a card; None where that fails, and torch's own kernels serve."""
    paths = [kernel_file(stem, cuda.capability(device)) for stem in SOURCES]
    try:
        modules = [cuda.load_kernels(lzma.decompress(path.read_bytes()), device) for path in paths]
    except (RuntimeError, OSError, lzma.LZMAError) as error:
        log.warning("the kernels for %s can't be loaded", cuda.name(device), exc_info=error)
        _wrong.setdefault(device, []).append("all kernels, which can't be loaded")
        return None
    return CardKernels(modules, device)


def kernel_file(stem: str, capability: tuple[int, int]) -> Path:
    """Return the file for a card: the newest cubin of its major version, else PTX.

    Args:
        stem: Name of the source.
        capability: Compute capability, such as (8, 6).
    """
    major, minor = capability
    fitting = [n for n in ARCHITECTURES if n // 10 == major and n % 10 <= minor]
    name = f"sm{max(fitting)}.cubin" if fitting else f"compute{PTX_ARCHITECTURE}.ptx"
    return native_dir() / "cuda" / f"{stem}_{name}.xz"
