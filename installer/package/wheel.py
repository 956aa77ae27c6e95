"""The wheel: the program for pip and uv, and what all other packages carry."""

import shutil
from dataclasses import replace
from pathlib import Path

from installer.checkout import python_with_pip
from installer.console import say
from installer.errors import SetupError
from installer.package.format import Format, Job
from installer.package.tools import tool
from installer.process import run_checked
from installer.translations import compile_translations, outdated_translations
from installer.uv_program import fetch_uv

ICON = Path("installer") / "share" / "icon.png"


def build_wheel(job: Job) -> Path:
    """Build `medusa_chat-VERSION-py3-none-any.whl`.

    From the same files the same bytes; `SOURCE_DATE_EPOCH` is the time of all that is in it.

    Raises:
        SetupError: a tool is missing and can't be fetched, or fails.
    """
    return build_archive(job, "wheel")


def build_archive(job: Job, target: str) -> Path:
    """Build one of the build backend's targets: `wheel` or `sdist`.

    Raises:
        SetupError: a tool is missing and can't be fetched, or fails.
    """
    if outdated_translations(job.layout):
        lrelease = tool(job, "pyside6-lrelease", "pyside6-essentials")
        compile_translations(job.layout, job.commands, lrelease)
        if missing := outdated_translations(job.layout):
            raise SetupError(f"{missing[0].name} isn't compiled, so the package lacks a language.")
    made = job.work / target
    hatchling = str(tool(job, "hatchling", "hatchling"))
    run_checked(job.commands, [hatchling, "build", "--target", target, "--directory", str(made)])
    (built,) = made.iterdir()
    moved = job.out / built.name
    moved.write_bytes(built.read_bytes())  # `out` may be another file system
    say(f"{moved} ({moved.stat().st_size / 1e6:.1f} MB)")
    return moved


def fill_program(job: Job, folder: Path, system: str) -> None:
    """Write the wheel, uv and the bootstrap into a folder.

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


# Modules of the installer that the bootstrap imports; they need the standard library only.
_SHARED = (
    "__init__.py",
    "console.py",
    "errors.py",
    "lock.py",
    "process.py",
    "torch_choice.py",
)


def carried_files(root: Path) -> dict[str, Path]:
    """Return the files of PROGRAM, without the wheel and uv.

    Args:
        root: the checkout.

    Returns:
        Path of each file below PROGRAM, with slashes, and the file that it is a copy of.
    """
    installer = root / "installer"
    bootstrap = installer / "bootstrap"
    carried = {"launch.py": bootstrap / "launch.py"}
    carried |= {f"installer/{name}": installer / name for name in _SHARED}
    for path in sorted(bootstrap.glob("*.py")):
        if path.name != "launch.py":
            carried[f"installer/bootstrap/{path.name}"] = path
    return carried


def build_sdist(job: Job) -> Path:
    """Build `medusa_chat-VERSION.tar.gz`.

    Raises:
        SetupError: a tool is missing and can't be fetched, or fails.
    """
    return build_archive(job, "sdist")


SPEC = Format("wheel", "for pip and uv, on every system", build_wheel)
SDIST = Format("sdist", "what the wheel is built of", build_sdist)
