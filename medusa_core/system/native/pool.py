"""Threads that help the compiled step; they sleep while nothing is computed."""

from __future__ import annotations

import ctypes
import threading
import weakref
from ctypes import addressof

from medusa_core.system.native.structs import PoolStruct


class Pool:
    """A number of workers, the calling thread counted.

    Attributes:
        num_workers: How many.
    """

    def __init__(self, library: ctypes.CDLL, num_workers: int) -> None:
        self.num_workers = num_workers
        self._struct = PoolStruct()
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
        """What the library is given: helpers are called, and stay as long as there is work."""
        for bell in self._bells:
            if not bell.is_set():
                bell.set()
        return self._address


class Workers:
    """The pools of one target: its runner and its heads compute by turns, never at once.

    Attributes:
        decoding: For a few rows.
        prefill: For many.
    """

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self.use(1, 1)

    def use(self, decoding: int, prefill: int) -> None:
        """Compute with so many threads."""
        self.decoding = Pool(self._library, decoding)
        # Helpers stay awake for a while: two sets of them would be in each other's way.
        is_same = prefill == decoding
        self.prefill = self.decoding if is_same else Pool(self._library, prefill)


def _help(library: ctypes.CDLL, struct: PoolStruct, bell: threading.Event, worker: int) -> None:
    while True:
        bell.wait()
        bell.clear()  # before it looks for work: who rings while it is leaving is heard
        library.serve(addressof(struct), worker)  # without the interpreter's lock
        if struct.closed:
            return


def _close(struct: PoolStruct, bells: list[threading.Event]) -> None:
    struct.closed = 1
    for bell in bells:
        bell.set()
