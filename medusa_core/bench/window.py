"""What the window costs an answer: the same generation with the window streaming, and without.

The engine doesn't know the window, so the window measures itself, in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

from medusa_core.errors import EngineError

COMMAND = (sys.executable, "-m", "app", "--probe-streaming")
_SPEEDS = {"headless_tokens_per_s": "headless", "streaming_tokens_per_s": "window streaming"}
_RATIOS = {
    "ratio": "window streaming, over headless",
    "recording_ratio": "recording over not, both streaming",
    "recording_headless_ratio": "recording over not, both headless",
    "panels_ratio": "all panels open and live, over closed",
}


def measure_window(num_threads: int | None) -> dict[str, float]:
    """Let the window answer with the built-in model, in turns with an engine unseen.

    Args:
        num_threads: Threads that the engine may use; None for its own choice.

    Returns:
        Tokens per second, their ratios, and the longest stalls, by name.

    Raises:
        EngineError: There is no window on this machine, or it failed.
    """
    threads = {} if num_threads is None else {"OMP_NUM_THREADS": str(num_threads)}
    done = subprocess.run(
        COMMAND, env={**os.environ, **threads}, capture_output=True, text=True, check=False
    )
    told = done.stdout.strip().splitlines()
    try:
        found = json.loads(told[-1]) if done.returncode == 0 and told else None
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not {*_RATIOS, *_SPEEDS} <= found.keys():
        why = (done.stderr.strip().splitlines() or ["It said nothing."])[-1]
        raise EngineError(
            f"The window could not be measured: {why}",
            "Start it with `python -m app` to see what is wrong.",
        )
    return found


def window_table(found: Mapping[str, float]) -> str:
    """The figures for people."""
    speeds = [f"{title:40}{found[key]:8.0f} tokens/s" for key, title in _SPEEDS.items()]
    ratios = [f"{title:40}{found[key]:8.3f}" for key, title in _RATIOS.items()]
    return "\n".join([*speeds, *ratios])
