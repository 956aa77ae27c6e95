"""Makes a version and lets it run from now on: what, where, how large; then step by step."""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from installer.bootstrap.environment import (
    Recipe,
    discard_environment,
    make_environment,
    take_whole_one,
)
from installer.bootstrap.files import copy_whole, remove_folder, write_whole
from installer.bootstrap.first_model import provide_first_model
from installer.bootstrap.folders import ProgramData
from installer.bootstrap.in_use import is_in_use
from installer.bootstrap.progress import Reporter, report_growth
from installer.bootstrap.records import Current, Settings, read_current, write_current
from installer.bootstrap.sources import Sources, find_sources
from installer.bootstrap.space import (
    FIRST_MODEL,
    Size,
    check_space,
    needed_size,
    size_of_version,
)
from installer.bootstrap.uv import Log, Uv
from installer.bootstrap.version import packed_text, version_key
from installer.errors import SetupError
from installer.lock import installation_lock
from installer.process import CancelledError, Commands, SystemCommands
from installer.torch_choice import TorchChoice

CONSTRAINTS = "constraints.txt"
REPAIR = (
    "medusa repair\nIf that doesn't help, choose another build of torch:\nmedusa repair --torch cpu"
)
SMALL_DISK = "Free some space, or set MEDUSA_HOME to a folder on a larger disk."
ANOTHER_FOLDER = "Set MEDUSA_HOME to a folder that you may write to."


@dataclass(frozen=True, slots=True)
class Wanted:
    """An installation that is requested.

    Attributes:
        version: of the program.
        wheel: its file.
        uv: the program uv.
        choice: the build of torch, and why.
        settings: where packages come from.
        with_model: the model of the first start too.
        packages: a folder of wheels that is looked at beside the other places; None for none.
    """

    version: str
    wheel: Path
    uv: Path
    choice: TorchChoice
    settings: Settings
    with_model: bool = False
    packages: Path | None = None

    def size(self) -> Size:
        """Return the approximate size."""
        size = size_of_version(self.choice.build)
        return size + FIRST_MODEL if self.with_model else size


def install_version(
    data: ProgramData,
    wanted: Wanted,
    reporter: Reporter,
    make_commands: Callable[[Path, int], Commands] = SystemCommands,
    *,
    is_repair: bool = False,
) -> None:
    """Install a version and make it current; the previous one is kept, older ones are not.

    Where it fails, what ran before still runs, and what was fetched is kept for the next time.

    Args:
        data: where it goes.
        wanted: what.
        reporter: hears how it goes.
        make_commands: runs programs; replaced in tests.
        is_repair: make it also where it is there already, and compare every file.

    Raises:
        SetupError: the installation isn't possible.
        CancelledError: the user ended it.
    """

    def wait_or_end(seconds: float) -> None:
        _end_if_cancelled(reporter)
        time.sleep(seconds)

    sources = find_sources(wanted.settings.mirror)
    _make_folder(data)
    with installation_lock(data.lock, wait_or_end, reporter.step, ANOTHER_FOLDER) as lock:
        log = Log(data.log)
        try:
            commands = make_commands(data.root, lock.fileno())
            _install(data, wanted, sources, _Teller(reporter, log), commands, is_repair)
        except OSError as error:
            raise _disk_error(data, error) from error
        finally:
            log.close()


def _install(
    data: ProgramData,
    wanted: Wanted,
    sources: Sources,
    reporter: Reporter,
    commands: Commands,
    is_repair: bool,
) -> None:
    place = data.environment(wanted.version)
    if wanted.packages is not None:
        sources = sources.with_folder(wanted.packages)
    uv = Uv(wanted.uv, commands, sources, data.uv_folders(), reporter)
    total = size_of_version(wanted.choice.build).installed
    with report_growth(data.cache, total, reporter.amount):
        # Another process may have made it while this one waited.
        if is_repair or not (place.is_complete or take_whole_one(place)):
            _check_is_idle(data, wanted.version)
            check_space(data.root, needed_size(data.cache, wanted.size()), SMALL_DISK)
            reporter.step(f"Making a place for version {wanted.version}")
            recipe = _keep_recipe(data, wanted)
            make_environment(place, recipe, uv, commands, reporter, thorough=is_repair)
    if wanted.with_model:
        provide_first_model(data.models, place.python, uv.variables(), commands, reporter)
    make_current(data, wanted.version)
    remove_older(data)


def make_current(data: ProgramData, version: str) -> None:
    """Make a version the current one.

    Raises:
        OSError: that can't be written down.
    """
    current = read_current(data)
    before = current.before if current.version == version else current.version
    if before is not None and not data.environment(before).is_complete:
        before = None
    failed = None if current.failed == version else current.failed
    write_current(data, Current(version, before, failed=failed))


def remove_older(data: ProgramData) -> None:
    """Remove all versions but the current and the previous one, unless they are in use."""
    current = read_current(data)
    kept = (current.version, current.before)
    for folder in _subfolders(data.versions):
        is_ours = version_key(folder.name) is not None
        if is_ours and folder.name not in kept and not is_in_use(data, folder.name):
            with suppress(SetupError):  # the next installation tries again; this one is done
                discard_environment(data.environment(folder.name))
    for folder in data.half_made():
        with suppress(OSError):
            remove_folder(folder)
    for folder in _subfolders(data.wheels):
        if folder.name not in kept:
            with suppress(OSError):
                remove_folder(folder)


def _subfolders(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.is_dir()]
    except OSError:
        return []


def _keep_recipe(data: ProgramData, wanted: Wanted) -> Recipe:
    """Save the wheel and its pinned versions for repairs, as the next package won't have them."""
    folder = data.wheels / wanted.version
    wheel, constraints = folder / wanted.wheel.name, folder / CONSTRAINTS
    if wanted.wheel.absolute() != wheel.absolute():
        copy_whole(wanted.wheel, wheel)
    packed = packed_text(wheel, f"medusa_core/_resources/{CONSTRAINTS}")
    if packed is None:
        raise SetupError(f"{wheel.name} names no versions of its packages.", "Get it again.")
    write_whole(constraints, packed)
    program = f"medusa-chat[server,tools] @ {wheel.absolute().as_uri()}"
    return Recipe(
        requirements=(program,),
        constraints=constraints,
        choice=wanted.choice,
        imports="torch, app, medusa_core, medusa_core.api",
        mend=REPAIR,
        record={"version": wanted.version},
    )


def _check_is_idle(data: ProgramData, version: str) -> None:
    if is_in_use(data, version):
        raise SetupError(
            f"Medusa Chat {version} is running.",
            "Close it (its windows and its server), then go on.",
        )


def _make_folder(data: ProgramData) -> None:
    try:
        data.root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SetupError(f"{data.root} can't be made: {error.strerror}.", ANOTHER_FOLDER) from error


def _disk_error(data: ProgramData, error: OSError) -> SetupError:
    """Describe a full or unwritable disk."""
    where = error.filename or data.root
    return SetupError(
        f"{where}: {error.strerror}.",
        "Free some space, then try again; what was fetched is kept.",
    )


def _end_if_cancelled(reporter: Reporter) -> None:
    if reporter.is_cancelled():
        raise CancelledError


class _Teller:
    """Reporter that also writes its lines into the log."""

    def __init__(self, reporter: Reporter, log: Log) -> None:
        self.amount = reporter.amount
        self.confirm = reporter.confirm
        self.is_cancelled = reporter.is_cancelled
        self._reporter = reporter
        self._log = log

    def step(self, text: str) -> None:
        self._log.write(f"== {text}")
        self._reporter.step(text)

    def line(self, text: str) -> None:
        self._log.write(text)
        self._reporter.line(text)
