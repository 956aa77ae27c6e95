"""Helpers of the compiled step: they share its work, rest, and leave."""

import threading

from medusa_core.system.native.binding import native_library
from medusa_core.system.native.pool import (
    Pool,
    Workers,
)


def test_passes_of_all_kinds_share_worker_threads_unless_they_need_others() -> None:
    library = native_library()
    assert library is not None
    before = set(threading.enumerate())
    workers = Workers(library)
    workers.use(2, 2)
    assert workers.prefill is workers.decoding
    workers.use(1, 3)
    assert (workers.decoding.num_workers, workers.prefill.num_workers) == (1, 3)
    del workers
    for helper in set(threading.enumerate()) - before:
        helper.join(60)
        assert not helper.is_alive()


def test_a_worker_thread_called_while_it_ends_returns() -> None:
    came: list[int] = []
    again = threading.Event()

    class Library:
        def run_worker(self, address: int, worker: int) -> None:
            came.append(worker)
            if len(came) == 1:
                pool.awake()  # it has found nothing to do, and now there is something
            elif len(came) == 2:
                again.set()

    pool = Pool(Library(), 2)  # type: ignore[arg-type]
    pool.awake()
    assert again.wait(60)
    assert came == [1, 1]


def test_worker_threads_sleep_and_end() -> None:
    library = native_library()
    assert library is not None
    before = set(threading.enumerate())
    pool = Pool(library, 3)
    assert pool.awake() is not None
    helpers = set(threading.enumerate()) - before
    assert len(helpers) == 2
    del pool
    for helper in helpers:
        helper.join(60)
        assert not helper.is_alive()
