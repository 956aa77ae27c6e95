"""The programs that build packages: the checkout's own, else downloaded for one job."""

from pathlib import Path

from installer.bootstrap.folders import EnvironmentFolder
from installer.bootstrap.terminal import TerminalReporter
from installer.checkout import make_uv
from installer.console import say
from installer.package.format import Job


def tool(job: Job, program: str, distribution: str) -> Path:
    """Return a program of a Python package, in the pinned version.

    Args:
        job: Its checkout may have the program; its work folder gets it otherwise.
        program: Name of the program.
        distribution: Package that contains it.

    Raises:
        SetupError: The package index can't be reached, or no environment can be made.
    """
    own = job.layout.program(program)
    if own.exists():
        return own
    say(f"Fetching {distribution} for {program}.")
    place = EnvironmentFolder(job.work / "tools")
    uv = make_uv(job.layout, job.commands, TerminalReporter(), job.work)
    if not place.python.exists():
        uv.make_environment(place.root)
    constraint = ("--constraint", str(job.layout.constraints))
    uv.install(place.python, (*constraint, job.layout.pinned(distribution)))
    return place.program(program)
