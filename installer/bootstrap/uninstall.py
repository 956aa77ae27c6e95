"""`medusa uninstall`: names the folders of this user with their sizes, and asks what goes."""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from installer.bootstrap.environment import discard_environment
from installer.bootstrap.files import folder_bytes, remove_folder
from installer.bootstrap.folders import ProgramData, portable_home, user_folders
from installer.bootstrap.in_use import is_in_use
from installer.bootstrap.program import Program
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
        """Return a line with the size of each folder."""
        lines = [f"{self.what}:"]
        lines += [f"  {shown_bytes(folder_bytes(one)):>8}  {one}" for one in self.folders]
        return "\n".join(lines)


def uninstall(data: ProgramData, program: Program, argv: Sequence[str]) -> int:
    """Remove what the user wants to be removed.

    Raises:
        SetupError: nobody can be asked, or something is in use.
    """
    options = uninstall_parser().parse_args(argv)
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
        _remove(data, one)
        say(f"Removed: {one.what.lower()}.")
        for link, named in links:
            say(f"{link} is a link; what is left of the folder that it names is in {named}.")
    for one in found:
        if one not in wanted:
            say(f"Kept: {one.what.lower()}.")
    say(_of_the_system(program))
    return 0


def belongings(data: ProgramData) -> Iterator[Belongings]:
    """Return the existing folders of this user, the program's first."""
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
    """Return whether a folder is to be removed: data only on request."""
    if one.is_data:
        if options.keep_data or options.delete_data:
            return bool(options.delete_data)
        return not options.yes and ask(f"Delete {_lower(one.what)}, too?", default=False)
    return bool(options.yes) or ask(f"Remove {_lower(one.what)}?", default=True)


def _lower(text: str) -> str:
    return text[0].lower() + text[1:]


def _remove(data: ProgramData, one: Belongings) -> None:
    try:
        if one.folders == (data.root,):
            _remove_program(data)
        else:
            for folder in one.folders:
                remove_folder(folder)
    except OSError as error:
        where = error.filename or data.root
        raise SetupError(
            f"{where} could not be removed: {error.strerror}.",
            "Close Medusa Chat and other programs that use it, then run again.",
        ) from error


def _remove_program(data: ProgramData) -> None:
    """Remove what the bootstrap made, and nothing else.

    In a folder that a link names, other programs may have folders of the same names: only
    environments with a record of ours go.

    Raises:
        SetupError: A version runs.
        OSError: Something can't be removed.
    """
    with installation_lock(data.lock, mend="Make its disk writable, then run again."):
        _check_nothing_runs(data)
        # Before the rest, so that no half of one can be started.
        for version in data.complete_versions():
            discard_environment(data.environment(version))
        for path in (*data.half_made(), *data.versions.glob(".*.in-use")):
            if version_key(path.stem.removeprefix(".")) is not None:
                remove_folder(path)
        if data.root.is_symlink():
            return
        for folder in (data.versions, data.wheels, data.cache, data.models, data.log):
            remove_folder(folder)
        if not _runs_from(data.pythons):
            remove_folder(data.pythons)
        for path in (data.current, data.settings):
            path.unlink(missing_ok=True)
    data.lock.unlink(missing_ok=True)
    if not any(data.root.iterdir()):
        data.root.rmdir()


def _check_nothing_runs(data: ProgramData) -> None:
    """Refuse while a program runs, as it would write into the folders.

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
    """Return whether this process's Python is in the folder, which Windows then can't remove."""
    return sys.platform == "win32" and Path(sys.base_prefix).is_relative_to(folder)


def _of_the_system(program: Program) -> str:
    if program.root.is_relative_to("/usr"):
        return "What remains belongs to the system: sudo apt remove medusa-chat"
    return f"What remains is {program.root}."


def uninstall_parser() -> argparse.ArgumentParser:
    """Return the arguments of `medusa uninstall`."""
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
