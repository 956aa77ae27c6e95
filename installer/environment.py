"""Makes the environment `.venv`, and makes it afresh where it cannot be trusted."""

import importlib.util
import re
import shutil
import sys
from pathlib import Path

from installer.console import say
from installer.errors import SetupError
from installer.layout import Layout
from installer.process import Runner

PROBE_TIMEOUT_S = 60.0
CREATE_TIMEOUT_S = 900.0
HAS_PIP = "import sys, pip; assert (3, 11) <= sys.version_info < (3, 14), sys.version"


def prepare_environment(layout: Layout, runner: Runner) -> None:
    """Leave a working environment with pip behind: the present one or a new one.

    An environment in which an installation was cut short may hold half a package, which pip does
    not notice: it is made afresh.

    Raises:
        SetupError: it cannot be made, or something else stands in its place.
    """
    if layout.unfinished.exists():
        say("The last installation did not finish; making .venv afresh.")
        remove_environment(layout)
    elif layout.venv.exists() and not _works(layout, runner):
        say(".venv does not work any more; making it afresh.")
        remove_environment(layout)
    if not layout.venv.exists():
        _create(layout, runner)


def missing_packages(layout: Layout, names: list[str]) -> list[str]:
    """Those of `names` whose metadata is not in the environment; only lists directories."""
    present = set()
    for record in layout.site_packages.glob("*.dist-info"):
        present.add(_canonical(record.name.partition("-")[0]))
    return [name for name in names if _canonical(name) not in present]


def remove_environment(layout: Layout) -> None:
    """Delete `.venv`, if it is an environment.

    Raises:
        SetupError: it is something else, or is in use.
    """
    venv = layout.venv
    try:
        if venv.is_symlink() or venv.is_file():
            venv.unlink()
            return
        ours = (venv / "pyvenv.cfg").exists() or layout.unfinished.exists()
        if not ours and any(venv.iterdir()):
            raise SetupError(f"{venv} is in the way: it is not a Python environment.", "Move it.")
        shutil.rmtree(venv)
    except OSError as error:
        raise SetupError(
            f"{venv} could not be removed: {error}.",
            "Close Medusa Chat and other programs that use it, then run again.",
        ) from error


def _works(layout: Layout, runner: Runner) -> bool:
    """Whether the environment's Python starts, is of a suitable version and has pip."""
    if not layout.python.exists():
        return False
    return runner.capture([str(layout.python), "-c", HAS_PIP], PROBE_TIMEOUT_S).status == 0


def make_environment(folder: Path, runner: Runner) -> None:
    """Make an environment with pip in a folder, of the Python that runs this.

    Raises:
        SetupError: this Python lacks what is needed, or the folder can't be written.
    """
    if importlib.util.find_spec("ensurepip") is None:
        raise _missing_ensurepip()
    made = runner.capture([sys.executable, "-m", "venv", str(folder)], CREATE_TIMEOUT_S)
    if made.status != 0:
        if "ensurepip" in made.text:
            raise _missing_ensurepip()
        raise SetupError(f"{folder.name} could not be made:\n{made.text.strip()}")


def _create(layout: Layout, runner: Runner) -> None:
    if importlib.util.find_spec("ensurepip") is None:
        raise _missing_ensurepip()
    say(f"Making .venv with Python {sys.version_info.major}.{sys.version_info.minor}.")
    layout.venv.mkdir(parents=True)
    layout.unfinished.touch()
    make_environment(layout.venv, runner)


def _missing_ensurepip() -> SetupError:
    major, minor = sys.version_info[:2]
    return SetupError(
        "This Python has no ensurepip module; Debian and Ubuntu put it into a package of its own.",
        f"sudo apt install python{major}.{minor}-venv",
    )


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
