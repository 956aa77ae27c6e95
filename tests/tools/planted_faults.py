"""Plants faults in the code, one after the other, and shows which tests notice each.

`python -m tests.tools.planted_faults [--only ID ...] [--list] [--json FILE] [-n JOBS] [--trust]`

Works in copies of the checkout. Ends with status 1 if no test notices a fault: then a test is
missing. The faults are in `fault_list.py`.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from xml.etree import ElementTree as ET

from tests.tools.fault_list import FAULTS, Fault

ROOT = Path(__file__).resolve().parents[2]
MAX_FAILURES = 5  # of the tests of a fault; then the others aren't run
TEST_TIMEOUT_S = 240  # a fault may let a test wait for ever; a busy machine takes long, too
FAULT_TIMEOUT_S = 600
GREEN_TIMEOUT_S = 3600
_PLUGIN = "tests.tools.planted_faults"
_SHOWN = 3  # names of tests in the table
_LEFT_OUT = (".git", ".venv", "__pycache__", ".*_cache")


class PlantingError(Exception):
    """Raised if a fault or its tests aren't where the list says."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of the tests with a planted fault.

    Attributes:
        fault_id: Of the fault.
        room: Package of the changed file.
        effect: What goes wrong.
        caught_by: Names of the tests that failed; of all of them at most about `MAX_FAILURES`.
        seconds: Duration of the tests.
    """

    fault_id: str
    room: str
    effect: str
    caught_by: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class TestRun:
    """Outcome of one run of pytest.

    Attributes:
        status: Its exit status; −1 if it was killed after its time limit.
        failed: Names of failed tests, parameters left out.
        output: The end of what it printed.
    """

    __test__ = False

    status: int
    failed: tuple[str, ...]
    output: str


def find_place(root: Path, fault: Fault) -> Path:
    """Find the file that holds a fault's text exactly once.

    Args:
        root: Of the checkout.
        fault: The fault.

    Raises:
        PlantingError: No file or several hold the text, or one holds it twice.
    """
    file = root / fault.file
    found = [file] if file.exists() and fault.old in file.read_text(encoding="utf-8") else []
    if not found:
        package = root / Path(fault.file).parts[0]
        files = sorted(package.rglob("*.py"))
        found = [one for one in files if fault.old in one.read_text(encoding="utf-8")]
    if len(found) != 1:
        where = ", ".join(str(one.relative_to(root)) for one in found) or "no file"
        raise PlantingError(f"{fault.fault_id}: its text is in {where}: {fault.old!r}")
    count = found[0].read_text(encoding="utf-8").count(fault.old)
    if count != 1:
        raise PlantingError(f"{fault.fault_id}: {found[0]} holds {fault.old!r} {count} times")
    return found[0]


def find_tests(root: Path, fault: Fault) -> tuple[str, ...]:
    """Find the test files of a fault by their names.

    Args:
        root: Of the checkout.
        fault: The fault.

    Returns:
        Paths relative to `root`.

    Raises:
        PlantingError: There is no file of one of the names.
    """
    paths: list[str] = []
    for name in fault.tests:
        found = sorted((root / "tests").rglob(name))
        if not found:
            raise PlantingError(f"{fault.fault_id}: there is no {name} in tests")
        paths += [str(path.relative_to(root)) for path in found]
    return tuple(dict.fromkeys(paths))


@contextmanager
def planted(root: Path, fault: Fault) -> Iterator[None]:
    """Change a file for the time of the context."""
    file = find_place(root, fault)
    before = file.read_text(encoding="utf-8")
    try:
        _write(file, before.replace(fault.old, fault.new))
        yield
    finally:
        _write(file, before)


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    # Python compares seconds and size: a change within a second would go unseen.
    Path(importlib.util.cache_from_source(str(file))).unlink(missing_ok=True)


def copy_checkout(to: Path) -> None:
    """Copy the checkout without its history; the environment is linked."""
    shutil.copytree(ROOT, to, symlinks=True, ignore=shutil.ignore_patterns(*_LEFT_OUT))
    if (ROOT / ".venv").exists():
        (to / ".venv").symlink_to((ROOT / ".venv").resolve(), target_is_directory=True)


def run_tests(root: Path, paths: Sequence[str], limit_s: float, *options: str) -> TestRun:
    """Run pytest on some files.

    Args:
        root: A copy of the checkout.
        paths: Test files.
        limit_s: Seconds after which it is killed.
        options: Further arguments.
    """
    with TemporaryDirectory() as folder:
        report, log = Path(folder) / "report.xml", Path(folder) / "log"
        command = [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", _PLUGIN),
            *("-o", f"timeout={TEST_TIMEOUT_S}", f"--junitxml={report}", *options, *paths),
        ]
        environment = os.environ | {"PYTHONPATH": str(root)}
        with log.open("wb") as out:
            try:
                status = subprocess.run(
                    command, cwd=root, env=environment, stdout=out, stderr=out, timeout=limit_s
                ).returncode
            except subprocess.TimeoutExpired:
                status = -1
        output = log.read_text(encoding="utf-8", errors="replace")[-2000:]
        failed = _failed_tests(report) if report.exists() else ()
    return TestRun(status, failed, output)


def _failed_tests(report: Path) -> tuple[str, ...]:
    cases = ET.parse(report).getroot().iter("testcase")
    failed = [case for case in cases if {"failure", "error"} & {part.tag for part in case}]
    return tuple(dict.fromkeys(_name(case) for case in failed))


def _name(case: ET.Element) -> str:
    module = (case.get("classname") or "").rpartition(".")[2]
    return f"{module}::{(case.get('name') or '').partition('[')[0]}".removeprefix("::")


def check_fault(root: Path, fault: Fault) -> Verdict:
    """Plant one fault and run its tests.

    Raises:
        PlantingError: It can't be planted, or pytest couldn't run the tests.
    """
    room = str(find_place(root, fault).parent.relative_to(root))
    paths = find_tests(root, fault)
    started = time.monotonic()
    with planted(root, fault):
        ran = run_tests(root, paths, FAULT_TIMEOUT_S, f"--maxfail={MAX_FAILURES}")
    seconds = time.monotonic() - started
    caught_by = ran.failed
    if ran.status != 0 and not caught_by:
        if ran.status in (3, 4, 5):  # an internal error, a wrong call, no tests
            raise PlantingError(f"{fault.fault_id}: pytest can't run the tests:\n{ran.output}")
        caught_by = ("(the run ended early)",)
    return Verdict(fault.fault_id, room, fault.effect, caught_by, round(seconds, 1))


def table(verdicts: Iterable[Verdict]) -> str:
    """A Markdown table of all verdicts."""
    lines = [
        "| fault | room | what goes wrong | tests that notice | some of them | seconds |",
        "|---|---|---|---|---|---|",
    ]
    for one in verdicts:
        count = len(one.caught_by)
        number = f"{MAX_FAILURES} or more" if count >= MAX_FAILURES else str(count or "**none**")
        names = ", ".join(f"`{name}`" for name in one.caught_by[:_SHOWN])
        lines.append(
            f"| {one.fault_id} | {one.room} | {one.effect} | {number} | {names} "
            f"| {one.seconds:.0f} |"
        )
    return "\n".join(lines)


def check_all(faults: Sequence[Fault], jobs: int, *, trust: bool) -> list[Verdict]:
    """Check faults in copies of the checkout.

    Args:
        faults: The faults.
        jobs: How many are checked at the same time.
        trust: Don't run the tests without a fault first.

    Returns:
        Verdicts in the order of `faults`.

    Raises:
        PlantingError: Tests fail without a fault, or a fault can't be planted.
    """
    with TemporaryDirectory(prefix="planted-faults-") as folder:
        roots = [Path(folder) / str(number) for number in range(jobs)]
        for root in roots:
            copy_checkout(root)
        for fault in faults:  # all at once, before anything takes long
            find_place(roots[0], fault)
            find_tests(roots[0], fault)
        if not trust:
            every = dict.fromkeys(path for one in faults for path in find_tests(roots[0], one))
            _check_green(roots[0], list(every), jobs)
        free: SimpleQueue[Path] = SimpleQueue()
        for root in roots:
            free.put(root)

        def check(fault: Fault) -> Verdict:
            root = free.get()
            try:
                verdict = check_fault(root, fault)
            finally:
                free.put(root)
            print(
                f"{fault.fault_id}: noticed by {len(verdict.caught_by)} tests, "
                f"{verdict.seconds:.0f} s",
                file=sys.stderr,
                flush=True,
            )
            return verdict

        with ThreadPoolExecutor(jobs) as pool:
            return list(pool.map(check, faults))


def _check_green(root: Path, paths: Sequence[str], jobs: int) -> None:
    """Run tests without a fault: a test that fails anyway would seem to notice one.

    Raises:
        PlantingError: Some fail.
    """
    print(f"{len(paths)} test files without a fault", file=sys.stderr, flush=True)
    ran = run_tests(root, paths, GREEN_TIMEOUT_S, "-n", str(jobs), "--dist=worksteal")
    if ran.status != 0:
        failed = ", ".join(ran.failed) or ran.output
        raise PlantingError(f"Tests fail without a fault: {failed}")


def pytest_configure() -> None:
    """Stop Hypothesis at the first failure; runs of pytest load this module as a plugin.

    It would seek the smallest example otherwise, which takes minutes.
    """
    from hypothesis import Phase, settings

    settings.register_profile("planted faults", phases=(Phase.explicit, Phase.generate))
    settings.load_profile("planted faults")


def main() -> int:
    """Print the table; 1 if a fault went unnoticed, 2 if one couldn't be planted."""
    parser = argparse.ArgumentParser(description="Plant faults, and show which tests notice them.")
    parser.add_argument("--only", nargs="+", default=[], metavar="ID", help="check these alone")
    parser.add_argument("--list", action="store_true", help="show the faults and plant none")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the verdicts there, too")
    parser.add_argument("-n", dest="jobs", type=int, default=1, help="faults at the same time")
    parser.add_argument(
        "--trust", action="store_true", help="don't run the tests without a fault first"
    )
    args = parser.parse_args()
    unknown = set(args.only) - {fault.fault_id for fault in FAULTS}
    if unknown:
        parser.error(f"there is no fault {', '.join(sorted(unknown))}; --list shows all")
    faults = [fault for fault in FAULTS if not args.only or fault.fault_id in args.only]
    started = time.monotonic()
    try:
        if args.list:
            for fault in faults:
                place = find_place(ROOT, fault).relative_to(ROOT)
                print(f"{fault.fault_id:<20} {place}: {fault.effect}")
                find_tests(ROOT, fault)
            return 0
        verdicts = check_all(faults, max(1, args.jobs), trust=args.trust)
    except PlantingError as error:
        print(error, file=sys.stderr)
        return 2
    print(table(verdicts))
    missed = [one.fault_id for one in verdicts if not one.caught_by]
    minutes = (time.monotonic() - started) / 60
    print(f"\n{len(verdicts) - len(missed)} of {len(verdicts)} noticed, {minutes:.1f} minutes.")
    if missed:
        print(f"Not noticed: {', '.join(missed)}")
    if args.json is not None:
        text = json.dumps([asdict(one) for one in verdicts], indent=1, ensure_ascii=False)
        args.json.write_text(text + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
