"""Prints the times of the window's start as JSON: `python -m tests.tools.startup`."""

import asyncio
import json
import sys

from app.__main__ import leave
from app.application import Application, Options, run
from app.startup_probe import StallProbe, process_age_s
from medusa_core.model_state import Phase


async def measure(application: Application) -> int:
    """Open the window, wait until the model is ready, and print what that took."""
    settled = asyncio.Event()
    probe = StallProbe()

    def look() -> None:
        if application.keeper.status.phase is not Phase.LOADING:
            settled.set()

    application.first_paint.painted.connect(probe.start)
    application.keeper.changed.connect(look)
    application.open()
    await settled.wait()
    ready_s = process_age_s()
    probe.stop()
    failed = application.keeper.status.failed
    figures = {
        "window_s": round(application.first_paint.painted_s, 3),
        "torch_at_window": application.first_paint.had_torch,
        "ready_s": None if failed else round(ready_s, 3),
        "longest_stall_ms": round(probe.longest_stall_ms, 1),
        "error": failed.message if failed else None,
    }
    sys.stdout.write(json.dumps(figures) + "\n")
    application.close()
    return 1 if failed else 0


if __name__ == "__main__":
    leave(run(Options(platform="offscreen", is_fresh=True), measure))
