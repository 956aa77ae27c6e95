"""Makes the environment of one version, and checks that the program starts in it."""

import json
import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from installer.bootstrap.commands import Commands
from installer.bootstrap.files import remove_folder, write_whole
from installer.bootstrap.folders import EnvironmentFolder
from installer.bootstrap.progress import Reporter
from installer.bootstrap.record import changed_packages
from installer.bootstrap.torch_source import TorchSource, find_torch
from installer.bootstrap.uv import Uv
from installer.errors import SetupError
from installer.torch_choice import TorchChoice

CHECK_TIMEOUT_S = 300.0
_STARTS = "import torch, app, medusa_core, medusa_core.api"
_IN_USE = "Close Medusa Chat and other programs that use it, then try again."


@dataclass(frozen=True, slots=True)
class Stamp:
    """The record `installed.json`, written after everything else.

    Attributes:
        version: of the program.
        torch: its version, with its build.
    """

    version: str
    torch: str


@dataclass(frozen=True, slots=True)
class Recipe:
    """What an environment is made of.

    Attributes:
        version: of the program.
        wheel: its file.
        constraints: the version of each package.
        choice: the build of torch, and why.
    """

    version: str
    wheel: Path
    constraints: Path
    choice: TorchChoice


def make_environment(
    place: EnvironmentFolder,
    recipe: Recipe,
    uv: Uv,
    commands: Commands,
    reporter: Reporter,
    *,
    thorough: bool,
) -> None:
    """Make an environment beside its place, check it, and put it there.

    What was in its place stays there until then. What uv fetched before isn't fetched again.

    Args:
        place: where it goes.
        recipe: what it is made of.
        uv: does the work.
        commands: runs the check.
        reporter: hears how it goes, and asks.
        thorough: compare every file with what its package says, and fetch damaged ones anew.

    Raises:
        SetupError: that is impossible.
        CancelledError: the user ended it.
        OSError: its folder can't be written.
    """
    new = place.new
    remove_folder(new.root)
    new.root.mkdir(parents=True)
    uv.make_environment(new.root)
    reporter.step("Looking for torch")
    torch = find_torch(uv, new.python, recipe.constraints, recipe.choice, reporter)
    reporter.step(f"Fetching torch {torch.version}")
    uv.install(new.python, torch.arguments)
    reporter.step("Fetching the other packages")
    # Compiled now, since the first start would wait for it.
    uv.install(new.python, ("--compile-bytecode", *_requirements(recipe)))
    if thorough:
        _replace_changed(new, recipe, torch, uv, reporter)
    reporter.step("Checking that it starts")
    _check_start(new, commands)
    stamp = Stamp(recipe.version, torch.version)
    if os.name != "nt":
        reporter.step("Waiting for the disk")
        os.sync()  # after a power cut the stamp must not be all that is there
    write_whole(new.stamp, json.dumps(asdict(stamp), indent=1) + "\n")
    discard_environment(place)
    new.root.rename(place.root)


def discard_environment(place: EnvironmentFolder) -> None:
    """Remove an environment; if that is cut short, nothing of it is in its place.

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
    """Put an environment into its place that was whole when its installation was cut short."""
    if place.root.exists() or not place.new.is_complete:
        return False
    place.new.root.rename(place.root)
    return True


def read_stamp(place: EnvironmentFolder) -> Stamp | None:
    """What was installed; None where that can't be read."""
    try:
        return Stamp(**json.loads(place.stamp.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _requirements(recipe: Recipe) -> tuple[str, ...]:
    program = f"medusa-chat[server] @ {recipe.wheel.absolute().as_uri()}"
    return ("--constraint", str(recipe.constraints), program)


def _replace_changed(
    new: EnvironmentFolder, recipe: Recipe, torch: TorchSource, uv: Uv, reporter: Reporter
) -> None:
    """Fetch packages anew whose files aren't as they were: uv's cache has shared the damage."""
    reporter.step("Comparing every file")
    changed = changed_packages(new.root)
    if not changed:
        return
    reporter.step(f"Fetching anew: {', '.join(changed)}")
    uv.forget(changed)
    again = [word for name in changed for word in ("--reinstall-package", name)]
    if "torch" in changed:
        uv.install(new.python, (*torch.arguments, *again))
    others: Sequence[str] = [name for name in changed if name != "torch"]
    again = [word for name in others for word in ("--reinstall-package", name)]
    uv.install(new.python, (*_requirements(recipe), *again))
    # Fresh from their source and still so: then the record is wrong, and the start will tell.
    for name in changed_packages(new.root):
        reporter.line(f"{name} comes with other files than it names")


def _check_start(new: EnvironmentFolder, commands: Commands) -> None:
    """Load the program and torch, without a window.

    Raises:
        SetupError: they don't load.
    """
    command = [str(new.python), "-I", "-c", _STARTS]
    loaded = commands.capture(command, CHECK_TIMEOUT_S)
    if loaded.status != 0:
        raise SetupError(
            f"The program is installed but does not start:\n{loaded.text.strip()[-600:]}",
            "medusa repair\nIf it stays so, choose another build of torch:\n"
            "medusa repair --torch cpu",
        )
