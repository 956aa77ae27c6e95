"""A desktop for a screen reader: a display without a screen, and a D-Bus of its own.

`python -m tests.system.screen_reader.session` visits every page and does the main tasks; it prints
what it found as JSON. It needs Xvfb, dbus-run-session, at-spi2-core, openbox and gir1.2-atspi-2.0.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SYSTEM_PYTHON = "/usr/bin/python3"
_PROGRAMS = ("Xvfb", "dbus-run-session", "openbox", SYSTEM_PYTHON)
_BINDINGS = "import gi; gi.require_version('Atspi', '2.0'); from gi.repository import Atspi"


def lack() -> str:
    """Return what is missing to run a screen reader; empty for nothing."""
    if sys.platform != "linux":
        return "the accessibility bus is Linux's"
    if missing := [name for name in _PROGRAMS if shutil.which(name) is None]:
        return f"apt-get install {' '.join(missing)}"
    bindings = subprocess.run([SYSTEM_PYTHON, "-c", _BINDINGS], capture_output=True, check=False)
    return "apt-get install gir1.2-atspi-2.0 python3-gi at-spi2-core" if bindings.returncode else ""


def run(parts: Sequence[str] = (), timeout_s: float = 900.0) -> dict[str, object]:
    """Run a screen reader with the window.

    Args:
        parts: Names of tours (`visit.TOURS`) and tasks (`tasks.TASKS`); all without any.
        timeout_s: After so long it is ended.

    Returns:
        `pages`: faults of each page, by its name; `tasks`: what came of each task.
    """
    with _display() as name, tempfile.TemporaryDirectory(prefix="screen-reader-") as folder:
        report = Path(folder) / "report.json"
        command = ["dbus-run-session", "--", SYSTEM_PYTHON, "-W", "ignore"]
        command += ["-m", "tests.system.screen_reader.reader", sys.executable, folder, *parts]
        environment = os.environ | {"DISPLAY": name, "PYTHONPATH": str(ROOT)}
        environment.pop("WAYLAND_DISPLAY", None)
        ended = subprocess.run(
            command, cwd=ROOT, env=environment, timeout=timeout_s, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        if not report.exists():
            raise RuntimeError(f"the reader ended with {ended.returncode}: {ended.stderr[-2000:]}")
        found: dict[str, object] = json.loads(report.read_text(encoding="utf-8"))
        return found


@contextmanager
def _display() -> Iterator[str]:
    """Start a display with a window manager, which gives windows the keyboard."""
    reading, writing = os.pipe()
    size = ["-screen", "0", "1400x1000x24", "-nolisten", "tcp"]
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writing), *size],
        pass_fds=(writing,), stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(writing)
    with os.fdopen(reading) as answer:
        name = f":{answer.readline().strip()}"
    manager = subprocess.Popen(
        ["openbox"], env=os.environ | {"DISPLAY": name}, stderr=subprocess.DEVNULL
    )
    try:
        yield name
    finally:
        for process in (manager, server):
            process.terminate()
            process.wait()


def main() -> int:
    """Print the faults; return 1 if there are any."""
    options = argparse.ArgumentParser(prog="python -m tests.system.screen_reader.session")
    options.add_argument("parts", nargs="*", help="tours and tasks; default: all")
    if why := lack():
        sys.stderr.write(f"{why}\n")
        return 2
    found = run(options.parse_args().parts)
    sys.stdout.write(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    pages, tasks = found["pages"], found["tasks"]
    assert isinstance(pages, dict)
    assert isinstance(tasks, dict)
    failed = [one for one in tasks.values() if str(one).startswith("FAILED")]
    return 1 if failed or any(pages.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
