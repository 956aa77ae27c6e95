"""The wheel: the program for pip and uv, and what all other packages carry."""

from pathlib import Path

from installer.console import say
from installer.errors import SetupError
from installer.package.format import Format, Job
from installer.package.tools import tool
from installer.process import run_checked
from installer.translations import compile_translations, outdated_translations


def build_wheel(job: Job) -> Path:
    """Build `medusa_chat-VERSION-py3-none-any.whl`.

    From the same files the same bytes; `SOURCE_DATE_EPOCH` is the time of all that is in it.

    Raises:
        SetupError: a tool is missing and can't be fetched, or fails.
    """
    return build_archive(job, "wheel")


def build_archive(job: Job, target: str) -> Path:
    """Let the build backend make one of its targets: `wheel` or `sdist`.

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


SPEC = Format("wheel", "for pip and uv, on every system", build_wheel)
