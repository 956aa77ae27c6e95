"""Opens the window of a package's first start on a display of its own, and takes its picture.

python -m tests.tools.first_start_picture PROGRAM OUT.png

PROGRAM is the folder of a package, such as /usr/lib/medusa-chat. Needs Xvfb and a Python with Tk.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from PySide6.QtCore import QPoint, QRect
from PySide6.QtGui import QGuiApplication

# The screen's root shows nothing else than the window.
SCREEN = "1280x900x24"
SYSTEM_PYTHON = "/usr/bin/python3"
PATIENCE_S = 120.0
POLL_S = 0.5
_GRAB = "import sys; from tests.tools.first_start_picture import grab; sys.exit(grab(sys.argv[1]))"
_EVERY = 8  # a row in so many is looked at: windows are larger


def main() -> int:
    """Take it; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=Path, help="folder of a package")
    parser.add_argument("out", type=Path)
    chosen = parser.parse_args()
    with TemporaryDirectory(prefix="first-start-") as home, _display() as display:
        env = os.environ | {"DISPLAY": display, "HOME": home, "MEDUSA_HOME": f"{home}/medusa"}
        window = subprocess.Popen(
            [SYSTEM_PYTHON, str(chosen.program / "launch.py"), "medusa-chat"], env=env
        )
        try:
            return 0 if _is_taken(chosen.out, env) else 1
        finally:
            window.terminate()
            window.wait()


def _is_taken(out: Path, env: dict[str, str]) -> bool:
    """Whether a window came up, whose picture is in the file then."""
    take = [sys.executable, "-c", _GRAB, str(out)]
    env = env | {"QT_QPA_PLATFORM": "xcb"}
    deadline_s = time.monotonic() + PATIENCE_S
    size = -1
    while time.monotonic() < deadline_s:
        time.sleep(POLL_S)
        if subprocess.run(take, env=env, check=False).returncode == 0:
            if out.stat().st_size == size:  # it is painted to its end
                return True
            size = out.stat().st_size
    return False


def grab(out: str) -> int:
    """Save what is on the display, without what is empty; 1 where all of it is."""
    application = QGuiApplication([])
    picture = application.primaryScreen().grabWindow(0).toImage()
    empty, width, height = picture.pixel(0, 0), picture.width(), picture.height()
    rows = [
        y
        for y in range(height)
        if any(picture.pixel(x, y) != empty for x in range(0, width, _EVERY))
    ]
    columns = [
        x
        for x in range(width)
        if any(picture.pixel(x, y) != empty for y in range(0, height, _EVERY))
    ]
    if not rows or not columns:
        return 1
    window = QRect(QPoint(columns[0], rows[0]), QPoint(columns[-1], rows[-1]))
    return 0 if picture.copy(window).save(out) else 1


@contextmanager
def _display() -> Iterator[str]:
    """Start a virtual display."""
    reader, writer = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writer), "-screen", "0", SCREEN, "-nolisten", "tcp"],
        pass_fds=(writer,),
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    try:
        with os.fdopen(reader) as number:
            yield f":{number.readline().strip()}"
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
