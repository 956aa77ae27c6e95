"""The model of the first start: the installed program downloads it (`medusa pull`)."""

import os
from collections.abc import Mapping
from pathlib import Path

from installer.bootstrap.progress import Reporter, report_growth
from installer.process import Commands

NAME = "SmolLM2 135M Instruct"
FOLDER = "smollm2-135m-instruct"
FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_BYTES = 98_362_432
PULL = ("-m", "medusa_core", "pull", FOLDER)  # arguments of the environment's Python
_INTERRUPTED = 130


def models_folder(own: Path) -> Path:
    """Return the folder of models: the user's, else the one of the installation."""
    return Path(os.environ.get("MEDUSA_MODELS") or own)


def has_first_model(own: Path) -> bool:
    """Return whether the file exists in its size; `medusa pull` compares its bytes."""
    try:
        return (models_folder(own) / FOLDER / FILE).stat().st_size == FILE_BYTES
    except OSError:
        return False


def provide_first_model(
    models: Path, python: Path, env: Mapping[str, str], commands: Commands, reporter: Reporter
) -> None:
    """Download the model unless it exists; if it is unavailable, say so and go on without it.

    Args:
        models: Folder of models of this installation.
        python: Python of the environment that holds the program.
        env: Environment variables of the program.
        commands: Runs the program.
        reporter: Told how it goes.

    Raises:
        CancelledError: The user ended it.
        KeyboardInterrupt: The user interrupted the program.
        SetupError: The program can't be started.
    """
    if has_first_model(models):
        return
    reporter.step(f"Fetching {NAME} (licence Apache-2.0, 93 MB)")
    folder = models_folder(models)
    command = [str(python), "-X", "utf8", *PULL]
    with report_growth(folder / FOLDER, FILE_BYTES, reporter.amount):
        pulled = commands.follow(
            command, {**env, "MEDUSA_MODELS": str(folder)}, reporter.line, reporter.is_cancelled
        )
    if pulled.status == _INTERRUPTED:
        raise KeyboardInterrupt
    if pulled.status != 0:
        why = pulled.text.rpartition("error: ")[2].strip()
        reporter.step(f"{why}\nThe program starts without it; later: medusa pull {FOLDER}")
