"""Opens the window: `medusa-chat`, or `python -m app`."""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NoReturn

from app.startup.streams import provide_streams, report_start_failure
from app.startup.surroundings import (
    qt_problem,
    screen_problem,
)

EXIT_UNUSABLE = 2


def parser() -> argparse.ArgumentParser:
    """The options of `medusa-chat`."""
    options = argparse.ArgumentParser(
        prog="medusa-chat", description="Medusa Chat: talk with a model that is made fast."
    )
    options.add_argument("--theme", choices=("system", "light", "dark", "contrast"), help="colours")
    options.add_argument("--platform", help="Qt's platform plugin, e.g. offscreen")
    options.add_argument(
        "--data-dir",
        type=Path,
        metavar="FOLDER",
        help="keep settings, conversations and logs in a folder (MEDUSA_HOME: everything)",
    )
    options.add_argument(
        "--continue", action="store_true", dest="continues", help="open the last conversation"
    )
    options.add_argument(
        "model", nargs="?", metavar="MODEL", help="a GGUF file or a model's folder, to be loaded"
    )
    options.add_argument("--verbose", action="store_true", help="log what is said, too")
    return options


def main() -> int:
    """Open the window, or say why that is impossible.

    Returns:
        The exit code: 0 when the user closed the window, 2 without a display, Qt's libraries or the
        model that was named, or where the folder of a portable program can't be written.
    """
    arguments = parser().parse_args()
    model = None if arguments.model is None else Path(arguments.model).expanduser().absolute()
    problem = screen_problem(arguments.platform)
    if problem is None and model is not None and not model.exists():
        problem = f"There is no model {model}. Name a GGUF file, or the folder of a model."
    if problem is None:
        try:
            from app.startup.portable import home_problem, show_problem
            from app.window.application import (
                EXIT_RESTART,
                Options,
                run,
            )
        except ImportError as error:
            problem = qt_problem(error)
    if problem is not None:
        report_start_failure(problem)
        return EXIT_UNUSABLE
    if (problem := home_problem()) is not None:
        print(problem, file=sys.stderr)
        show_problem(problem, arguments.platform)
        return EXIT_UNUSABLE
    code = run(
        Options(
            theme=arguments.theme,
            platform=arguments.platform,
            is_verbose=arguments.verbose,
            data_dir=arguments.data_dir,
            continues=arguments.continues,
            model=model,
        )
    )
    if code == EXIT_RESTART:
        start_again(arguments.model)
    return code


def start_again(model: str | None) -> NoReturn:
    """Replace this process by a new one of the application; this frees a device that failed.

    Args:
        model: Model given at the first start; another one may be loaded by now.
    """
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    given = [one for one in sys.argv[1:] if one not in ("--continue", model)]
    from medusa_core.api import import_places  # loaded already

    places = import_places()  # whatever folder it was started from
    code = (
        f"import sys; sys.path[:] = {places!r}; from app.__main__ import open_window; open_window()"
    )
    command = [sys.executable, "-c", code, "--continue", *given]
    if sys.platform == "win32":  # there a process can't become another one
        subprocess.Popen(command)
        os._exit(0)
    os.execv(sys.executable, command)


def leave(code: int) -> NoReturn:
    """End the process.

    Python's normal shutdown aborts if the engine's thread is still inside a C library.
    """
    if threading.active_count() > 1:
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def open_window() -> NoReturn:
    """Open the window, and end the process with it."""
    provide_streams()
    leave(main())


if __name__ == "__main__":
    open_window()
