"""Where torch comes from in the build that suits this machine: the largest part by far.

A build has an index of its own, which uv knows. Where that can't be reached, or a folder is the
mirror, the build is looked for among the other packages.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from installer.bootstrap.progress import Reporter
from installer.bootstrap.uv import Uv
from installer.errors import SetupError
from installer.process import Commands
from installer.torch_choice import AUTO, TorchBuild, TorchChoice, choose_torch, detect_gpus

PROBE_TIMEOUT_S = 12.0
OTHER_TIMEOUT_S = 120.0
_GB_MORE = 5


@dataclass(frozen=True, slots=True)
class TorchSource:
    """How the torch that was found is installed.

    Attributes:
        arguments: for uv: the requirement and options.
        version: with its build, as `2.13.0+cu130`.
        has_cuda: whether CUDA comes with it.
    """

    arguments: tuple[str, ...]
    version: str
    has_cuda: bool


def chosen_torch(requested: str, commands: Commands) -> TorchChoice:
    """Return the build that was requested, or the one that suits this machine's cards.

    Args:
        requested: A build, or AUTO.
        commands: Asks the driver for cards.

    Raises:
        SetupError: This system has no such build.
    """
    if requested == AUTO:
        return choose_torch(sys.platform, detect_gpus(commands))
    build = TorchBuild(requested)
    if sys.platform == "darwin" and build.is_cuda:
        raise SetupError("There is no CUDA on macOS.", "--torch auto")
    return TorchChoice(build, "it was chosen")


def find_torch(
    uv: Uv, python: Path, constraints: Path, choice: TorchChoice, reporter: Reporter
) -> TorchSource:
    """Look for the chosen build; ask before CUDA is installed without a usable card.

    Args:
        uv: asks the sources.
        python: of the environment that torch is for.
        constraints: names torch's version.
        choice: the build wanted.
        reporter: asks.

    Raises:
        SetupError: it is nowhere, or the user doesn't want what is there.
    """
    number = _pinned_torch(constraints)
    for place in _places(uv, number, choice.build):
        found = _probe(uv, python, constraints, place)
        if found is not None:
            _accept(found, choice, reporter)
            return found
    raise SetupError(
        f"torch {number} was not found ({uv.sources.described}).",
        "Check the connection, or name a mirror that holds it.",
    )


@dataclass(frozen=True, slots=True)
class _Place:
    """A place to look for torch.

    Attributes:
        arguments: of uv.
        timeout_s: how long an answer may take.
        retries: how often uv asks again.
    """

    arguments: tuple[str, ...]
    timeout_s: float = OTHER_TIMEOUT_S
    retries: int = 2


def _places(uv: Uv, number: str, build: TorchBuild) -> Iterator[_Place]:
    if build is not TorchBuild.PIP:
        if not uv.sources.is_folder:
            backend = f"--torch-backend={build.value}"
            yield _Place((backend, f"torch=={number}"), PROBE_TIMEOUT_S, retries=0)
        yield _Place((f"torch=={number}+{build.value}",))
    yield _Place((f"torch=={number}",))


def _probe(uv: Uv, python: Path, constraints: Path, place: _Place) -> TorchSource | None:
    # Without the first two, uv keeps a torch of the right version in another build.
    fixed = ("--reinstall-package", "torch", "--constraint", str(constraints))
    arguments = (*place.arguments, *fixed)
    packages = uv.would_install(python, arguments, place.timeout_s, place.retries)
    if packages is None:
        return None
    version = next((version for name, version in packages if name == "torch"), None)
    if version is None:
        return None
    tag = version.partition("+")[2]
    has_cuda = tag.startswith("cu") or any(name.startswith("nvidia-") for name, _ in packages)
    return TorchSource(arguments, version, has_cuda)


def _accept(found: TorchSource, choice: TorchChoice, reporter: Reporter) -> None:
    """Ask if what was found is much larger than requested; say if it can do less.

    Raises:
        SetupError: the user doesn't want it.
    """
    wanted = choice.build
    if found.has_cuda and not wanted.is_cuda and sys.platform != "darwin":
        question = (
            f"Only a build of torch for NVIDIA cards was found ({found.version}). It runs here "
            f"too, but takes about {_GB_MORE} GB more. Install it?"
        )
        if not reporter.confirm(question):
            raise SetupError(
                f"The build of torch for the processor was not found, and the one for NVIDIA "
                f"cards takes {_GB_MORE} GB more.",
                "Name a mirror that holds torch for the processor (+cpu in its file's name).",
            )
    elif wanted.is_cuda and not found.has_cuda:
        reporter.step(
            f"Only torch {found.version} was found: the processor will do the work, not the card."
        )


def _pinned_torch(constraints: Path) -> str:
    """Return torch's version in constraints.txt.

    Raises:
        SetupError: the file can't be read, or doesn't name it.
    """
    try:
        text = constraints.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(
            f"{constraints} can't be read: {error}.", "Install the package of Medusa Chat again."
        ) from error
    found = re.search(r"^torch==([^\s;+]+)", text, re.MULTILINE)
    if found is None:
        raise SetupError(
            f"{constraints} names no version of torch.",
            "Install the package of Medusa Chat again.",
        )
    return found[1]
