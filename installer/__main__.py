"""Entry point of `python3 installer`: checks the Python that runs it, then hands over.

Written so that Pythons as old as 3.6 can read it: they get a sentence instead of a SyntaxError.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 11)
NEWEST = (3, 13)


def find_suitable_python() -> str:
    """Name of a suitable Python on this machine's path, or an empty string."""
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        name = "python3.{0}".format(minor)
        if not shutil.which(name):
            continue
        try:
            # Version managers put names on the path that only say they are not active.
            subprocess.check_output([name, "-c", ""], stderr=subprocess.STDOUT)
        except (OSError, subprocess.CalledProcessError):
            continue
        return name
    return ""


def explain_unsuitable_python(version: "tuple[int, int]", suitable: str) -> str:
    """Say why this Python cannot be used and what to type instead.

    Args:
        version: (major, minor) of the running Python.
        suitable: name of a suitable Python on the path, or an empty string.

    Returns:
        Sentences and a command.
    """
    words = "Medusa Chat needs Python {0}.{1} to {2}.{3}; this is Python {4}.{5}.".format(
        *(OLDEST + NEWEST + version)
    )
    if suitable:
        return words + "\nRun it with the suitable one you have:\n    {0} installer {1}".format(
            suitable, " ".join(sys.argv[1:]) or "run"
        )
    return words + "\nInstall one, then run this command with it:\n    {0}".format(
        install_command()
    )


def install_command() -> str:
    """Give the command that installs a suitable Python on this system."""
    if sys.platform == "darwin":
        return "brew install python@3.13"
    if os.name == "nt":
        return "winget install Python.Python.3.13"
    if shutil.which("apt-get"):
        return "sudo apt install python3.11 python3.11-venv"
    if shutil.which("dnf"):
        return "sudo dnf install python3.13"
    return "pyenv install 3.13, or your system's package manager"


def main() -> int:
    """Run the installer; returns the exit status."""
    version = (sys.version_info[0], sys.version_info[1])
    if not OLDEST <= version <= NEWEST:
        sys.stderr.write(explain_unsuitable_python(version, find_suitable_python()) + "\n")
        return 1
    here = Path(__file__).resolve().parent
    # Running a directory puts it first on the path, where our modules would hide the standard ones.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    sys.path.insert(0, str(here.parent))
    from installer import cli

    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
