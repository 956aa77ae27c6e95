"""Which build of torch suits this machine: a pure function of its system and its GPUs."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass

from installer.process import Commands

AUTO = "auto"  # instead of a build: the one that suits the cards
OLDEST_USABLE = (6, 0)  # older GPUs are in no build of today
OLDEST_FOR_CU130 = (7, 5)
NEWEST_FOR_CU126 = (9, 0)  # its builds end before Blackwell
DRIVER_FOR_CU126 = 525
DRIVER_FOR_CU130 = 580


class TorchBuild(str, enum.Enum):  # Python 3.10 has no StrEnum
    """A build of torch; the value is what `--torch` and uv's `--torch-backend` take.

    PIP is whatever pip's own configuration gives for the pinned version.
    """

    CPU = "cpu"
    CU126 = "cu126"
    CU130 = "cu130"
    PIP = "pip"

    @property
    def is_cuda(self) -> bool:
        """Whether the build contains CUDA libraries."""
        return self in (TorchBuild.CU126, TorchBuild.CU130)


@dataclass(frozen=True, slots=True)
class TorchChoice:
    """A build and why.

    Attributes:
        build: the build to install.
        reason: a sentence without its final stop.
    """

    build: TorchBuild
    reason: str


def choose_torch(system: str, report: GpuReport) -> TorchChoice:
    """Choose the build of torch for a machine.

    Args:
        system: `sys.platform`.
        report: what its NVIDIA driver said.
    """
    if system == "darwin":
        return TorchChoice(TorchBuild.PIP, "macOS has a single build, with Metal")
    if not report.gpus:
        return TorchChoice(TorchBuild.CPU, report.trouble or "no NVIDIA GPU found")
    usable = [gpu for gpu in report.gpus if gpu.capability >= OLDEST_USABLE]
    if not usable:
        return TorchChoice(TorchBuild.CPU, f"{report.gpus[0]} is older than every CUDA build")
    return _choose_cuda(usable)


def _choose_cuda(usable: list[Gpu]) -> TorchChoice:
    """Choose one build for all usable GPUs; if none covers all, the one for the newest."""
    lowest = min(usable, key=lambda gpu: gpu.capability)
    highest = max(usable, key=lambda gpu: gpu.capability)
    driver = min(gpu.driver for gpu in usable)
    if driver < DRIVER_FOR_CU126:
        return TorchChoice(
            TorchBuild.CPU,
            f"{highest} has driver {driver}; CUDA builds need {DRIVER_FOR_CU126} or newer. "
            "Update the driver, then run again with --torch auto",
        )
    if highest.capability > NEWEST_FOR_CU126:
        advice = ""
        if driver < DRIVER_FOR_CU130:
            advice = f"; its driver {driver} must be updated to {DRIVER_FOR_CU130} or newer"
        if lowest.capability < OLDEST_FOR_CU130:
            advice += f"; {lowest} stays unused, since no build covers both"
        return TorchChoice(TorchBuild.CU130, f"{highest} needs it{advice}")
    if lowest.capability < OLDEST_FOR_CU130:
        return TorchChoice(TorchBuild.CU126, f"{lowest} runs only on builds for CUDA 12.6")
    if driver < DRIVER_FOR_CU130:
        return TorchChoice(
            TorchBuild.CU126,
            f"{lowest} has driver {driver}; CUDA 13 needs {DRIVER_FOR_CU130} or newer",
        )
    return TorchChoice(TorchBuild.CU130, f"{lowest} takes the current CUDA build")


QUERY = (
    "nvidia-smi",
    "--query-gpu=compute_cap,driver_version,name",
    "--format=csv,noheader",
)
QUERY_TIMEOUT_S = 15.0
ROW = re.compile(r"^\s*(\d+)\.(\d+)\s*,\s*(\d+)[.\d]*\s*,\s*(.+?)\s*$")


@dataclass(frozen=True, slots=True)
class Gpu:
    """One NVIDIA GPU.

    Attributes:
        name: as sold.
        capability: compute capability, (major, minor).
        driver: major version of its driver.
    """

    name: str
    capability: tuple[int, int]
    driver: int

    def __str__(self) -> str:
        major, minor = self.capability
        return f"{self.name} (compute capability {major}.{minor})"


@dataclass(frozen=True, slots=True)
class GpuReport:
    """Result of the driver's query.

    Attributes:
        gpus: every GPU that could be read.
        trouble: why nothing could be read although there is a driver; empty otherwise.
    """

    gpus: tuple[Gpu, ...]
    trouble: str = ""


def detect_gpus(commands: Commands) -> GpuReport:
    """Query the NVIDIA driver, if there is one, for its GPUs."""
    answer = commands.capture(QUERY, QUERY_TIMEOUT_S)
    if answer.status is None:
        return GpuReport(gpus=())
    gpus = parse_gpus(answer.text)
    if gpus:
        return GpuReport(gpus)
    first_line = (answer.text.strip().splitlines() or ["no output"])[0]
    return GpuReport(gpus=(), trouble=f"nvidia-smi names no usable GPU: {first_line}")


def parse_gpus(text: str) -> tuple[Gpu, ...]:
    """Parse the rows `compute_cap, driver_version, name`; other lines are skipped."""
    rows = (ROW.match(line) for line in text.splitlines())
    return tuple(
        Gpu(name=row[4], capability=(int(row[1]), int(row[2])), driver=int(row[3]))
        for row in rows
        if row
    )
