"""Thread pools of the compiled step; threads sleep while nothing is computed."""

from __future__ import annotations

import ctypes
import threading
import weakref
from ctypes import addressof

from medusa_core.system.native.structs import PoolStruct


class Pool:
    """A pool of threads, including the calling one.

    Attributes:
        num_workers: Number of threads.
    """

    def __init__(self, library: ctypes.CDLL, num_workers: int) -> None:
        self.num_workers = num_workers
        self._struct = PoolStruct(workers=num_workers)
        self._address = addressof(self._struct) if num_workers > 1 else None
        self._bells = [threading.Event() for _ in range(1, num_workers)]
        for worker, bell in enumerate(self._bells, start=1):
            threading.Thread(
                target=_help,
                args=(library, self._struct, bell, worker),
                name=f"medusa-step-{worker}",
                daemon=True,
            ).start()
        self._finalizer = weakref.finalize(self, _close, self._struct, self._bells)

    def awake(self) -> int | None:
        """Wake the threads, and return the address of the C `Pool`; None for a single thread."""
        for bell in self._bells:
            if not bell.is_set():
                bell.set()
        return self._address


class Workers:
    """The pools of a target; its runner and its heads never compute at the same time.

    Attributes:
        decoding: Pool for few rows.
        prefill: Pool for many rows.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.use(1, 1)

    def use(self, decoding: int, prefill: int) -> None:
        """Set the numbers of threads."""
        self.decoding = Pool(self._library, decoding)
        # Idle threads spin for a while: those of two pools would compete for cores.
        is_same = prefill == decoding
        self.prefill = self.decoding if is_same else Pool(self._library, prefill)


def _help(library: ctypes.CDLL, struct: PoolStruct, bell: threading.Event, worker: int) -> None:
    """Run a worker thread: sleep until it is woken, then serve the library."""
    while True:
        bell.wait()
        bell.clear()  # before looking for work, so that no wake-up is lost
        library.run_worker(addressof(struct), worker)  # releases the GIL
        if struct.closed:
            return


def _close(struct: PoolStruct, bells: list[threading.Event]) -> None:
    """End the worker threads."""
    struct.closed = 1
    for bell in bells:
        bell.set()
