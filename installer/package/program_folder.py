"""PROGRAM: the folder that every system package carries."""

import shutil
from dataclasses import replace
from pathlib import Path

from installer.bootstrap.carried import carried_files
from installer.checkout import python_with_pip
from installer.package.format import Job
from installer.package.wheel import build_wheel
from installer.uv_program import fetch_uv

ICON = Path("installer") / "share" / "icon.png"


def fill_program(job: Job, folder: Path, system: str) -> None:
    """Put the wheel, uv and what sets the program up into a folder.

    Args:
        job: what is built.
        folder: PROGRAM, which is made.
        system: one of `uv_program.BUILDS`.

    Raises:
        SetupError: the wheel can't be built, or uv can't be had.
    """
    folder.mkdir(parents=True)
    for place, source in carried_files(job.layout.root).items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
    shutil.copyfile(job.layout.root / ICON, folder / "icon.png")
    build_wheel(replace(job, out=folder))
    fetch_uv(system, folder, job.commands, python_with_pip(job.commands, job.work))
