"""Reads that run ahead of their use.

A thread reads pieces in their order into a ring of places: while one piece is computed with, the
next ones are on their way.

    begin(pieces)   what is needed, in its order; what was read ahead is void
    enter()         waits for the next piece; returns its place
    leave()         the place may be read into again
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from medusa_core.errors import EngineError, MedusaError

_PATIENCE_S = 5.0  # for a read that is under way

T = TypeVar("T")
Read = Callable[[T, int], None]


class _State(Generic[T]):
    """What the thread and its owner share.

    Counts run on over a circle of pieces: the n-th read is of `pieces[n % len(pieces)]`, and goes
    into the place `n % num_places`.

    Attributes:
        num_places: Of the ring.
        pieces: What is read, in its order.
        end: Reads in all; None where the order is a circle.
        bell: Rung at each change.
        num_read: Reads that have ended.
        num_entered: Pieces that were entered.
        num_left: Pieces that were left: their places are free.
        turn: Goes up with each `begin`: what a read of an older one brings is void.
        error: Why the last read failed.
        is_closed: Nobody enters any more.
    """

    def __init__(self, num_places: int) -> None:
        self.num_places = num_places
        self.pieces: Sequence[T] = ()
        self.end: int | None = 0
        self.bell = threading.Condition()
        self.num_read = self.num_entered = self.num_left = self.turn = 0
        self.error: MedusaError | None = None
        self.is_closed = False

    @property
    def may_read(self) -> bool:
        """Is there a piece to be read, and a place that is free?"""
        most = self.num_left + self.num_places
        if self.end is not None:
            most = min(most, self.end)
        return self.error is None and self.num_read < most


class ReadAhead(Generic[T]):
    """Reads pieces in a thread; see the module.

    Attributes:
        waited_s: Seconds that `enter` has waited so far.
    """

    def __init__(self, read: Read[T], num_places: int, name: str) -> None:
        """Begin a thread, which ends with this object.

        Args:
            read: Reads a piece into a place; called in the thread. It must not hold whoever holds
                this object, which would never be collected then.
            num_places: Of the ring.
            name: Of the thread.
        """
        self.waited_s = 0.0
        self._state = _State[T](num_places)
        thread = threading.Thread(target=_read_on, args=(self._state, read), name=name, daemon=True)
        thread.start()
        weakref.finalize(self, _close, self._state, thread)

    @property
    def num_read(self) -> int:
        """Pieces that were read since `begin`, and `first`."""
        return self._state.num_read

    @property
    def num_entered(self) -> int:
        """Pieces that were entered since `begin`, and `first`."""
        return self._state.num_entered

    @property
    def num_left(self) -> int:
        """Pieces that were left since `begin`, and `first`."""
        return self._state.num_left

    def begin(self, pieces: Sequence[T], *, first: int = 0, is_circle: bool = False) -> None:
        """Read these pieces.

        Args:
            pieces: In the order in which they will be entered.
            first: The one to begin with.
            is_circle: The first one follows the last one, again and again.
        """
        state = self._state
        with state.bell:
            state.turn += 1
            state.pieces, state.end = pieces, None if is_circle else len(pieces)
            state.num_read = state.num_entered = state.num_left = first
            state.error = None
            state.bell.notify_all()

    def enter(self) -> int:
        """Wait for the next piece.

        Returns:
            The place that it was read into.

        Raises:
            MedusaError: It can't be read. Another try reads it again.
        """
        state, started = self._state, time.perf_counter()
        with state.bell:
            count = state.num_entered
            while state.num_read <= count and state.error is None:
                state.bell.wait()
            error = state.error if state.num_read <= count else None
            if error is None:
                state.num_entered += 1
            else:
                state.error = None  # it is read again meanwhile
                state.bell.notify_all()
        self.waited_s += time.perf_counter() - started
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame, and so the model
        return count % state.num_places

    def leave(self) -> None:
        """Give back the places of all pieces that were entered."""
        with self._state.bell:
            self._state.num_left = self._state.num_entered
            self._state.bell.notify_all()


def _read_on(state: _State[T], read: Read[T]) -> None:
    """The thread's work."""
    while True:
        with state.bell:
            while not (state.may_read or state.is_closed):
                state.bell.wait()
            if state.is_closed:
                return
            count, turn = state.num_read, state.turn
            piece = state.pieces[count % len(state.pieces)]
        error = _error_of(read, piece, count % state.num_places)
        del piece
        with state.bell:
            if turn == state.turn:
                state.error = error
                state.num_read += error is None
                state.bell.notify_all()
        error = None  # whoever raises it gives it a traceback, which holds the model


def _error_of(read: Read[T], piece: T, place: int) -> MedusaError | None:
    """Read a piece; returns why it can't be read."""
    try:
        read(piece, place)
    except MedusaError as error:
        return error
    except Exception as error:  # noqa: BLE001 - who enters must hear of it, else they wait for ever
        return EngineError(f"What is needed next can't be read: {error}.", "Load the model again.")
    return None


def _close(state: _State[T], thread: threading.Thread) -> None:
    with state.bell:
        state.is_closed = True
        state.bell.notify_all()
    if thread is not threading.current_thread():  # whichever thread collects the garbage
        thread.join(_PATIENCE_S)
