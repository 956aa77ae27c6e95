"""A failed uv in words: what went wrong, and what to do."""

import re
from dataclasses import dataclass

from installer.errors import SetupError

NO_PYTHON = "No suitable Python was found, and none could be downloaded."
_NO_NETWORK = (
    "dns error",
    "error sending request",
    "Failed to fetch",
    "Could not connect",
    "Connection refused",
    "connection closed",
    "operation timed out",
    "error decoding response body",
    "Network is unreachable",
    "Network connectivity is disabled",
)


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of failure.

    Attributes:
        words: one of them is in uv's output.
        message: what went wrong.
        mend: what to do.
    """

    words: tuple[str, ...]
    message: str
    mend: str


_KINDS = (
    _Kind(
        ("No interpreter found", "No download found", "No Python", "/cpython-3"),
        NO_PYTHON,
        "Install Python 3.11, 3.12 or 3.13, then go on.",
    ),
    _Kind(
        ("No space left on device", "not enough space on the disk", "os error 28", "os error 112"),
        "The disk became full.",
        "Free some space, then go on: what was fetched is kept.",
    ),
    _Kind(
        ("Read-only file system", "os error 30"),
        "The disk can't be written to.",
        "Set MEDUSA_HOME to a folder that you may write to.",
    ),
    _Kind(
        ("Disk quota exceeded", "os error 122"),
        "You may not keep more on this disk.",
        "Free some space, or set MEDUSA_HOME to a folder on another disk.",
    ),
    _Kind(
        ("invalid peer certificate", "certificate verify failed", "UnknownIssuer"),
        "The certificate of the package index isn't known here.",
        "In a network that checks traffic, set UV_SYSTEM_CERTS=1, then go on.",
    ),
    _Kind(
        ("401 Unauthorized", "403 Forbidden", "407 Proxy"),
        "The package index refuses to serve this computer.",
        "Check the mirror's address, its user name and password, or the proxy.",
    ),
    _Kind(
        _NO_NETWORK,
        "The package index could not be reached.",
        "Check the connection and the settings of pip (python3 -m pip config list), or name a "
        "mirror; then go on: what was fetched is kept.",
    ),
    _Kind(
        ("Hash mismatch",),
        "A package isn't the one that was expected.",
        "Try again, or use another mirror.",
    ),
    _Kind(
        ("No solution found", "has no wheels", "not found in the package registry"),
        "A package is missing where it was looked for, or doesn't exist for this system.",
        "A mirror must hold every package of constraints.txt. Packages exist for Linux with glibc "
        "2.34, 64-bit Windows, and macOS 14 on Apple silicon.",
    ),
    _Kind(
        ("Permission denied", "os error 13", "Access is denied", "os error 5)"),
        "A file may not be written.",
        "Close Medusa Chat and other programs that use its folder, then try again.",
    ),
)
TRY_AGAIN = "Try again; what was fetched is kept."


def explain_uv(output: str) -> SetupError:
    """Turn the end of uv's output into a sentence and a remedy.

    Args:
        output: uv's lines.
    """
    for kind in _KINDS:
        if any(words in output for words in kind.words):
            return SetupError(f"{kind.message}\n{_cause(output)}".rstrip(), kind.mend)
    return SetupError(f"uv could not do its work.\n{_cause(output)}".rstrip(), TRY_AGAIN)


def _cause(output: str) -> str:
    """Return uv's error and its innermost cause, at most 600 characters."""
    errors = re.findall(r"(?:error|×|cause|Caused by):? (.+)", output)
    lines = [errors[0].strip(), errors[-1].strip()] if errors else output.splitlines()[-3:]
    return "\n".join(dict.fromkeys(lines))[:600]
