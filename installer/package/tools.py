"""The programs that build packages: the checkout's own, else fetched for one job."""

from pathlib import Path

from installer.console import say
from installer.environment import make_environment
from installer.layout import Layout
from installer.package.format import Job
from installer.torch_install import pinned


def tool(job: Job, program: str, distribution: str) -> Path:
    """A program of a Python package, in the pinned version.

    Args:
        job: its checkout may have the program; its work folder gets it otherwise.
        program: its name.
        distribution: the package that it comes with.

    Raises:
        SetupError: the package index can't be reached, or no environment can be made.
    """
    own = job.layout.program(program)
    if own.exists():
        return own
    say(f"Fetching {distribution} for {program}.")
    python = _fetched_python(job)
    pip = [str(python), "-m", "pip", "--disable-pip-version-check", "install"]
    constraint = ["--constraint", str(job.layout.constraints)]
    job.runner.stream([*pip, *constraint, pinned(job.layout, distribution)])
    return _fetched(job).program(program)


def python_with_pip(job: Job) -> Path:
    """A Python that has pip: the checkout's own, else one that is made for this job.

    Raises:
        SetupError: no environment can be made.
    """
    own = job.layout.python
    return own if own.exists() else _fetched_python(job)


def _fetched(job: Job) -> Layout:
    return Layout(job.work / "tools")


def _fetched_python(job: Job) -> Path:
    tools = _fetched(job)
    if not tools.python.exists():
        make_environment(tools.venv, job.runner)
    return tools.python
