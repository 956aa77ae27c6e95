"""What `medusa` and `medusa-chat` of a system package call: `launch.py NAME ARGUMENTS...`.

Written so that Pythons as old as 3.6 can read it: they get a sentence instead of a SyntaxError.
"""

import io
import subprocess
import sys
import traceback
from pathlib import Path

OLDEST = (3, 10)
SHOWN = 2000  # characters of a failure


def main():  # type: () -> int
    """Run the bootstrap beside this file; returns the exit status."""
    if sys.version_info < OLDEST:
        sys.stderr.write(
            "Medusa Chat needs Python {}.{} or newer to set itself up; this is {}.{}.\n".format(
                *(OLDEST + tuple(sys.version_info[:2]))
            )
        )
        return 1
    program = Path(__file__).resolve().parent
    sys.path[:1] = [str(program)]
    sys.dont_write_bytecode = True  # the folder belongs to the system
    from installer.bootstrap import cli

    return cli.main(program, sys.argv[1:])


def main_in_a_box():  # type: () -> int
    """Do the same without a terminal: a message box shows why it failed."""
    said = sys.stdout = sys.stderr = io.StringIO()
    try:
        status = main()
    except Exception:  # noqa: BLE001 - else it would end without a word
        traceback.print_exc()
        status = 1
    if status not in (0, 2, 130):  # 2 and 130: the user didn't want it set up, or ended it
        words = "Medusa Chat ended with an error ({}). In a terminal `medusa repair` mends what is "
        words += "installed; conversations stay.\n\n{}"
        show_failure(words.format(status, said.getvalue()[-SHOWN:]))
    return status


def show_failure(text):  # type: (str) -> None
    """Show a message box."""
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.user32.MessageBoxW(None, text, "Medusa Chat", 0x10)
    else:
        script = 'on run {words}\ndisplay dialog words with title "Medusa Chat" '
        script += 'buttons {"OK"} with icon stop\nend run'
        subprocess.call(["osascript", "-e", script, text])


def has_terminal():  # type: () -> bool
    """Return whether output is visible; a Linux desktop writes it to a log."""
    if sys.stderr is None:  # pythonw
        return False
    return sys.platform != "darwin" or sys.stderr.isatty() or sys.argv[1:2] != ["medusa-chat"]


if __name__ == "__main__":
    sys.exit(main() if has_terminal() else main_in_a_box())
