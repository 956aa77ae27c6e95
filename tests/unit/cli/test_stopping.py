"""Commands that listen for the end of their input, in processes of their own."""

from __future__ import annotations

import subprocess
import sys

_WATCHED = """
import threading, time
from medusa_core.system.sandbox.stopping import stop_with_input
stopped = threading.Event()
stop_with_input(stopped)
"""


def _started_at(rest: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", _WATCHED + rest],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def test_a_finished_command_ends_while_its_input_is_open() -> None:
    # the thread must be within its read as Python ends
    process = _started_at("time.sleep(0.2); print('made')")
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        printed, complaints = process.stdout.read(), process.stderr.read()
        assert (process.wait(), printed.split(), complaints) == (0, [b"made"], b"")


def test_a_command_is_stopped_by_the_end_of_its_input() -> None:
    process = _started_at("print(stopped.wait(30))")
    printed, complaints = process.communicate(b"ignored")
    assert (process.returncode, printed.split(), complaints) == (0, [b"True"], b"")
