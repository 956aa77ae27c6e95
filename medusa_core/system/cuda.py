"""The only module that uses `torch.cuda`, so that tests can replace a GPU in one place.

Callers import this module, not its functions, which tests replace.
"""

from __future__ import annotations

import ctypes
import logging
import os
import statistics
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.cuda._utils import _cuda_load_module

log = logging.getLogger(__name__)


class CudaEvent(Protocol):
    """An event of a CUDA stream."""


class CopyStream(Protocol):
    """Copies between pinned host memory and the GPU on a separate CUDA stream.

    Attributes:
        waited_s: Seconds that the compute stream has idled in `wait`, in completed work.
        copied_s: Seconds of completed copies.
    """

    @property
    def waited_s(self) -> float: ...

    @property
    def copied_s(self) -> float: ...

    def copy(self, to: Tensor, source: Tensor, after: CudaEvent | None) -> CudaEvent:
        """Enqueue a copy after an event, and return an event after the copy."""

    def record_event(self) -> CudaEvent:
        """Record an event on the compute stream."""

    def wait(self, event: CudaEvent, computed: CudaEvent) -> None:
        """Make the compute stream wait for an event.

        Args:
            computed: Event at the end of the compute stream's work so far, to measure the wait.
        """

    def synchronize(self, event: CudaEvent) -> None:
        """Block until an event has occurred."""


class Graph(Protocol):
    """A captured CUDA graph."""

    def replay(self) -> None:
        """Run the captured operations again on the current content of their buffers."""


def num_cards() -> int:
    """Number of GPUs that this torch can use."""
    return torch.cuda.device_count() if torch.cuda.is_available() else 0


def capability(device: torch.device) -> tuple[int, int]:
    """Compute capability of a GPU, such as (8, 6)."""
    return torch.cuda.get_device_capability(device)


def name(device: torch.device) -> str:
    """Name of a GPU, for people."""
    return torch.cuda.get_device_name(device)


@cache
def driver_version() -> str:
    """Version of the GPUs' driver by NVML, such as 570.86.15; "unknown" where that is missing."""
    version = ctypes.create_string_buffer(80)
    try:
        nvml = ctypes.CDLL("nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1")
        if nvml.nvmlInit_v2() == 0 and nvml.nvmlSystemGetDriverVersion(version, len(version)) == 0:
            return version.value.decode()
    except (OSError, AttributeError) as error:
        log.info("the driver's version isn't known: %s", error)
    return "unknown"


def has_tensor_cores(device: torch.device) -> bool:
    """Whether a card multiplies halves by tensor cores; small cards of Turing have none."""
    without = ("GTX 16", "MX4", "MX5", "T400", "T500", "T550", "T600", "T1000", "T1200")
    return capability(device) >= (7, 0) and not any(part in name(device) for part in without)


def load_kernels(binary: bytes, device: torch.device) -> Any:
    """Load a cubin or PTX; the result has a callable attribute for each kernel.

    Raises:
        RuntimeError: The driver refuses it.
    """
    with torch.cuda.device(device):
        return _cuda_load_module(binary)


def multiply(device: torch.device) -> None:
    """Run a small matrix product and wait for it.

    Raises:
        RuntimeError: This torch has no kernels for the GPU.
    """
    numbers = torch.ones(8, 8, device=device)
    torch.mm(numbers, numbers)
    wait(device)


def free_and_total_bytes(device: torch.device) -> tuple[int, int]:
    """Free and total memory of a GPU."""
    return torch.cuda.mem_get_info(device)


def release_memory() -> None:
    """Return torch's cached, unused memory to the GPU."""
    if num_cards():
        torch.cuda.empty_cache()


def wait(device: torch.device) -> None:
    """Wait for all work of a GPU; other devices have none."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def wait_for_computing(device: torch.device) -> None:
    """Wait for the compute stream of a GPU, but not for copy streams."""
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()


def seconds_of(work: Callable[[], None], device: torch.device) -> float:
    """Measure the wall-clock seconds of a workload on a device, host overhead included."""
    wait(device)
    started = time.perf_counter()
    work()
    wait(device)
    return time.perf_counter() - started


def median_seconds(
    workloads: Sequence[Callable[[], None]], device: torch.device, repeats: int, deadline: float
) -> list[float]:
    """Median GPU time of several workloads, run alternately, excluding host overhead.

    They alternate because a GPU's clock changes with its temperature.

    Args:
        workloads: Each launches kernels, the same in every call.
        device: The GPU.
        repeats: Rounds that are measured.
        deadline: `time.perf_counter()` after which no further round begins.

    Raises:
        RuntimeError: An operation can't be captured as a graph.
    """
    memory = graph_memory()
    graphs = [record(work, memory) for work in workloads]
    for graph in graphs:
        graph.replay()  # the first one is slower
    rounds: list[list[float]] = []
    while len(rounds) < repeats and not (rounds and time.perf_counter() > deadline):
        spans: list[tuple[Any, Any]] = []
        for graph in graphs:
            began, ended = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
            began.record()
            graph.replay()
            ended.record()
            spans.append((began, ended))
        wait(device)
        rounds.append([began.elapsed_time(ended) / 1000 for began, ended in spans])
    return [statistics.median(each) for each in zip(*rounds, strict=True)]


def graph_memory() -> Any:
    """Return a memory pool for graphs that are never replayed at the same time."""
    return torch.cuda.graph_pool_handle()


def record(work: Callable[[], None], memory: Any) -> Graph:
    """Capture a CUDA graph.

    Args:
        work: Launches the kernels to capture, the same in every call.
        memory: Memory pool of the graph, from `graph_memory`.

    Raises:
        RuntimeError: An operation can't be captured. The current stream is restored.
    """
    before = torch.cuda.current_stream()
    warm_up = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    warm_up.wait_stream(before)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.stream(warm_up):
            for _ in range(2):  # libraries choose their kernels before the capture
                work()
        before.wait_stream(warm_up)
        # In other modes, operations of other threads would end the capture.
        with torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"):
            work()
    finally:
        # After a failed capture, torch leaves its stream as the current one.
        torch.cuda.set_stream(before)
    return graph


def download(tensor: Tensor) -> Callable[[], Tensor]:
    """Enqueue a copy of a tensor to host memory after the kernels that compute it.

    Args:
        tensor: On a GPU, whose later work doesn't delay the copy, or on the CPU.

    Returns:
        Waits for the copy alone and returns it.
    """
    if tensor.device.type != "cuda":
        return lambda: tensor
    copied = tensor.to("cpu", non_blocking=True)  # pinned, else this would wait
    event: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
    event.record(torch.cuda.current_stream(tensor.device))

    def wait_for_copy() -> Tensor:
        """Wait for the copy and return it."""
        event.synchronize()
        return copied

    return wait_for_copy


def pinned(num_bytes: int) -> Tensor:
    """Allocate pinned host memory; pageable memory without a GPU. uint8 [bytes]"""
    if num_cards():
        _set_pinned_allocator()
    return torch.empty(num_bytes, dtype=torch.uint8, pin_memory=num_cards() > 0)


@cache
def _set_pinned_allocator() -> None:
    """Make torch allocate exactly what is requested, and free it when it is unused.

    By default it rounds up to a power of two, up to twice the planned memory, and keeps it.
    """
    own = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
    settings = ",".join(filter(None, (own, "pinned_max_cached_size_mb:1")))
    try:
        torch._C._accelerator_setAllocatorSettings(settings)
    except (AttributeError, RuntimeError) as error:
        log.warning("This torch takes more pinned memory than is asked for", exc_info=error)


def copy_stream(device: torch.device) -> CopyStream:
    """Create a stream for copies to and from a GPU."""
    return _CopyStream(device)


class _CopyStream:
    """Copy stream of torch, which measures waits and copies by events."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream: Any = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self._waits, self._copies = _Spans(), _Spans()

    @property
    def waited_s(self) -> float:
        """Seconds that the compute stream waited for copies."""
        return self._waits.seconds

    @property
    def copied_s(self) -> float:
        """Seconds of copying."""
        return self._copies.seconds

    def copy(self, to: Tensor, source: Tensor, after: CudaEvent | None) -> CudaEvent:
        """Enqueue a copy after an event, and return an event after the copy."""
        if after is not None:
            self._stream.wait_event(after)
        began = self._record(self._stream)
        with torch.cuda.stream(self._stream):
            to.copy_(source, non_blocking=True)
        ended = self._record(self._stream)
        self._copies.add(began, ended)
        return ended

    def record_event(self) -> CudaEvent:
        """Record an event on the compute stream."""
        return self._record(torch.cuda.current_stream(self._device))

    def wait(self, event: CudaEvent, computed: CudaEvent) -> None:
        """Make the compute stream wait for an event."""
        torch.cuda.current_stream(self._device).wait_event(event)  # type: ignore[arg-type]
        self._waits.add(computed, self.record_event())

    def synchronize(self, event: CudaEvent) -> None:
        """Block until an event has occurred."""
        recorded: Any = event
        recorded.synchronize()

    def _record(self, stream: Any) -> CudaEvent:
        """Record a timed event on a stream."""
        event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(stream)
        made: CudaEvent = event
        return made


class _Spans:
    """Adds up the seconds between pairs of events, once both have occurred."""

    def __init__(self) -> None:
        self._open: deque[tuple[Any, Any]] = deque()
        self._seconds = 0.0

    @property
    def seconds(self) -> float:
        """Sum over pairs that have occurred."""
        self._count()
        return self._seconds

    def add(self, began: CudaEvent, ended: CudaEvent) -> None:
        """Add the events at the beginning and end of a span."""
        self._open.append((began, ended))
        self._count()

    def _count(self) -> None:
        """Add the seconds of pairs that have occurred, and drop these."""
        while self._open and self._open[0][1].query():
            began, ended = self._open.popleft()
            self._seconds += began.elapsed_time(ended) / 1000
