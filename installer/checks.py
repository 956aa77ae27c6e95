"""What `python3 installer test` runs: lint, format, types, import contracts, tests."""

import os
import re
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from installer.console import say
from installer.errors import SetupError
from installer.layout import Layout
from installer.process import Commands, Output, run

LONGEST_S = 1800.0  # of a check beside the others


@dataclass(frozen=True, slots=True)
class Check:
    """One tool.

    Attributes:
        name: as the summary shows it.
        command: program of the environment, and its arguments.
        is_beside: whether it runs beside the others, since it takes one core for long; its lines
            are shown at the end.
    """

    name: str
    command: tuple[str, ...]
    is_beside: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a check ended.

    Attributes:
        name: of the check.
        passed: whether it found nothing.
        closing_line: the last line it printed.
        duration_s: wall time.
    """

    name: str
    passed: bool
    closing_line: str
    duration_s: float

    def __str__(self) -> str:
        word = "passed" if self.passed else "FAILED"
        return f"{self.name:<16} {word}  {self.duration_s:6.1f} s  {self.closing_line}"


# Processes by cores and memory (see tests/conftest.py); who is done takes tests from the others.
_PARALLEL = ("-n", "auto", "--maxprocesses=8", "--dist=worksteal")


def all_checks(pytest_args: Sequence[str]) -> tuple[Check, ...]:
    """Return all checks, the quick ones first."""
    return (
        Check("ruff check", ("ruff", "check", ".")),
        Check("ruff format", ("ruff", "format", "--check", ".")),
        Check("import contracts", ("lint-imports", "--no-logo")),
        Check("mypy", ("mypy",), is_beside=True),
        Check("pytest", ("pytest", *_PARALLEL, *pytest_args)),
    )


def room_checks(layout: Layout, room: str, pytest_args: Sequence[str]) -> tuple[Check, ...]:
    """Return the tests of one folder of the code, such as `runtime/kv`, `app/chat` or `laws`.

    Raises:
        SetupError: no tests are there.
    """
    tests = layout.root / "tests"
    name = room.strip("/").removeprefix("medusa_core/")
    found = next((path for path in (tests / "unit" / name, tests / name) if path.is_dir()), None)
    if found is None or tests not in found.resolve().parents:
        rooms = {path.parent for path in (tests / "unit").rglob("test_*.py")}
        names = sorted(path.relative_to(tests / "unit").as_posix() for path in rooms)
        raise SetupError(
            f"There are no tests for {room}.",
            f"Name a folder of the code that has some:\n{', '.join(names)}",
        )
    path = found.relative_to(layout.root).as_posix()
    return (Check("pytest", ("pytest", *_PARALLEL, path, *pytest_args)),)


def run_checks(
    layout: Layout, commands: Commands, checks: Sequence[Check], env: Mapping[str, str]
) -> int:
    """Run every check, also after one has failed, and close with a summary.

    Args:
        layout: paths of the checkout.
        commands: runs the tools.
        checks: what to run.
        env: additional environment variables.

    Returns:
        Exit status: 0 if all passed.
    """
    with ThreadPoolExecutor() as pool:
        beside = {
            check.name: pool.submit(_run_quietly, layout, commands, check, env)
            for check in checks
            if check.is_beside
        }
        shown = {
            check.name: _run(layout, commands, check, env)
            for check in checks
            if not check.is_beside
        }
        verdicts = [shown.get(check.name) or _shown(check, beside[check.name]) for check in checks]
    say("\n== summary")
    for verdict in verdicts:
        say(str(verdict))
    failed = sum(not verdict.passed for verdict in verdicts)
    say("All checks passed." if not failed else f"{failed} of {len(verdicts)} checks failed.")
    return 1 if failed else 0


def _run(layout: Layout, commands: Commands, check: Check, env: Mapping[str, str]) -> Verdict:
    say(f"\n== {check.name}")
    start = time.perf_counter()
    output = run(commands, _command(layout, check), env, say)
    return _verdict(check, output, time.perf_counter() - start)


def _run_quietly(
    layout: Layout, commands: Commands, check: Check, env: Mapping[str, str]
) -> tuple[Verdict, str]:
    """Return the verdict and the output."""
    start = time.perf_counter()
    output = commands.capture(_command(layout, check), LONGEST_S, {**os.environ, **env})
    return _verdict(check, output, time.perf_counter() - start), output.text


def _shown(check: Check, ran: "Future[tuple[Verdict, str]]") -> Verdict:
    verdict, text = ran.result()
    say(f"\n== {check.name}\n{text.rstrip()}")
    return verdict


def _command(layout: Layout, check: Check) -> list[str]:
    program, *arguments = check.command
    return [str(layout.program(program)), *arguments]


def _verdict(check: Check, output: Output, duration_s: float) -> Verdict:
    return Verdict(check.name, output.status == 0, _closing_line(output.text), duration_s)


def _closing_line(text: str) -> str:
    """Return the last line of output, without pytest's equals signs."""
    lines = [re.sub(r"^=+\s*|\s*=+$", "", line).strip() for line in text.splitlines()]
    return next((line for line in reversed(lines) if line), "")
