"""The environment of a checkout: `.venv`, made and updated by the code that packages use."""

import hashlib
import importlib.util
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from installer.__main__ import install_command
from installer.bootstrap.environment import (
    Recipe,
    install_packages,
    make_environment,
    read_record,
    read_stamp,
    write_stamp,
)
from installer.bootstrap.first_model import has_first_model, provide_first_model
from installer.bootstrap.folders import EnvironmentFolder
from installer.bootstrap.progress import Reporter
from installer.bootstrap.sources import find_sources
from installer.bootstrap.space import check_space, size_of_version
from installer.bootstrap.torch_source import chosen_torch
from installer.bootstrap.trouble import NO_PYTHON
from installer.bootstrap.uv import Uv
from installer.errors import SetupError
from installer.layout import Layout
from installer.lock import installation_lock
from installer.process import Commands, run_checked
from installer.system_packages import this_command
from installer.torch_choice import AUTO, TorchBuild
from installer.uv_program import VERSION, fetch_uv, has_pip

PROBE_TIMEOUT_S = 60.0
RECIPE_VERSION = "2"  # raised when the steps of the installation change


@dataclass(frozen=True, slots=True)
class Request:
    """What the environment must offer.

    Attributes:
        with_tests: The tools of `installer test`, too.
        torch: A build of torch, AUTO to look at the cards again, or None for the last choice.
        with_model: The model of the first start, too.
    """

    with_tests: bool = False
    torch: str | None = None
    with_model: bool = True


def ensure_ready(
    layout: Layout,
    make_commands: Callable[[Path, int], Commands],
    request: Request,
    reporter: Reporter,
) -> None:
    """Install what is missing; takes milliseconds if nothing is.

    Args:
        layout: Paths of the checkout.
        make_commands: Runs programs in a folder; long ones inherit the lock's descriptor.
        request: What the environment must offer.
        reporter: Told how it goes; asks.

    Raises:
        SetupError: Something on this machine prevents it.
        OSError: The disk is full or can't be written.
    """
    if _is_complete(layout, request):
        return
    with installation_lock(layout.lock) as lock:
        commands = make_commands(layout.root, lock.fileno())
        # Another process may have installed it in the meantime.
        if not is_ready(layout, request):
            _install(layout, commands, request, reporter)
        if request.with_model:
            provide_first_model(layout.models, layout.python, os.environ, commands, reporter)


def is_ready(layout: Layout, request: Request) -> bool:
    """Return whether the environment is complete, current, and what is requested."""
    stamp = read_stamp(layout.environment)
    if stamp is None or stamp.get("fingerprint") != fingerprint(layout):
        return False
    if request.torch is not None:
        is_same = request.torch == stamp["torch_requested"] != AUTO
        # Wheels for macOS and ARM, and those of PyPI, name no build.
        build = stamp["torch"].partition("+")[2]
        is_build = build in ("", request.torch) or request.torch == TorchBuild.PIP.value
        if not (is_same and is_build):
            return False
    return stamp["with_tests"] or not request.with_tests


def fingerprint(layout: Layout) -> str:
    """Return a hash of the requirements, their pins and the steps of the installation."""
    digest = hashlib.sha256(RECIPE_VERSION.encode())
    for path in (layout.pyproject, layout.constraints):
        content = path.read_bytes()
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()


def make_uv(layout: Layout, commands: Commands, reporter: Reporter, work: Path) -> Uv:
    """Return the pinned uv: the environment's, else one that pip downloads.

    Args:
        layout: Paths of the checkout.
        commands: Runs pip.
        reporter: Told how it goes.
        work: Folder for a uv that is downloaded.

    Raises:
        SetupError: It is unavailable.
    """
    program = layout.program("uv")
    if not (program.exists() and f"uv-{VERSION}.dist-info" in layout.environment.packages()):
        program = _download_uv(commands, reporter, work)
    return Uv(program, commands, find_sources(""), {}, reporter)


def _is_complete(layout: Layout, request: Request) -> bool:
    has_model = not request.with_model or has_first_model(layout.models)
    return is_ready(layout, request) and has_model


def _install(layout: Layout, commands: Commands, request: Request, reporter: Reporter) -> None:
    place = layout.environment
    earlier = read_record(place)
    if earlier is None:
        _check_is_ours(layout.venv)
    requested = request.torch or (earlier or {}).get("torch_requested", AUTO)
    with_tests = request.with_tests or bool(earlier and earlier.get("with_tests"))
    recipe = _recipe(layout, commands, requested, with_tests=with_tests)
    check_space(layout.root, size_of_version(recipe.choice.build), "Free some space.")
    with tempfile.TemporaryDirectory() as work:
        uv = make_uv(layout, commands, reporter, Path(work))
        try:
            if earlier is not None and _works(place, commands):
                _update(place, recipe, uv, commands, reporter)
            else:
                reporter.step("Making .venv")
                make_environment(place, recipe, uv, commands, reporter)
        except SetupError as error:
            if not error.message.startswith(NO_PYTHON):
                raise
            mend = f"Install: {install_command()}\nThen:    {this_command()}"
            raise SetupError(error.message, mend) from error
    reporter.step("The installation is complete")


def _recipe(layout: Layout, commands: Commands, requested: str, *, with_tests: bool) -> Recipe:
    extras = ["server", "tools", *(["test"] if with_tests else [])]
    extra_words = [word for extra in extras for word in ("--extra", extra)]
    record = {
        "fingerprint": fingerprint(layout),
        "with_tests": with_tests,
        "torch_requested": requested,
    }
    return Recipe(
        # pip is for what a developer adds; uv for the next installation.
        requirements=("pip", f"uv=={VERSION}", "-r", str(layout.pyproject), *extra_words),
        constraints=layout.constraints,
        choice=chosen_torch(requested, commands),
        imports="torch",
        mend="python3 installer run --torch cpu",
        record=record,
    )


def _update(
    place: EnvironmentFolder, recipe: Recipe, uv: Uv, commands: Commands, reporter: Reporter
) -> None:
    """Change an environment in place, so that packages that a developer added stay.

    Until it is complete there is no record: an environment that was cut short is made afresh.
    """
    times = _modification_times(place)
    # Renamed, not removed: restoring it must succeed on a full disk too.
    record = place.stamp.replace(place.stamp.with_suffix(".old"))
    try:
        torch = install_packages(place, recipe, uv, commands, reporter)
    except BaseException:
        if _modification_times(place) == times:  # nothing was changed, as without a network
            record.replace(place.stamp)
        raise
    write_stamp(place, {**recipe.record, "torch": torch})
    record.unlink()


def _modification_times(place: EnvironmentFolder) -> dict[str, int]:
    """Return the modification time of every folder of the packages.

    The list of packages isn't enough: an interrupted uninstall can leave the metadata of a package
    that has lost modules.
    """
    folders = [folder for folder, _, _ in os.walk(place.site_packages)]
    return {folder: Path(folder).stat().st_mtime_ns for folder in folders}


def _works(place: EnvironmentFolder, commands: Commands) -> bool:
    return commands.capture([str(place.python), "-c", ""], PROBE_TIMEOUT_S).status == 0


def _check_is_ours(venv: Path) -> None:
    """Refuse to replace a folder that isn't an environment."""
    if venv.is_dir() and any(venv.iterdir()) and not (venv / "pyvenv.cfg").exists():
        raise SetupError(f"{venv} is in the way: it is not a Python environment.", "Move it.")


def python_with_pip(commands: Commands, work: Path) -> str:
    """Return a Python that has pip: the running one, else one of a new environment.

    Args:
        commands: Makes the environment.
        work: Where it goes.

    Raises:
        SetupError: This Python can't make environments.
    """
    if has_pip():
        return sys.executable
    run_checked(commands, [sys.executable, "-m", "venv", str(work / "pip")])
    return str(EnvironmentFolder(work / "pip").python)


def _download_uv(commands: Commands, reporter: Reporter, work: Path) -> Path:
    reporter.step("Fetching uv, which installs the packages")
    if not has_pip() and importlib.util.find_spec("ensurepip") is None:
        found = shutil.which("uv")
        if found is None:
            raise SetupError("This Python has neither pip nor ensurepip.", "Install one of them.")
        return Path(found)
    system = {"win32": "windows", "darwin": "macos"}.get(sys.platform, "linux")
    machine = platform.machine().lower()
    processor = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return fetch_uv(f"{system}-{processor}", work, commands, python_with_pip(commands, work))
