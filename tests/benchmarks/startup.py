"""Prints the times of the window's start as JSON: `python -m tests.benchmarks.startup`."""

import asyncio
import json
import sys

from app.__main__ import leave
from app.window.application import (
    Application,
    Options,
    run,
)
from medusa_core.loading.state import Phase
from tests.benchmarks.stalls import StallProbe, process_age_s


class Start:
    """State of the process once the window has been painted.

    Attributes:
        window_s: Age of the process then.
        had_torch: Whether torch had been imported by then.
    """

    def __init__(self) -> None:
        self.window_s = 0.0
        self.had_torch = False

    def note_window(self) -> None:
        """The window can be seen."""
        self.window_s = process_age_s()
        self.had_torch = "torch" in sys.modules


async def measure(application: Application) -> int:
    """Open the window, wait until the model is ready, and print what that took."""
    settled = asyncio.Event()
    probe, start = StallProbe(), Start()

    def look() -> None:
        if application.loaded_model.status.phase is not Phase.LOADING:
            settled.set()

    # Before the engine is started, which is the next to hear of it.
    application.first_paint.painted.connect(start.note_window)
    application.first_paint.painted.connect(probe.start)
    application.loaded_model.changed.connect(look)
    application.open()
    await settled.wait()
    ready_s = process_age_s()
    probe.stop()
    failed = application.loaded_model.status.failed
    figures = {
        "window_s": round(start.window_s, 3),
        "torch_at_window": start.had_torch,
        "ready_s": None if failed else round(ready_s, 3),
        "longest_stall_ms": round(probe.longest_stall_ms, 1),
        "error": failed.message if failed else None,
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    application.close()
    return 1 if failed else 0


if __name__ == "__main__":
    leave(run(Options(platform="offscreen", is_fresh=True), measure))
