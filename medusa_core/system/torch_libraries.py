"""Loads torch's shared libraries before torch is imported. Nothing here imports torch."""

from __future__ import annotations

import ctypes
import gc
import importlib.util
import logging
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

_RTLD_NOW_GLOBAL = 0x102  # the mode in which torch loads its global dependencies


def load_torch_libraries() -> None:
    """Load torch's shared libraries without holding Python's interpreter lock.

    Importing torch loads several hundred megabytes while it holds the lock, which would freeze the
    window. A foreign call releases the lock, and leaves the import little to do. Linux only:
    elsewhere the loader's function has another name.
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
            # The import itself will report the error, with a better message.
            log.info("could not load %s ahead of torch", name)


def begin_to_load_torch() -> None:
    """Load torch's libraries, a quarter of its import, in a thread beside other imports."""
    if (os.cpu_count() or 1) > 1 and "torch" not in sys.modules:
        threading.Thread(target=load_torch_libraries, name="medusa-torch", daemon=True).start()


@contextmanager
def imports_uncollected() -> Iterator[None]:
    """Collect no garbage while modules are imported, and never look at what is in memory then.

    Importing torch creates 170,000 permanent objects. Garbage collection of them, now or later,
    would hold the interpreter lock and freeze a window for a tenth of a second.
    """
    before, collects = len(sys.modules), gc.isenabled()  # the window may collect by itself
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > before:
            gc.freeze()
        if collects:
            gc.enable()
