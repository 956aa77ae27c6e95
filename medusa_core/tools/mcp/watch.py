"""Run a program in a process group of its own, and end the group with the program's user.

Started as `python -I -S watch.py FD SECONDS COMMAND…`, with the standard library alone. The user
holds the other end of a pipe: whenever that closes, even by SIGKILL, the group gets SIGTERM and,
after SECONDS, SIGKILL. The same happens to what the program leaves behind when it ends.
"""

import os
import signal
import subprocess
import sys
import threading
import time

_NOT_STARTED = 127
_POLL_S = 0.02


def main() -> int:
    """Run the command; return its exit code, or 128 and the number of the signal."""
    lifeline, grace_s, command = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    try:
        child = subprocess.Popen(command, process_group=0)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror or error}\n")
        return _NOT_STARTED
    # The pipes must end with the program; this process has no use for them.
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)

    def wait_for_user() -> None:
        os.read(lifeline, 1)
        _end_group(child.pid, grace_s)

    threading.Thread(target=wait_for_user, daemon=True).start()
    code = child.wait()
    _end_group(child.pid, grace_s)
    return code if code >= 0 else 128 - code


def _end_group(group: int, grace_s: float) -> None:
    """End all processes of a group."""
    end_s = time.monotonic() + grace_s
    try:
        os.killpg(group, signal.SIGTERM)
        while time.monotonic() < end_s:
            time.sleep(_POLL_S)
            os.killpg(group, 0)
        os.killpg(group, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return  # none is left; macOS says so of zombies by the second error


if __name__ == "__main__":
    sys.exit(main())
