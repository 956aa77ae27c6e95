"""Memory that a long use of the engine leaves behind: none."""

import json
import subprocess
import sys
from array import array
from pathlib import Path

import pytest

from medusa_core.runtime.tree.tables import MAX_TREE_ROWS
from medusa_core.speculation.drafters.grown import form_of
from medusa_core.speculation.drafters.lineup import drafter_registry

ROOT = Path(__file__).parents[2]
NUM_ANSWERS, EVERY = 5000, 250
WARM = 1000  # caches are full, and every kernel and library is loaded
MEBIBYTE = 1 << 20


def form(num_children: list[int]) -> bytes:
    """Return a tree's growth form: children of each node, then its sources."""
    return array("i", [*num_children, *([1] * len(num_children))]).tobytes()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_thousand_answers_of_all_kinds_leak_no_memory(tmp_path: Path) -> None:
    reported = tmp_path / "soaked.json"
    command = [sys.executable, "-m", "tests.benchmarks.soak", str(tmp_path / "models")]
    more = ["--answers", str(NUM_ANSWERS), "--every", str(EVERY), "--json", str(reported)]
    subprocess.run([*command, *more], cwd=ROOT, check=True)
    soaked = json.loads(reported.read_text())
    assert set(soaked["drafters"]) == set(drafter_registry().names)
    assert soaked["num_cancelled"] > NUM_ANSWERS / 10
    assert soaked["num_refused"] < NUM_ANSWERS / 10
    warm = [held for held in soaked["held"] if held["num_answers"] == WARM]
    first, last = warm[0], soaked["held"][-1]
    assert last["num_answers"] == NUM_ANSWERS
    assert last["resident_bytes"] <= 1.05 * first["resident_bytes"]
    assert last["num_objects"] <= 1.05 * first["num_objects"]
    for count in ("num_threads", "num_children", "num_files"):
        assert last[count] == first[count], count


def test_shapes_of_small_trees_are_cached_and_large_ones_arent() -> None:
    small = form([2, 1, 0, 0])
    assert form_of(small, ("heads",)) is form_of(small, ("heads",))
    large = form([MAX_TREE_ROWS - 1, *([0] * (MAX_TREE_ROWS - 1))])
    first, second = form_of(large, ("heads",)), form_of(large, ("heads",))
    assert first == second
    assert first is not second


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc keeps what was freed")
def test_freed_memory_returns_to_the_system() -> None:
    code = """
import ctypes, psutil
from medusa_core.system.garbage import trim_heap
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = (
    ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p])
pieces = [libc.malloc(100_000) for _ in range(1000)]
for piece in pieces:
    ctypes.memset(piece, 1, 100_000)
kept = [pieces.pop(place) for place in range(990, 0, -10)]  # so that the heap's end is in use
for piece in pieces:
    libc.free(piece)
resident = lambda: psutil.Process().memory_info().rss
before = resident()
trim_heap()
print(before - resident())
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    assert int(done.stdout) > 50 * MEBIBYTE
