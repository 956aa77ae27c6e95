"""The commands of a system package: `medusa ...`, `medusa-chat ...`, and `update` and others."""

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from installer.bootstrap.folders import ProgramData, program_data
from installer.bootstrap.program import Program
from installer.bootstrap.situation import Kind, Situation, look
from installer.bootstrap.start import has_tk_screen, run_command, run_window
from installer.console import complain, complain_about_disk, say
from installer.errors import SetupError
from installer.process import CancelledError

WINDOW = "medusa-chat"
COMMAND = "medusa"
YES = "--yes"
# Commands and the modules that have a function of that name; a start imports none of them.
MAINTENANCE = {"update": "update", "repair": "update", "uninstall": "uninstall"}
INTERRUPTED_STATUS = 130
UNUSABLE_STATUS = 2


def main(program: Path, argv: Sequence[str]) -> int:
    """Run one command.

    Args:
        program: the folder of the package.
        argv: `medusa` or `medusa-chat`, and its arguments.

    Returns:
        The exit status: 130 after Ctrl-C, 2 where the program isn't set up.
    """
    data = program_data()
    try:
        return _carry_out(data, Program(program), argv)
    except SetupError as error:
        complain(error.message, error.mend)
        return error.exit_status
    except (KeyboardInterrupt, CancelledError):
        complain("Interrupted.", "Run the same command again: it goes on with what is there.")
        return INTERRUPTED_STATUS
    except OSError as error:
        complain_about_disk(error, data.root)
        return 1


def _carry_out(data: ProgramData, program: Program, argv: Sequence[str]) -> int:
    name, *arguments = argv or [""]
    if name == COMMAND and arguments[:1] and arguments[0] in MAINTENANCE:
        module = importlib.import_module(f"installer.bootstrap.{MAINTENANCE[arguments[0]]}")
        work = getattr(module, arguments[0])
        status = work(data, program, arguments[1:])
        assert isinstance(status, int)
        return status
    agrees = arguments[:1] == [YES]
    if agrees:
        arguments = arguments[1:]
    if name == COMMAND:
        return _run_command(data, program, arguments, agrees=agrees)
    if name == WINDOW:
        return _run_window(data, program, arguments)
    raise SetupError(f"launch.py was called for {name!r}.", "launch.py medusa-chat", 2)


def _run_command(
    data: ProgramData, program: Program, arguments: Sequence[str], *, agrees: bool
) -> int:
    """Run `medusa`: the program, or its installation if it isn't installed yet."""
    found = look(data, program)
    if found.kind in (Kind.FIRST, Kind.DAMAGED):
        from installer.bootstrap.terminal import set_up

        if not set_up(data, program, found, agrees=agrees):
            return UNUSABLE_STATUS
        found = look(data, program)
    elif found.kind is Kind.NEWER and sys.stderr.isatty():
        complain(f"Medusa Chat {found.shipped} has come with its package.", "medusa update")
    return run_command(data, program, _installed(found), arguments)


def _run_window(data: ProgramData, program: Program, arguments: Sequence[str]) -> int:
    """Run `medusa-chat`: the window, or a small window first if there is something to decide."""
    found = look(data, program)
    while True:
        if found.kind is not Kind.READY:
            decided = _decide(data, program, found)
            if decided is None:
                return UNUSABLE_STATUS
            found = decided
        status = run_window(data, program, _installed(found), arguments)
        before, found = found, look(data, program)
        has_failed_again = found.kind is Kind.FAILING and before.kind is not Kind.FAILING
        if not (has_failed_again and has_tk_screen()):
            return status


def _decide(data: ProgramData, program: Program, found: Situation) -> Situation | None:
    """Let the user decide in a window, or in a terminal if no window can open."""
    from installer.bootstrap import terminal

    if has_tk_screen():
        try:
            from installer.bootstrap import window
        except ImportError:
            say("Python's tkinter isn't installed here, so no window can show this.")
        else:
            return look(data, program) if window.decide(data, program, found) else None
    if found.kind is Kind.NEWER:
        return found
    if found.kind is Kind.FAILING:
        terminal.offer_way_out(data, program, found)
    elif not terminal.set_up(data, program, found, agrees=False):
        return None
    return look(data, program)


def _installed(found: Situation) -> str:
    assert found.current is not None
    return found.current
