"""What holds for every test: no display, one thread, fixed seeds, no stray errors or threads."""

import atexit
import gc
import logging
import os
import random
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import count
from pathlib import Path

import psutil
import pytest

from medusa_core.system.garbage import collect_by

# Read by Qt and by torch when they are imported, which is after this file.
if sys.platform.startswith("linux"):
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
# Workers share the cores: a second thread for small matrices waits longer than it computes.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# MEDUSA_TEST_CPU=avx2: as on a CPU with no more than what that compiled library needs.
if TEST_CPU := os.environ.get("MEDUSA_TEST_CPU", ""):
    os.environ["MEDUSA_NATIVE"] = TEST_CPU
    os.environ["ATEN_CPU_CAPABILITY"] = "avx512" if TEST_CPU.startswith("avx512") else "avx2"
# What is written once for all workers: the first process makes the folder, workers inherit it.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["MEDUSA_TEST_SHARED"] = tempfile.mkdtemp(prefix="medusa-shared-")
    atexit.register(shutil.rmtree, os.environ["MEDUSA_TEST_SHARED"], ignore_errors=True)

# Asserts of helpers say what they compared, as those of test modules do.
pytest.register_assert_rewrite("tests.support")

# First of all: from here on HOME is a temporary folder.
pytest_plugins = [
    "tests.support.isolated_home",
    "tests.support.engine.fixtures",
    "tests.support.server.fixtures",
]

SEED = 20_261_120
TESTS = Path(__file__).resolve().parent
OUR_LOGGERS = ("app", "medusa_core")
THREAD_GRACE_S = 60.0
MISSING = "real model missing: "  # as tests say it that are skipped for that
WHOLE_EVERY = 400  # tests between two collections of everything, which take half a second
WORKER_BYTES = 3 << 30  # of memory at the end of a run of everything


tests_done = count(1)


@pytest.hookimpl(optionalhook=True)  # xdist is left out with -p no:xdist
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of processes for `-n auto`, as far as memory goes.

    It is one more than there are cores, since tests wait a fifth of their time.
    """
    fitting = psutil.virtual_memory().total // WORKER_BYTES
    return max(1, min((os.cpu_count() or 1) + 1, fitting))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Collect cyclic garbage between tests alone, in the main thread.

    A window that was closed is such garbage. If it is collected in an engine's thread, its timers
    stay, and Qt fires them at what is no more (see `app.startup.gc_scheduler`).
    """
    gc.disable()
    collect_by(collect_outside_of_windows)


def collect_outside_of_windows() -> bool:
    """Collect garbage, unless this is an engine's thread and there may be windows."""
    qt = sys.modules.get("PySide6.QtCore")
    has_windows = qt is not None and qt.QCoreApplication.instance() is not None
    may_collect = threading.current_thread() is threading.main_thread() or not has_windows
    if may_collect:
        gc.collect()
    return may_collect


def pytest_collection_finish() -> None:
    """Leave modules, libraries and the tests themselves out of every later collection.

    Commands that tests call in this process don't change that: frozen models of servers that are
    shared by tests are never freed, and a collection of everything takes half a second.
    """
    gc.collect()
    gc.freeze()
    patch = pytest.MonkeyPatch()
    for name in ("freeze", "unfreeze"):
        patch.setattr(gc, name, lambda: None)


def pytest_runtest_logfinish() -> None:
    """Collect what a test has left."""
    gc.collect(1 if next(tests_done) % WHOLE_EVERY else 2)


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    """Fix all seeds and use one thread, so that every run and every order of tests is equal."""
    random.seed(SEED)
    # Only where the test's imports have loaded them: most tests need neither.
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(SEED)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(SEED)
        # A runner of an earlier test may have set more, which wait for each other on small models.
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(autouse=True)
def background_work_is_brief() -> None:
    """Shorten calibrations and races of drafters, which would take most of a test's time.

    One round is measured beyond the first, and few short questions are asked.
    """
    calibration = sys.modules.get("medusa_core.speculation.tuning.calibration")
    if calibration is not None:
        calibration.BUDGET_S["cpu"] = 0.25
    race = sys.modules.get("medusa_core.engine.drafter_race")
    if race is not None:
        race._NUM_QUESTIONS, race._MAX_NEW_TOKENS = 4, 12


@pytest.fixture(autouse=True, scope="session")
def random_targets_are_trusted() -> Iterator[None]:
    """Render templates of random targets in this process; see `trusted_template`."""
    tiny = sys.modules.get("tests.support.models.tiny")
    with nullcontext() if tiny is None else tiny.trusted_template():
        yield


class ErrorCollector(logging.Handler):
    """Keeps the ERROR records of our packages, from any thread."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record as text."""
        self.lines.append(f"{record.name}: {record.getMessage()}")


@pytest.fixture(autouse=True)
def no_stray_errors(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which our code logged an error, unless it is marked `expects_errors`."""
    collector = ErrorCollector()
    loggers = [logging.getLogger(name) for name in OUR_LOGGERS]
    for logger in loggers:
        logger.addHandler(collector)
    yield
    for logger in loggers:
        logger.removeHandler(collector)
    if collector.lines and request.node.get_closest_marker("expects_errors") is None:
        pytest.fail("errors were logged:\n" + "\n".join(collector.lines), pytrace=False)


def living_threads() -> set[threading.Thread]:
    """Threads that Python started, without those that live as long as a model or a library."""
    return {
        thread
        for thread in threading.enumerate()
        # A dummy stands for a thread of Qt that once called Python.
        if not isinstance(thread, threading._DummyThread)
        and not type(thread).__module__.startswith("tqdm")
        # Helpers of the compiled step, and readers of layers and of cached rows:
        # `test_worker_threads_sleep_and_end`, `test_the_reader_thread_ends_with_its_model` and
        # `test_the_reader_thread_ends_with_its_cache` see that they go with what they serve.
        # asyncio's executor has as many as were needed at once, until its loop ends: the servers of
        # the session have one each.
        and not thread.name.startswith(("medusa-step-", "medusa-layers", "medusa-rows", "asyncio_"))
    }


@pytest.fixture(autouse=True)
def no_dangling_threads() -> Iterator[None]:
    """Fail a test that leaves a thread running; threads of wider fixtures are allowed."""
    before = living_threads()
    yield
    deadline = time.monotonic() + THREAD_GRACE_S
    while (left := living_threads() - before) and time.monotonic() < deadline:
        time.sleep(0.01)
    if left:
        names = ", ".join(sorted(thread.name for thread in left))
        pytest.fail(f"threads were left running: {names}", pytrace=False)


LANES = {
    "placement": "policies of batches and clusters",
    "card": "the fake card",
    "gpu": "a CUDA device",
    "real_models": "real models",
    "recipe": "the demo model's recipe",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--lane`."""
    parser.addoption(
        "--lane",
        action="append",
        default=[],
        choices=[*LANES, "all"],
        help="also run a lane that the daily run leaves out; may be repeated",
    )


def lane_of(path: Path) -> str | None:
    """Name of the lane that a file or folder below `tests` belongs to; None for none."""
    parts = path.relative_to(TESTS).parts if path.is_relative_to(TESTS) else ()
    if parts[:1] == ("gpu",):
        return "gpu"
    return parts[1] if parts[:1] == ("lanes",) and len(parts) > 1 else None


def skipped_lanes(config: pytest.Config) -> dict[str, str]:
    """Lanes that this run leaves out, with what they test; a lane named by its path is run."""
    named = {lane_of(Path(arg.split("::")[0]).resolve()) for arg in config.args}
    asked = {*config.getoption("lane"), *named}
    return {} if "all" in asked else {k: v for k, v in LANES.items() if k not in asked}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Ignore lanes that weren't requested."""
    return True if lane_of(collection_path) in skipped_lanes(config) else None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the skipped lanes, the missing real models, and the ties that occurred."""
    if any(Path(arg).resolve() == TESTS for arg in config.args):
        for lane, content in skipped_lanes(config).items():
            terminalreporter.write_line(f"left out: {content} (run with --lane {lane})")
        from tests.support.models.natives import libraries  # imports torch: not for one room

        runs = ", ".join(path.stem for path in libraries()) or "none"
        forced = f" (MEDUSA_TEST_CPU={TEST_CPU})" if TEST_CPU else ""
        terminalreporter.write_line(f"compiled libraries that ran: {runs}{forced}")
    tell_ties(terminalreporter)
    reported = [str(report.longrepr) for report in terminalreporter.stats.get("skipped", [])]
    missing = sorted(
        {line.partition(MISSING)[2].strip("')\n ") for line in reported if MISSING in line}
    )
    if missing:
        terminalreporter.write_line(
            f"{MISSING}{', '.join(missing)} (python -m tests.tools.real_models fetches)"
        )


def tell_ties(terminalreporter: pytest.TerminalReporter) -> None:
    """List the differences of the run that rounding explains, also when all tests passed."""
    reports = [report for some in terminalreporter.stats.values() for report in some]
    calls = [report for report in reports if getattr(report, "when", "") == "call"]
    reported = [pair for report in calls for pair in report.user_properties]
    lines = [line for name, line in reported if name == "tie"]
    if lines:
        terminalreporter.write_sep("-", f"differences at ties: {len(lines)}")
        for line in lines:
            terminalreporter.write_line(line)
