"""All that is asked of a CUDA card, in one place: tests put an imagined card here.

Callers import this module, not its functions, and nothing else in the engine asks `torch.cuda`.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import torch
from torch import Tensor

log = logging.getLogger(__name__)


class CudaEvent(Protocol):
    """A place in what a card was given to do."""


class Aside(Protocol):
    """Copies to a card beside what it computes, from pinned memory; or back, to such.

    Attributes:
        waited_s: Seconds that the card has stood still in `wait`, as far as it has come.
        copied_s: Seconds that copies took, likewise.
    """

    @property
    def waited_s(self) -> float: ...

    @property
    def copied_s(self) -> float: ...

    def copy(self, to: Tensor, source: Tensor, after: CudaEvent | None) -> CudaEvent:
        """Copy once what stands before a mark is done; returns the mark behind the copy."""

    def mark(self) -> CudaEvent:
        """The end of what the card was given to compute so far."""

    def wait(self, mark: CudaEvent, left: CudaEvent) -> None:
        """What the card is given to compute from now on waits for a mark.

        Args:
            mark: It.
            left: Where the card had done what it was to compute before.
        """

    def finish(self, mark: CudaEvent) -> None:
        """Wait until all before a mark is done."""


class Graph(Protocol):
    """A recorded piece of work."""

    def replay(self) -> None:
        """Run the recorded work again on the buffers' present content."""


def num_cards() -> int:
    """How many cards this torch can use."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def capability(device: torch.device) -> tuple[int, int]:
    """Compute capability of a card, such as (8, 6)."""
    return torch.cuda.get_device_capability(device)


def name(device: torch.device) -> str:
    """A card's name for people."""
    return torch.cuda.get_device_name(device)


def has_tensor_cores(device: torch.device) -> bool:
    """Whether a card multiplies halves by tensor cores; small cards of Turing have none."""
    without = ("GTX 16", "MX4", "MX5", "T400", "T500", "T550", "T600", "T1000", "T1200")
    return capability(device) >= (7, 5) and not any(part in name(device) for part in without)


def multiply(device: torch.device) -> None:
    """Compute one small product and wait for it.

    Raises:
        RuntimeError: The card can't compute with this torch.
    """
    numbers = torch.ones(8, 8, device=device)
    torch.mm(numbers, numbers)
    wait(device)


def free_and_total_bytes(device: torch.device) -> tuple[int, int]:
    """A card's memory as it is now."""
    return torch.cuda.mem_get_info(device)


def release_memory() -> None:
    """Return torch's cached, unused memory to the card."""
    if num_cards():
        torch.cuda.empty_cache()


def wait(device: torch.device) -> None:
    """Let a card finish what it was given; nothing to wait for elsewhere."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def wait_for_computing(device: torch.device) -> None:
    """Let a card finish what it was given to compute; copies beside go on."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()


def seconds_of(work: Callable[[], None], device: torch.device) -> float:
    """Seconds that some work takes on the card, the host's part included."""
    wait(device)
    started = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - started


def graph_memory() -> Any:
    """Memory that graphs share which are never replayed at the same time."""
    return torch.cuda.graph_pool_handle()


def record(work: Callable[[], None], memory: Any) -> Graph:
    """Record work as a graph.

    Args:
        work: Gives the card the same operations whenever it is called.
        memory: From `graph_memory`.

    Raises:
        RuntimeError: Something in it can't be recorded. The stream is the one from before.
    """
    before = torch.cuda.current_stream()
    aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    aside.wait_stream(before)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.stream(aside):
            for _ in range(2):  # libraries choose their kernels before anything is recorded
                work()
        before.wait_stream(aside)
        # What other threads ask of the card meanwhile is none of the graph's business.
        with torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"):
            work()
    finally:
        # Torch leaves the stream of a capture that failed as the current one.
        torch.cuda.set_stream(before)
    return graph


def pinned(num_bytes: int) -> Tensor:
    """Memory of the computer from which a card copies by itself. uint8 [bytes]"""
    if num_cards():
        _let_go_of_pinned_memory()
    return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=num_cards() > 0)


@cache
def _let_go_of_pinned_memory() -> None:
    """Take as much as is asked for, and give it back to the system when it isn't needed.

    Else torch takes the next power of two, up to twice of what was planned, and keeps it.
    """
    own = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    settings = ",".join(filter(None, (own, "pinned_max_cached_size_mb:1")))
    try:
        torch._C._accelerator_setAllocatorSettings(settings)
    except (AttributeError, RuntimeError) as error:
        log.warning("This torch takes more pinned memory than is asked for", exc_info=error)


def aside(device: torch.device) -> Aside:
    """Copies to a card, or from it, on a stream of their own."""
    return _Aside(device)


class _Aside:
    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._waits, self._copies = _Spans(), _Spans()

    @property
    def waited_s(self) -> float:
        return self._waits.seconds

    @property
    def copied_s(self) -> float:
        return self._copies.seconds

    def copy(self, to: Tensor, source: Tensor, after: CudaEvent | None) -> CudaEvent:
        if after is not None:
            self._stream.wait_event(after)
        began = self._record(self._stream)
        with torch.cuda.stream(self._stream):
            to.copy_(source, non_blocking=True)
        ended = self._record(self._stream)
        self._copies.add(began, ended)
        return ended

    def mark(self) -> CudaEvent:
        return self._record(torch.cuda.current_stream(self._device))

    def wait(self, mark: CudaEvent, left: CudaEvent) -> None:
        torch.cuda.current_stream(self._device).wait_event(mark)  # type: ignore[arg-type]
        self._waits.add(left, self.mark())

    def finish(self, mark: CudaEvent) -> None:
        event: Any = mark
        event.synchronize()

    def _record(self, stream: Any) -> CudaEvent:
        event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(stream)
        made: CudaEvent = event
        return made


class _Spans:
    """Adds up the seconds between marks of a stream, once the card has come by."""

    def __init__(self) -> None:
        self._open: deque[tuple[Any, Any]] = deque()
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """Of all that are over."""
        self._count()
        return self._seconds

    def add(self, began: CudaEvent, ended: CudaEvent) -> None:
        """One more."""
        self._open.append((began, ended))
        self._count()

    def _count(self) -> None:
        """Let go of those that are over."""
        while self._open and self._open[0][1].query():
            began, ended = self._open.popleft()
            self._seconds += began.elapsed_time(ended) / 1000
