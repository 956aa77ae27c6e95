"""Reads that run ahead of their use: order, places, failures, and an end."""

import gc
import threading
from collections.abc import Sequence

import pytest

from medusa_core.errors import EngineError, MedusaError, TierError
from medusa_core.runtime.offload.read_ahead import ReadAhead


class Shelf:
    """Reader that records its reads, and fails or waits on request."""

    def __init__(self) -> None:
        self.ring = [""] * 3
        self.errors: list[Exception] = []
        self.began = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def read(self, piece: str, place: int) -> None:
        self.began.set()
        self.gate.wait()
        if self.errors:
            raise self.errors.pop()
        self.ring[place] = piece


def entered(ahead: ReadAhead[str], shelf: Shelf, count: int) -> Sequence[str]:
    found = []
    for _ in range(count):
        found.append(shelf.ring[ahead.acquire()])
        ahead.release()
    return found


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def ahead(shelf: Shelf) -> ReadAhead[str]:
    return ReadAhead(shelf.read, 3, "medusa-layers")


def test_pieces_are_read_in_order_in_a_ring(ahead: ReadAhead[str], shelf: Shelf) -> None:
    ahead.begin("abcde", is_circle=True)
    assert entered(ahead, shelf, 12) == list("abcdeabcdeab")


def test_a_list_may_end_and_another_begin_at_any_piece(ahead: ReadAhead[str], shelf: Shelf) -> None:
    ahead.begin("abcde")
    assert entered(ahead, shelf, 5) == list("abcde")
    assert ahead.num_read == 5
    ahead.begin("vwxyz", first=3, is_circle=True)
    assert entered(ahead, shelf, 4) == list("yzvw")


def test_a_buffer_in_use_is_not_overwritten(ahead: ReadAhead[str], shelf: Shelf) -> None:
    ahead.begin("abcdefgh")
    place = ahead.acquire()
    ahead.acquire()
    assert shelf.ring[ahead.acquire()] == "c"
    assert (shelf.ring[place], ahead.num_read) == ("a", 3)
    ahead.release()
    assert shelf.ring[ahead.acquire()] == "d"


def test_reads_of_an_older_request_are_discarded(ahead: ReadAhead[str], shelf: Shelf) -> None:
    shelf.gate.clear()
    ahead.begin("abc")
    assert shelf.began.wait(60)
    ahead.begin("xyz")  # while a is under way
    shelf.gate.set()
    assert entered(ahead, shelf, 3) == list("xyz")


@pytest.mark.parametrize(
    ("failure", "expected"), [(TierError("gone"), TierError), (ValueError("odd"), EngineError)]
)
def test_a_failed_read_is_reported_where_it_is_needed_and_retried(
    ahead: ReadAhead[str], shelf: Shelf, failure: Exception, expected: type[MedusaError]
) -> None:
    shelf.errors.append(failure)
    ahead.begin("abc")
    with pytest.raises(expected, match=str(failure)):
        ahead.acquire()
    assert (ahead.num_acquired, ahead.num_released) == (0, 0)
    assert entered(ahead, shelf, 3) == list("abc")


def test_a_failed_prefetch_affects_nothing_before_it(ahead: ReadAhead[str], shelf: Shelf) -> None:
    shelf.gate.clear()
    ahead.begin("abc", is_circle=True)
    shelf.gate.set()
    assert shelf.ring[ahead.acquire()] == "a"
    while ahead.num_read < 3:
        pass
    shelf.errors.append(TierError("gone"))
    ahead.release()  # the next read fails
    assert shelf.ring[ahead.acquire()] == "b"
    assert shelf.ring[ahead.acquire()] == "c"
    with pytest.raises(TierError):
        ahead.acquire()


def test_the_thread_ends_with_its_owner() -> None:
    ahead = ReadAhead(Shelf().read, 3, "medusa-layers-of-nobody")
    (thread,) = (t for t in threading.enumerate() if t.name == "medusa-layers-of-nobody")
    del ahead
    gc.collect(1)
    assert not thread.is_alive()
