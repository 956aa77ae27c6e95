"""The commands of the installer: `run`, `test`, `package` and `licences`."""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from app.startup.qt_libraries import likely_platforms
from installer.bootstrap.terminal import TerminalReporter
from installer.checkout import Request, ensure_ready
from installer.checks import all_checks, room_checks, run_checks
from installer.console import complain, complain_about_disk, say
from installer.errors import SetupError
from installer.launchers import provide_launchers
from installer.layout import Layout, this_repository
from installer.package.format import add_arguments, build_packages
from installer.process import Commands, SystemCommands
from installer.system_packages import check_system_packages
from installer.torch_choice import AUTO, TorchBuild
from installer.translations import compile_translations

NO_DISPLAY_STATUS = 2
INTERRUPTED_STATUS = 130


def main(argv: Sequence[str]) -> int:
    """Run one command; returns the exit status."""
    own, passed_on = _split(argv)
    options = _parser().parse_args(own)
    layout = this_repository()
    try:
        if options.command == "package":
            build_packages(layout, SystemCommands(layout.root), options)
            return 0
        if options.command == "licences":
            # For developers alone: it reads TOML, which Python 3.10 can't.
            from installer.licences.command import write_licences

            write_licences(layout)
            return 0
        request = Request(options.command == "test", options.torch, not options.no_model)
        if options.command == "run":
            return run_app(layout, SystemCommands, request, passed_on)
        lanes = [f"--lane={lane}" for lane in options.lane]
        words = [*lanes, *passed_on]
        return run_tests(layout, SystemCommands, request, words, options.room)
    except SetupError as error:
        complain(error.message, error.mend)
        return error.exit_status
    except KeyboardInterrupt:
        complain("Interrupted.", "Run the same command again: it repairs what is half done.")
        return INTERRUPTED_STATUS
    except OSError as error:
        complain_about_disk(error, layout.root)
        return 1


def run_app(
    layout: Layout,
    make_commands: Callable[[Path, int], Commands],
    request: Request,
    app_args: Sequence[str],
) -> int:
    """Set up and open the window.

    Args:
        layout: Paths of the checkout.
        make_commands: Runs programs in a folder; long ones inherit a descriptor, -1 for none.
        request: What the environment must offer.
        app_args: Arguments of the application.

    Raises:
        SetupError: the installation isn't possible; without a display its exit status is 2.
    """
    is_linux = sys.platform.startswith("linux")
    platforms = likely_platforms(os.environ, named_platform(app_args))
    has_display = bool(platforms) or not is_linux
    # Before the installation, so that nobody waits for it in vain.
    check_system_packages(layout, platforms)
    _prepare(layout, make_commands, request)
    if not has_display:
        raise SetupError(
            "There is no display here (neither DISPLAY nor WAYLAND_DISPLAY is set), so the window "
            "cannot open. The command line works without one.",
            f"{layout.shown(layout.program('medusa'))} run\n"
            "Or, over ssh, connect with ssh -X and run again.",
            exit_status=NO_DISPLAY_STATUS,
        )
    status = make_commands(layout.root, -1).attach([str(layout.python), "-m", "app", *app_args])
    if status < 0:
        complain(
            f"The application was ended by signal {-status}.",
            "If no window came up, the display may be out of reach; see whether it starts with:\n"
            "QT_QPA_PLATFORM=offscreen python3 installer run",
        )
        return 128 - status
    return status


def run_tests(
    layout: Layout,
    make_commands: Callable[[Path, int], Commands],
    request: Request,
    pytest_args: Sequence[str],
    room: str | None = None,
) -> int:
    """Set up with the tools of the tests and run every check, or the tests of one room.

    Raises:
        SetupError: the installation isn't possible, or the room has no tests.
    """
    offscreen = {"QT_QPA_PLATFORM": "offscreen"} if sys.platform.startswith("linux") else {}
    check_system_packages(layout, ["offscreen"])
    checks = all_checks(pytest_args) if room is None else room_checks(layout, room, pytest_args)
    _prepare(layout, make_commands, request)
    if room is None:
        say("Running every check; about nine minutes on two cores.")
    return run_checks(layout, make_commands(layout.root, -1), checks, offscreen)


def named_platform(app_args: Sequence[str]) -> str:
    """Return the Qt platform plugin that the application's arguments name; empty for none."""
    for index, argument in enumerate(app_args):
        name, _, value = argument.partition("=")
        if name in ("-platform", "--platform"):
            return value or "".join(app_args[index + 1 : index + 2])
    return ""


def _prepare(
    layout: Layout, make_commands: Callable[[Path, int], Commands], request: Request
) -> None:
    ensure_ready(layout, make_commands, request, TerminalReporter(agrees=True))
    provide_launchers(layout)
    commands = make_commands(layout.root, -1)
    compile_translations(layout, commands, layout.program("pyside6-lrelease"))


def _split(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments before and after the first `--`."""
    if "--" not in argv:
        return list(argv), []
    place = list(argv).index("--")
    return list(argv[:place]), list(argv[place + 1 :])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python3 installer",
        description="Set up Medusa Chat in .venv, then open it or run its checks; build packages.",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, words in (
        ("run", "open the application; arguments after -- go to it"),
        ("test", "run lint, types, import contracts and tests; arguments after -- go to pytest"),
    ):
        command = commands.add_parser(name, help=words, description=words.capitalize() + ".")
        command.add_argument(
            "--torch",
            choices=[AUTO, *(build.value for build in TorchBuild)],
            help="build of torch: auto looks at the GPUs again; default: the one chosen last",
        )
        command.add_argument(
            "--no-model",
            action="store_true",
            help="do without SmolLM2 135M Instruct, which is fetched once (93 MB)",
        )
    test = commands.choices["test"]
    test.add_argument(
        "--room",
        metavar="FOLDER",
        help="run only the tests of one folder of the code: runtime/kv, app/chat, laws, …",
    )
    test.add_argument(
        "--lane",
        action="append",
        default=[],
        metavar="NAME",
        help="also run a lane that is left out daily: placement, card, gpu, real_models, recipe, "
        "or all; may be repeated",
    )
    words = "build packages to install from"
    add_arguments(commands.add_parser("package", help=words, description=words.capitalize() + "."))
    words = "write installer/LICENCES.md anew: whose work it holds and installs"
    commands.add_parser("licences", help=words, description=words.capitalize() + ".")
    return parser
