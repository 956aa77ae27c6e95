"""What the engine asks of a card goes through one module."""

import ctypes
import inspect
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch.cuda._utils import _cuda_load_module, _CudaKernel

import medusa_core
from medusa_core.system import cuda

ROOT = Path(medusa_core.__file__).parent


def test_only_the_cuda_module_queries_torch_cuda() -> None:
    asks = re.compile(r"torch\.cuda\b|from torch import cuda")
    users = [
        path.relative_to(ROOT).as_posix()
        for path in sorted(ROOT.rglob("*.py"))
        if asks.search(path.read_text(encoding="utf-8"))
    ]
    assert users == ["system/cuda.py"]


def test_the_private_loader_of_torch_has_the_interface_that_kernels_use() -> None:
    loader = list(inspect.signature(_cuda_load_module).parameters)
    kernel = list(inspect.signature(_CudaKernel.__call__).parameters)
    assert loader == ["ptx", "kernel_names"]
    assert kernel == ["self", "grid", "block", "args", "shared_mem", "stream"]


@dataclass
class FakeGraphs:
    """Graphs that take planted milliseconds, in turns, by a clock that only they move."""

    milliseconds: dict[str, list[float]]
    now: float = 0.0
    order: str = ""

    def record(self, work: Callable[[], None], memory: object) -> "FakeGraph":
        return FakeGraph(self, work)

    def event(self, enable_timing: bool) -> "FakeEvent":
        assert enable_timing
        return FakeEvent(self)


@dataclass
class FakeGraph:
    graphs: FakeGraphs
    work: Callable[[], None]

    def replay(self) -> None:
        self.work()
        self.graphs.now += self.graphs.milliseconds[self.graphs.order[-1]].pop(0)


@dataclass
class FakeEvent:
    graphs: FakeGraphs
    at: float = 0.0

    def record(self) -> None:
        self.at = self.graphs.now

    def elapsed_time(self, other: "FakeEvent") -> float:
        return other.at - self.at


@pytest.mark.parametrize(
    ("ends", "order", "medians"),
    [(1e9, "abababab", [0.002, 0.005]), (-1.0, "abab", [0.001, 0.005])],
    ids=["all rounds", "one round, for lack of time"],
)
def test_seconds_are_medians_of_alternating_rounds(
    ends: float, order: str, medians: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = FakeGraphs({"a": [50, 1, 9, 2], "b": [70, 5, 5, 6]})

    def work(name: str) -> Callable[[], None]:
        def run() -> None:
            graphs.order += name

        return run

    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)
    monkeypatch.setattr(cuda, "graph_memory", lambda: None)
    monkeypatch.setattr(cuda, "record", graphs.record)
    monkeypatch.setattr(cuda, "wait", lambda device: None)
    monkeypatch.setattr(torch.cuda, "Event", graphs.event)
    device = torch.device("cuda", 0)
    assert cuda.median_seconds([work("a"), work("b")], device, 3, ends) == medians
    assert graphs.order == order


@pytest.mark.parametrize("status", [0, 9])
def test_the_version_of_the_driver_is_asked_from_nvml(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Nvml:
        def nvmlInit_v2(self) -> int:
            return 0

        def nvmlSystemGetDriverVersion(
            self, version: ctypes.Array[ctypes.c_char], size: int
        ) -> int:
            version.value = b"570.86.15"
            assert size == 80
            return status

    cuda.driver_version.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Nvml())
    assert cuda.driver_version() == ("unknown" if status else "570.86.15")
    cuda.driver_version.cache_clear()


def test_a_driver_without_nvml_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    cuda.driver_version.cache_clear()
    monkeypatch.setattr(ctypes, "CDLL", fail)
    assert cuda.driver_version() == "unknown"
    cuda.driver_version.cache_clear()
