"""Opens the window: `python -m app`."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import threading
from pathlib import Path

from app.surroundings import qt_problem, screen_problem

EXIT_UNUSABLE = 2


def parser() -> argparse.ArgumentParser:
    """The options of `python -m app`."""
    options = argparse.ArgumentParser(
        prog="python -m app", description="Medusa Chat: talk with a model that is made fast."
    )
    options.add_argument(
        "--theme", choices=("system", "light", "dark", "both"), help="colours (both: for --tour)"
    )
    options.add_argument("--platform", help="Qt's platform plugin, e.g. offscreen")
    options.add_argument(
        "--tour",
        type=Path,
        metavar="DIR",
        help="open each screen with a real conversation, save pictures and index.json, and end",
    )
    options.add_argument(
        "--probe-startup",
        action="store_true",
        help="print the times of the start as JSON and end once the model is ready",
    )
    options.add_argument(
        "--probe-streaming",
        action="store_true",
        help="print tokens per second with the window streaming and without as JSON, and end",
    )
    options.add_argument("--verbose", action="store_true", help="log what is said, too")
    return options


def main() -> int:
    """Open the window, or say why that is impossible.

    Returns:
        The exit code: 0 when the user closed the window, 2 without a display or Qt's libraries.
    """
    arguments = parser().parse_args()
    problem = screen_problem(arguments.platform)
    measures = arguments.probe_startup or arguments.probe_streaming
    if problem is not None and (arguments.tour or measures):
        # Nobody watches: these work without a screen.
        arguments.platform, problem = "offscreen", None
    if problem is None:
        try:
            from app.application import Options, run
        except ImportError as error:
            problem = qt_problem(error)
    if problem is not None:
        print(problem, file=sys.stderr)
        return EXIT_UNUSABLE
    return run(
        Options(
            theme=arguments.theme,
            platform=arguments.platform,
            tour_dir=arguments.tour,
            probes_startup=arguments.probe_startup,
            probes_streaming=arguments.probe_streaming,
            is_verbose=arguments.verbose,
        )
    )


def leave(code: int) -> None:
    """End the process.

    An engine that did not end in time is deep in a foreign library, which would abort the process
    while Python takes itself down.
    """
    if threading.active_count() > 1:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


if __name__ == "__main__":
    leave(main())
