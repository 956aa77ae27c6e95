"""`medusa uninstall`: names the folders of this user with their sizes, and asks what goes."""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

from installer.bootstrap.current import Current
from installer.bootstrap.environment import discard_environment
from installer.bootstrap.files import folder_bytes, remove_folder
from installer.bootstrap.folders import ProgramData, portable_home, user_folders
from installer.bootstrap.in_use import is_in_use
from installer.bootstrap.program import Program
from installer.bootstrap.settings import Settings
from installer.bootstrap.space import shown_bytes
from installer.bootstrap.terminal import ask, is_conversation
from installer.bootstrap.version import version_key
from installer.console import say
from installer.errors import SetupError
from installer.lock import installation_lock

UNANSWERED_STATUS = 2


@dataclass(frozen=True, slots=True)
class Belongings:
    """Folders that belong together.

    Attributes:
        what: in a few words.
        folders: those that exist.
        is_data: whether the user may have made what is in them.
    """

    what: str
    folders: tuple[Path, ...]
    is_data: bool

    def described(self) -> str:
        """Each folder with its size, a line each."""
        lines = [f"{self.what}:"]
        lines += [f"  {shown_bytes(folder_bytes(one)):>8}  {one}" for one in self.folders]
        return "\n".join(lines)


def run(data: ProgramData, program: Program, argv: Sequence[str]) -> int:
    """Remove what the user wants to be removed.

    Raises:
        SetupError: nobody can be asked, or something is in use.
    """
    options = _parser().parse_args(argv)
    found = list(belongings(data))
    if not found:
        say("Nothing of Medusa Chat is here for this user.")
        return 0
    for one in found:
        say(one.described())
    if not options.yes and not is_conversation():
        raise SetupError("Nobody can be asked here.", "medusa uninstall --yes", UNANSWERED_STATUS)
    wanted = [one for one in found if _is_wanted(one, options)]
    if wanted:
        _check_nothing_runs(data)
    for one in wanted:
        links = [(folder, folder.resolve()) for folder in one.folders if folder.is_symlink()]
        unmarked = _unmarked(data) if one.folders == (data.root,) else ()
        is_all_ours = not unmarked or _agrees_to_all(data, unmarked, options)
        _remove(data, one, is_all_ours)
        say(f"Removed: {one.what.lower()}.")
        for folder in () if is_all_ours else unmarked:
            say(f"Kept: {folder}, since it may be another program's. Remove it yourself if not.")
        for link, named in links:
            say(f"{link} is a link; what is left of the folder that it names is in {named}.")
    for one in found:
        if one not in wanted:
            say(f"Kept: {one.what.lower()}.")
    say(_of_the_system(program))
    return 0


def belongings(data: ProgramData) -> Iterator[Belongings]:
    """What there is of this user, the program first."""
    own = user_folders()
    # In a folder that the user has named or linked, `cache` and `log` may be those of others, too.
    portable = portable_home(os.environ)
    linked = [one for one in (own.config, own.data, own.state) if one.is_symlink()]
    within = [one for one in linked if one in (*own.cache.parents, *own.log.parents)]
    is_shared = portable is not None or bool(within)
    hub = () if portable is None else (portable / "huggingface",)
    groups = (
        Belongings("The program for this user", (data.root,), is_data=False),
        Belongings("Caches and logs", (own.cache, own.log), is_data=is_shared),
        Belongings(
            "Conversations, settings and what was trained or learned",
            (own.data, own.config, own.state),
            is_data=True,
        ),
        # Elsewhere all programs share them, so they stay.
        Belongings("Models from the Hub and the token for it", hub, is_data=True),
    )
    for group in groups:
        there = tuple(dict.fromkeys(one for one in group.folders if one.is_dir()))
        if there:
            yield Belongings(group.what, there, group.is_data)


def _is_wanted(one: Belongings, options: argparse.Namespace) -> bool:
    """Whether it goes: data only if the user says so for data."""
    if one.is_data:
        if options.keep_data or options.delete_data:
            return bool(options.delete_data)
        return not options.yes and ask(f"Delete {_lower(one.what)}, too?", default=False)
    return bool(options.yes) or ask(f"Remove {_lower(one.what)}?", default=True)


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _unmarked(data: ProgramData) -> tuple[Path, ...]:
    """Folders in a linked root that have our names, but may have been there before."""
    if not data.root.is_symlink():
        return ()
    ours = (data.wheels, data.cache, data.models, data.log, data.pythons)
    return tuple(folder for folder in ours if folder.is_dir())


def _agrees_to_all(
    data: ProgramData, unmarked: Sequence[Path], options: argparse.Namespace
) -> bool:
    names = ", ".join(folder.name for folder in unmarked)
    say(f"{data.root} is a link to {data.root.resolve()}.")
    return not options.yes and ask(f"Delete {names} there, too?", default=False)


def _remove(data: ProgramData, one: Belongings, is_all_ours: bool) -> None:
    try:
        if one.folders == (data.root,):
            _remove_program(data, is_all_ours)
        else:
            for folder in one.folders:
                remove_folder(folder)
    except OSError as error:
        where = error.filename or data.root
        raise SetupError(
            f"{where} could not be removed: {error.strerror}.",
            "Close Medusa Chat and other programs that use it, then run again.",
        ) from error


def _remove_program(data: ProgramData, is_all_ours: bool) -> None:
    """Remove what the bootstrap made, and nothing else that lies there.

    Args:
        data: the folder of the program.
        is_all_ours: remove folders by their names; else only what holds a mark of ours.

    Raises:
        SetupError: a version runs.
        OSError: something can't be removed.
    """
    with installation_lock(data.lock, mend="Make its disk writable, then run again."):
        _check_nothing_runs(data)
        for (
            version
        ) in data.complete_versions():  # before the rest, so that no half of one can be started
            discard_environment(data.environment(version))
        for path, kind in ((data.current, Current), (data.settings, Settings)):
            if is_all_ours or _is_record(path, kind):
                path.unlink(missing_ok=True)
        if is_all_ours:
            for folder in (data.versions, data.wheels, data.cache, data.models, data.log):
                remove_folder(folder)
            if not _runs_from(data.pythons):
                remove_folder(data.pythons)
        else:
            _remove_marks(data)
    if is_all_ours or not data.lock.stat().st_size:  # ours is empty
        data.lock.unlink(missing_ok=True)
    if not data.root.is_symlink() and not any(data.root.iterdir()):
        data.root.rmdir()


def _remove_marks(data: ProgramData) -> None:
    """Remove what is beside the versions, and their folder if nothing else is in it."""
    beside = (*data.half_made(), *data.versions.glob(".*.in-use"))
    for path in beside:
        if version_key(path.stem.removeprefix(".")) is not None:
            remove_folder(path)
    if data.versions.is_dir() and not any(data.versions.iterdir()):
        data.versions.rmdir()


def _is_record(path: Path, kind: type[Current | Settings]) -> bool:
    """Whether a file is a record of the bootstrap."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and set(found) == {field.name for field in fields(kind)}


def _check_nothing_runs(data: ProgramData) -> None:
    """What runs writes into the folders of data, too.

    Raises:
        SetupError: a version runs.
    """
    for version in data.complete_versions():
        if is_in_use(data, version):
            raise SetupError(
                f"Medusa Chat {version} is running.",
                "Close it (its windows and its server), then run again.",
            )


def _runs_from(folder: Path) -> bool:
    """Whether the Python that runs this lies there: Windows lets nobody remove it now."""
    return sys.platform == "win32" and Path(sys.base_prefix).is_relative_to(folder)


def _of_the_system(program: Program) -> str:
    if program.root.is_relative_to("/usr"):
        return "What remains belongs to the system: sudo apt remove medusa-chat"
    return f"What remains is {program.root}."


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="medusa uninstall",
        description="Remove Medusa Chat of this user. Names every folder and its size, then asks. "
        "Models in the cache that all programs share stay: medusa rm removes them.",
    )
    parser.add_argument(
        "--yes",
        action="store_true",
        help="remove the program without asking; conversations and settings stay",
    )
    data = parser.add_mutually_exclusive_group()
    data.add_argument(
        "--keep-data", action="store_true", help="keep conversations and settings, don't ask"
    )
    data.add_argument(
        "--delete-data", action="store_true", help="delete conversations and settings too"
    )
    return parser
