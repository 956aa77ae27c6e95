"""From what a user asks for to what is installed: which wheel, which torch, from where."""

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.records import Settings, read_settings, write_settings
from installer.bootstrap.sources import find_sources, shown_address
from installer.bootstrap.space import free_bytes, needed_size, shown_bytes
from installer.bootstrap.torch_source import chosen_torch
from installer.bootstrap.version import newest_wheel, wheel_version
from installer.errors import SetupError
from installer.process import Commands, SystemCommands
from installer.torch_choice import TorchBuild


def shipped(data: ProgramData, program: Program, *, with_model: bool = False) -> Wanted:
    """Return the version of the package.

    Raises:
        SetupError: the package is damaged.
    """
    return of_wheel(data, program, program.wheel(), with_model=with_model)


def installed(data: ProgramData, program: Program, version: str) -> Wanted:
    """Return an installed version from its saved wheel, else the package's.

    Raises:
        SetupError: the package is damaged.
    """
    try:
        wheel = newest_wheel(data.wheels / version)
    except OSError:
        wheel = None
    if wheel is None:
        return shipped(data, program)
    return of_wheel(data, program, wheel)


def of_wheel(
    data: ProgramData,
    program: Program,
    wheel: Path,
    *,
    with_model: bool = False,
    packages: Path | None = None,
) -> Wanted:
    """Return the installation of a wheel.

    Raises:
        SetupError: it isn't one of Medusa Chat.
    """
    version = wheel_version(wheel)
    if version is None:
        raise SetupError(
            f"{wheel.name} is no wheel of Medusa Chat.", "Its name is medusa_chat-VERSION-….whl."
        )
    settings = read_settings(data)
    return Wanted(
        version=version,
        wheel=wheel,
        uv=program.uv(),
        choice=chosen_torch(settings.torch, _commands()),
        settings=settings,
        with_model=with_model,
        packages=packages,
    )


def with_settings(wanted: Wanted, settings: Settings) -> Wanted:
    """Return the same with other settings.

    Raises:
        SetupError: the mirror is none, or the system has no such build of torch.
    """
    find_sources(settings.mirror)
    return replace(wanted, settings=settings, choice=chosen_torch(settings.torch, _commands()))


def choose_settings(data: ProgramData, mirror: str | None, torch: str | None) -> None:
    """Save settings for this and later installations; None keeps a setting.

    Raises:
        SetupError: the mirror is none, or settings can't be written.
    """
    if mirror is None and torch is None:
        return
    settings = read_settings(data)
    if mirror is not None:
        find_sources(mirror)
        settings = replace(settings, mirror=mirror)
    if torch is not None:
        settings = replace(settings, torch=torch)
    try:
        write_settings(data, settings)
    except OSError as error:
        raise SetupError(
            f"{data.settings}: {error.strerror}.", "Set MEDUSA_HOME to a folder that you may write."
        ) from error


def _commands() -> Commands:
    return SystemCommands(Path.cwd())


_RUNS_ON = {
    TorchBuild.CPU: "the processor",
    TorchBuild.CU126: "the NVIDIA card, by CUDA 12.6",
    TorchBuild.CU130: "the NVIDIA card, by CUDA 13.0",
    TorchBuild.PIP: "what this system's usual build of torch supports",
}


class Facts(NamedTuple):
    """Description of an installation, one line each.

    Attributes:
        where: the folder.
        download: how much, and from where.
        disk: how much, and how much is free.
        runs_on: the build of torch, and why.
    """

    where: str
    download: str
    disk: str
    runs_on: str


NAMES = Facts("Where", "Download", "Disk", "Runs on")


def describe(data: ProgramData, wanted: Wanted) -> Facts:
    """Describe an installation before it begins."""
    needed, choice = needed_size(data.cache, wanted.size()), wanted.choice
    return Facts(
        where=shown_path(data.root),
        download=f"about {shown_bytes(needed.download)}, from {_described_sources(wanted)}",
        disk=f"about {shown_bytes(needed.installed)} more; "
        f"{shown_bytes(free_bytes(data.root))} are free",
        runs_on=f"{_RUNS_ON[choice.build]} ({choice.reason})",
    )


def shown_path(path: Path) -> str:
    """Return a path with a tilde for the home folder."""
    home = Path.home()
    return str(Path("~") / path.relative_to(home)) if path.is_relative_to(home) else str(path)


def _described_sources(wanted: Wanted) -> str:
    try:
        return find_sources(wanted.settings.mirror).described
    except SetupError:  # the mirror was a disk that isn't plugged in now, for example
        return f"{shown_address(wanted.settings.mirror)} (not there now)"
