"""What stops a set-up.

SetupError
└── CommandError    a command of ours ended badly; carries the end of its output
"""

from collections.abc import Sequence


class SetupError(Exception):
    """Raised if something on this machine prevents the installation.

    Attributes:
        message: what is wrong, one or two sentences.
        mend: the command or the step that mends it; empty if there is none.
        exit_status: of the installer.
    """

    def __init__(self, message: str, mend: str = "", exit_status: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.mend = mend
        self.exit_status = exit_status


class CommandError(SetupError):
    """Raised if a command ends with a status other than 0, or without one.

    Attributes:
        status: exit status; negative: the signal that ended it; None: it timed out or is missing.
        output: its last lines.
    """

    def __init__(self, command: Sequence[str], status: int | None, output: Sequence[str]) -> None:
        end = "did not end by itself" if status is None else f"ended with status {status}"
        super().__init__(f"{' '.join(command[:6])} ... {end}.")
        self.status = status
        self.output = tuple(output)
