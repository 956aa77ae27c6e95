"""The number of torch's threads: who sets it, and what other threads see of it."""

import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

import medusa_core
from medusa_core.system import compute_threads


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    compute_threads.use(before)


def in_thread(function: Callable[[], int]) -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(function()))
    thread.start()
    thread.join()
    return found[0]


def test_only_one_module_sets_torchs_threads() -> None:
    root = Path(medusa_core.__file__).parent
    setters = [
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if re.search(r"torch\.set_num_threads\(", path.read_text(encoding="utf-8"))
    ]
    assert setters == ["system/compute_threads.py"]


def test_a_measurement_beside_limited_work_uses_all_threads() -> None:
    def measured() -> int:
        with compute_threads.limited(compute_threads.count()):
            return torch.get_num_threads()

    compute_threads.use(3)
    with compute_threads.limited(1):
        assert torch.get_num_threads() == compute_threads.count() == 1
        assert in_thread(torch.get_num_threads) == 1  # which it would have used
        assert in_thread(measured) == 3
    assert torch.get_num_threads() == compute_threads.count() == 3


def test_limits_nest_and_end_with_errors() -> None:
    def fail() -> None:
        with compute_threads.limited(1):
            with compute_threads.limited(4):
                assert compute_threads.count() == 4
            assert compute_threads.count() == 1
            raise ValueError("broken")

    compute_threads.use(2)
    with pytest.raises(ValueError, match="broken"):
        fail()
    assert torch.get_num_threads() == compute_threads.count() == in_thread(compute_threads.count)
    assert compute_threads.count() == 2
