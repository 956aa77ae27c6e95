"""The model of the first start, for who wants it: the installed program fetches it."""

from pathlib import Path

from installer.bootstrap.commands import Commands
from installer.bootstrap.progress import Reporter, growth_told
from installer.bootstrap.space import FIRST_MODEL
from installer.bootstrap.uv import Uv
from installer.model_file import FOLDER, NAME, PULL, has_first_model, models_folder


def provide_first_model(
    models: Path, python: Path, uv: Uv, commands: Commands, reporter: Reporter
) -> None:
    """Fetch it where it isn't; where it can't be had, say so and go on without it.

    Args:
        models: the folder of models.
        python: of the environment that holds the program.
        uv: what the program fetches it by.
        commands: runs the program.
        reporter: hears how it goes.

    Raises:
        CancelledError: the user ended it.
        SetupError: the program can't be started.
    """
    if has_first_model(models):
        return
    reporter.step(f"Fetching {NAME}")
    folder = models_folder(models)
    env = {**uv.variables(), "MEDUSA_MODELS": str(folder)}
    command = [str(python), "-I", "-X", "utf8", *PULL]
    with growth_told(folder / FOLDER, FIRST_MODEL.installed, reporter.amount):
        pulled = commands.follow(command, env, reporter.line, reporter.is_cancelled)
    if pulled.status != 0:
        why = pulled.text.rpartition("error: ")[2].strip()
        reporter.step(f"{why}\nThe program starts without it; later: medusa pull {FOLDER}")
