"""Reading ahead: a thread reads pieces in order into a ring of buffers while others are used.

begin(pieces)   sets the order; what was read ahead is discarded
acquire()       waits for the next piece; returns the index of its buffer
release()       frees the buffers of all acquired pieces
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from medusa_core.errors import EngineError, MedusaError
from medusa_core.i18n import tr

_JOIN_TIMEOUT_S = 5.0  # for the read in progress

T = TypeVar("T")
Read = Callable[[T, int], None]


class _State(Generic[T]):
    """State that the thread and its owner share.

    Counts aren't reset in a circular order: the n-th read is of `pieces[n % len(pieces)]`, into the
    buffer `n % num_buffers`.

    Attributes:
        num_buffers: Buffers of the ring.
        pieces: Pieces in their order.
        end: Number of reads; None if the order is circular.
        changed: Guards this state, and is notified of each change.
        num_read: Completed reads.
        num_acquired: Acquired pieces.
        num_released: Released pieces, whose buffers are free.
        generation: Counts calls of `begin`; the result of a read of an earlier one is discarded.
        error: Why the last read failed.
        is_closed: The owner is gone.
    """

    def __init__(self, num_buffers: int) -> None:
        self.num_buffers = num_buffers
        self.pieces: Sequence[T] = ()
        self.end: int | None = 0
        self.changed = threading.Condition()
        self.num_read = self.num_acquired = self.num_released = self.generation = 0
        self.error: MedusaError | None = None
        self.is_closed = False

    @property
    def may_read(self) -> bool:
        """Whether there is a piece to read and a free buffer."""
        most = self.num_released + self.num_buffers
        if self.end is not None:
            most = min(most, self.end)
        return self.error is None and self.num_read < most


class ReadAhead(Generic[T]):
    """Reads pieces in a thread; see the module.

    Attributes:
        waited_s: Seconds that `acquire` has waited so far.
    """

    def __init__(self, read: Read[T], num_buffers: int, name: str) -> None:
        """Start the thread, which ends with this object.

        Args:
            read: Reads a piece into the buffer of an index; called in the thread. It must not
                refer to the owner of this object, or neither is ever garbage-collected.
            num_buffers: Buffers of the ring.
            name: Name of the thread.
        """
        self.waited_s = 0.0
        self._state = _State[T](num_buffers)
        thread = threading.Thread(target=_read_on, args=(self._state, read), name=name, daemon=True)
        thread.start()
        weakref.finalize(self, _close, self._state, thread)

    @property
    def num_read(self) -> int:
        """Pieces read since `begin`, plus `first`."""
        return self._state.num_read

    @property
    def num_acquired(self) -> int:
        """Pieces acquired since `begin`, plus `first`."""
        return self._state.num_acquired

    @property
    def num_released(self) -> int:
        """Pieces released since `begin`, plus `first`."""
        return self._state.num_released

    def begin(self, pieces: Sequence[T], *, first: int = 0, is_circle: bool = False) -> None:
        """Set the pieces to read.

        Args:
            pieces: Pieces in the order in which they will be acquired.
            first: Index of the first one.
            is_circle: The order repeats without end.
        """
        state = self._state
        with state.changed:
            state.generation += 1
            state.pieces, state.end = pieces, None if is_circle else len(pieces)
            state.num_read = state.num_acquired = state.num_released = first
            state.error = None
            state.changed.notify_all()

    def acquire(self) -> int:
        """Wait for the next piece.

        Returns:
            Index of its buffer.

        Raises:
            MedusaError: It can't be read. Another try reads it again.
        """
        state, started = self._state, time.perf_counter()
        with state.changed:
            count = state.num_acquired
            while state.num_read <= count and state.error is None:
                state.changed.wait()
            error = state.error if state.num_read <= count else None
            if error is None:
                state.num_acquired += 1
            else:
                state.error = None  # the thread tries again
                state.changed.notify_all()
        self.waited_s += time.perf_counter() - started
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback refers to this frame, and so to the model
        return count % state.num_buffers

    def release(self) -> None:
        """Free the buffers of all acquired pieces."""
        with self._state.changed:
            self._state.num_released = self._state.num_acquired
            self._state.changed.notify_all()


def _read_on(state: _State[T], read: Read[T]) -> None:
    """Read pieces until the owner is gone."""
    while True:
        with state.changed:
            while not (state.may_read or state.is_closed):
                state.changed.wait()
            if state.is_closed:
                return
            count, generation = state.num_read, state.generation
            piece = state.pieces[count % len(state.pieces)]
        error = _error_of(read, piece, count % state.num_buffers)
        del piece
        with state.changed:
            if generation == state.generation:
                state.error = error
                state.num_read += error is None
                state.changed.notify_all()
        error = None  # once raised, its traceback refers to the model


def _error_of(read: Read[T], piece: T, index: int) -> MedusaError | None:
    """Read a piece and return the error, if any."""
    try:
        read(piece, index)
    except MedusaError as error:
        return error
    except Exception as error:  # noqa: BLE001 - `acquire` must raise it, or it waits forever
        return EngineError(
            tr("What is needed next can't be read: {0}.", error), "Load the model again."
        )
    return None


def _close(state: _State[T], thread: threading.Thread) -> None:
    """End the thread, and wait for the read in progress."""
    with state.changed:
        state.is_closed = True
        state.changed.notify_all()
    if thread is not threading.current_thread():  # any thread may run the finalizer
        thread.join(_JOIN_TIMEOUT_S)
