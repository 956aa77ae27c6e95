"""What will be installed, in words: where, how large, from where, for which processor."""

from pathlib import Path
from typing import NamedTuple

from installer.bootstrap.folders import ProgramData
from installer.bootstrap.installation import Wanted
from installer.bootstrap.sources import find_sources, shown_address
from installer.bootstrap.space import free_bytes, needed_size, shown_bytes
from installer.errors import SetupError
from installer.torch_choice import TorchBuild

_RUNS_ON = {
    TorchBuild.CPU: "the processor",
    TorchBuild.CU126: "the NVIDIA card, by CUDA 12.6",
    TorchBuild.CU130: "the NVIDIA card, by CUDA 13.0",
    TorchBuild.PIP: "what this system's usual build of torch supports",
}


class Facts(NamedTuple):
    """One line each.

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
    """A path as people write it: below their home with a tilde."""
    home = Path.home()
    return str(Path("~") / path.relative_to(home)) if path.is_relative_to(home) else str(path)


def _described_sources(wanted: Wanted) -> str:
    try:
        return find_sources(wanted.settings.mirror).described
    except SetupError:  # the mirror was a disk that isn't plugged in now, for example
        return f"{shown_address(wanted.settings.mirror)} (not there now)"
