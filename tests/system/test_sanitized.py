"""The compiled step under the address and undefined-behaviour sanitizers."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from medusa_core.system.native.build import build_sanitized

TESTS = Path(__file__).resolve().parents[1]
GCC = shutil.which("gcc")
CPUS = ["native", "x86-64-v3"] if platform.machine() == "x86_64" else ["native"]
NATIVE = (
    *("native", "native_families", "native_operations", "native_pool"),
    *("growth", "phrases", "trace", "heads"),
)
FAMILIES = ("mamba", "lfm2", "qwen3_5", "gemma4", "recurrence", "states")
LAWS = ("laws", "oracle")  # half an hour: on this processor alone
RUNS = ["laws", "families", *(f"native tests, {cpu}" for cpu in CPUS)]


def sanitizer() -> str:
    """Return the library to preload for the sanitizer.

    With C++'s library: the sanitizer looks there for what throws exceptions while it is loaded, and
    torch throws some.
    """
    assert GCC is not None
    found = [
        subprocess.run(
            [GCC, f"-print-file-name={name}"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("libasan.so", "libstdc++.so")
    ]
    return " ".join(found)


def run_on(library: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run test modules on a sanitized library, in a process that has loaded its runtime."""
    environment = {
        **os.environ,
        "MEDUSA_NATIVE": str(library),
        "LD_PRELOAD": sanitizer(),
        "ASAN_OPTIONS": "detect_leaks=0",  # Python keeps much until it ends
        "QT_QPA_PLATFORM": "offscreen",
    }
    files = [str(found) for name in tests for found in TESTS.rglob(f"test_{name}.py")]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "--timeout=1500", *files],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(3000)
@pytest.mark.skipif(GCC is None, reason="gcc isn't installed")
@pytest.mark.parametrize(
    ("cpu", "tests"),
    [("native", LAWS), ("native", FAMILIES), *((cpu, NATIVE) for cpu in CPUS)],
    ids=RUNS,
)
def test_the_compiled_library_passes_its_sanitizers(
    cpu: str, tests: tuple[str, ...], tmp_path: Path
) -> None:
    library = tmp_path / "sanitized.so"
    build_sanitized(library, cpu)
    ran = run_on(library, *tests)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
    assert " passed" in ran.stdout


@pytest.mark.slow
@pytest.mark.skipif(GCC is None, reason="gcc isn't installed")
def test_a_read_past_the_end_is_caught(tmp_path: Path) -> None:
    """What is handed over is shorter than is said."""
    library = tmp_path / "sanitized.so"
    build_sanitized(library)
    script = (
        "import ctypes, sys\n"
        "from pathlib import Path\n"
        "from medusa_core.system.native.binding import open_library\n"
        "library = open_library(Path(sys.argv[1]))\n"
        "libc = ctypes.CDLL(None)\n"
        "libc.malloc.restype = ctypes.c_void_p\n"
        "row = libc.malloc(ctypes.c_size_t(60))\n"
        "rows, columns = (ctypes.c_int32 * 1)(0), (ctypes.c_int32 * 1)(0)\n"
        "told = (ctypes.c_float * 1)()\n"
        "library.probabilities(row, 64, rows, columns, 1, told)\n"
    )
    environment = {
        **os.environ,
        "LD_PRELOAD": sanitizer(),
        "ASAN_OPTIONS": "detect_leaks=0",
    }
    ran = subprocess.run(
        [sys.executable, "-c", script, str(library)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode != 0
    # A wide load that only ends behind the row is an "unknown-crash" to it.
    assert "ERROR: AddressSanitizer" in ran.stderr
