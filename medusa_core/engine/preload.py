"""Loading torch without freezing the window.

Importing torch loads a library of several hundred megabytes while it holds Python's interpreter
lock. Loading that library beforehand through a foreign call, which releases the lock, leaves the
import little to do.
"""

from __future__ import annotations

import ctypes
import importlib.util
import logging
import sys
from pathlib import Path

log = logging.getLogger(__name__)

_RTLD_NOW_GLOBAL = 0x102  # as torch itself loads its global dependencies


def preload_torch_libraries() -> None:
    """Load torch's shared libraries into the process; does nothing where that isn't possible.

    Only Linux is served: elsewhere the loader's own call isn't reachable by this name.
    """
    spec = importlib.util.find_spec("torch")
    if spec is None or spec.origin is None or not sys.platform.startswith("linux"):
        return
    folder = Path(spec.origin).parent / "lib"
    dlopen = ctypes.CDLL(None).dlopen
    dlopen.restype = ctypes.c_void_p
    dlopen.argtypes = (ctypes.c_char_p, ctypes.c_int)
    for name in ("libtorch_global_deps.so", "libc10.so", "libtorch_cpu.so", "libtorch_python.so"):
        path = folder / name
        if path.exists() and not dlopen(str(path).encode(), _RTLD_NOW_GLOBAL):
            # The import itself will report what is wrong, with a better message.
            log.info("could not load %s ahead of torch", name)
