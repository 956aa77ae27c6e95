"""Which NVIDIA GPUs this machine has, as its driver reports them."""

import re
from dataclasses import dataclass

from installer.process import Commands

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
