"""Make an environment with the program in it; packages and checkouts share this."""

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from installer.bootstrap.files import changed_packages, remove_folder, write_whole
from installer.bootstrap.folders import EnvironmentFolder
from installer.bootstrap.progress import Reporter
from installer.bootstrap.torch_source import TorchSource, find_torch
from installer.bootstrap.uv import Uv
from installer.errors import SetupError
from installer.process import Commands
from installer.torch_choice import TorchChoice

CHECK_TIMEOUT_S = 300.0
_IN_USE = "Close Medusa Chat and other programs that use it, then try again."


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an environment is made of.

    Attributes:
        requirements: uv's arguments for everything but torch.
        constraints: File with the version of each package.
        choice: Build of torch, and why.
        imports: Modules that must load in the finished environment.
        mend: What to do if they don't.
        record: What is written down of it, in addition to torch's version and all packages.
    """

    requirements: tuple[str, ...]
    constraints: Path
    choice: TorchChoice
    imports: str
    mend: str
    record: Mapping[str, object]


def make_environment(
    place: EnvironmentFolder,
    recipe: Recipe,
    uv: Uv,
    commands: Commands,
    reporter: Reporter,
    *,
    thorough: bool = False,
) -> None:
    """Make an environment in a folder beside its place, check it, and move it there.

    What was in its place stays until then. Downloads in uv's cache are used again.

    Args:
        place: Where it goes.
        recipe: What it is made of.
        uv: Does the work.
        commands: Runs the check.
        reporter: Told how it goes; asks.
        thorough: Compare every file with the record of its package, and fetch damaged ones again.

    Raises:
        SetupError: That is impossible.
        CancelledError: The user ended it.
        OSError: Its folder can't be written.
    """
    new = place.new
    remove_folder(new.root)
    new.root.mkdir(parents=True)
    uv.make_environment(new.root)
    torch = install_packages(new, recipe, uv, commands, reporter, thorough=thorough)
    if os.name != "nt":
        reporter.step("Waiting for the disk")
        os.sync()  # after a power cut the record must not be all that is there
    write_stamp(new, {**recipe.record, "torch": torch})
    discard_environment(place)
    new.root.rename(place.root)


def install_packages(
    place: EnvironmentFolder,
    recipe: Recipe,
    uv: Uv,
    commands: Commands,
    reporter: Reporter,
    *,
    thorough: bool = False,
) -> str:
    """Install torch and everything else into an environment, and check that it loads.

    Args:
        place: An environment, which may have packages.
        recipe: What belongs into it.
        uv: Does the work.
        commands: Runs the check.
        reporter: Told how it goes; asks.
        thorough: As for `make_environment`.

    Returns:
        Version of torch, with its build.

    Raises:
        SetupError: That is impossible.
        CancelledError: The user ended it.
    """
    reporter.step(f"Looking for torch, build {recipe.choice.build.value}: {recipe.choice.reason}")
    torch = find_torch(uv, place.python, recipe.constraints, recipe.choice, reporter)
    if f"torch-{torch.version}.dist-info" not in place.packages():
        reporter.step(f"Fetching torch {torch.version}")
        uv.install(place.python, torch.arguments)
    reporter.step("Fetching the other packages")
    others = ("--constraint", str(recipe.constraints), *recipe.requirements)
    # Compiled now, since the first start would wait for it.
    uv.install(place.python, ("--compile-bytecode", *others))
    if thorough:
        _replace_changed(place, others, torch, uv, reporter)
    reporter.step("Checking that it starts")
    command = [str(place.python), "-I", "-c", f"import {recipe.imports}"]
    loaded = commands.capture(command, CHECK_TIMEOUT_S)
    if loaded.status != 0:
        raise SetupError(
            f"The program is installed but does not start:\n{loaded.text.strip()[-600:]}",
            recipe.mend,
        )
    return torch.version


def discard_environment(place: EnvironmentFolder) -> None:
    """Remove an environment atomically: after an interruption nothing of it is in its place.

    Raises:
        SetupError: a file of it is in use.
    """
    try:
        remove_folder(place.old.root)
        with suppress(FileNotFoundError):
            place.root.rename(place.old.root)
    except OSError as error:
        raise SetupError(f"{place.root} could not be removed: {error}.", _IN_USE) from error
    with suppress(OSError):  # the rest goes the next time
        remove_folder(place.old.root)


def take_whole_one(place: EnvironmentFolder) -> bool:
    """Move an environment into its place if it was complete at an interruption."""
    if place.root.exists() or not place.new.is_complete:
        return False
    place.new.root.rename(place.root)
    return True


def write_stamp(place: EnvironmentFolder, record: Mapping[str, object]) -> None:
    """Write the record of an environment; without it the environment isn't complete.

    Raises:
        OSError: It can't be written.
    """
    whole = {**record, "packages": sorted(place.packages())}
    write_whole(place.stamp, json.dumps(whole, indent=1) + "\n")


def read_stamp(place: EnvironmentFolder) -> dict[str, Any] | None:
    """Return the record of an environment; None unless its Python and all packages are there."""
    record = read_record(place)
    if record is None or not place.is_complete:
        return None
    return record if set(record["packages"]) <= place.packages() else None


def read_record(place: EnvironmentFolder) -> dict[str, Any] | None:
    """Return the record of an environment, whatever is missing now; None if it is unreadable."""
    try:
        record: dict[str, Any] = json.loads(place.stamp.read_text(encoding="utf-8"))
        set(record["packages"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return record


def _replace_changed(
    place: EnvironmentFolder,
    requirements: tuple[str, ...],
    torch: TorchSource,
    uv: Uv,
    reporter: Reporter,
) -> None:
    """Download packages again whose files were changed, as uv's cache shares the damage."""
    reporter.step("Comparing every file")
    changed = changed_packages(place.root)
    if not changed:
        return
    reporter.step(f"Fetching anew: {', '.join(changed)}")
    uv.forget(changed)
    again = [word for name in changed for word in ("--reinstall-package", name)]
    if "torch" in changed:
        uv.install(place.python, (*torch.arguments, *again))
    others: Sequence[str] = [name for name in changed if name != "torch"]
    again = [word for name in others for word in ("--reinstall-package", name)]
    uv.install(place.python, (*requirements, *again))
    # Fresh from their source and still so: then the record is wrong, and the start will tell.
    for name in changed_packages(place.root):
        reporter.line(f"{name} comes with other files than it names")
