"""Entry point of `python3 installer`: checks the Python that runs it, then hands over.

Written so that Pythons as old as 3.6 can read it: they print a message instead of a SyntaxError.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

OLDEST = (3, 10)  # of the installer; the environment's Python is chosen by uv
SUITABLE = ("3.13", "3.12", "3.11")  # for the environment
UV_FOLDER = "~/.local/share/uv-program"


def find_suitable_python() -> str:
    """Return the name of a suitable Python on PATH, or an empty string."""
    for version in SUITABLE:
        # Version managers put names on PATH that only report that they aren't active.
        if _succeeds("python" + version, "-c", ""):
            return "python" + version
    return ""


def explain_old_python(version: "tuple[int, int]", suitable: str) -> str:
    """Say why this Python can't be used and what to type instead.

    Args:
        version: (major, minor) of the running Python.
        suitable: Name of a suitable Python on PATH, or an empty string.
    """
    words = "This is Python {0}.{1}; Medusa Chat needs 3.11, 3.12 or 3.13.".format(*version)
    lines = [] if suitable else ["Install: " + install_command()]
    python = suitable or "python" + SUITABLE[0]
    if not suitable:
        installed = [one for one in SUITABLE if one in lines[0]]
        python = "python" + (installed or SUITABLE)[0]
        if os.name == "nt":
            python = "py -" + SUITABLE[0]
        elif UV_FOLDER in lines[0]:
            python = "{0}/bin/uv run --no-project --python {1} python".format(
                UV_FOLDER, SUITABLE[0]
            )
    lines.append("Then:    {0} installer {1}".format(python, " ".join(sys.argv[1:]) or "run"))
    return "\n".join([words, *lines])


def install_command() -> str:
    """Return the command that installs a suitable Python on this system."""
    if sys.platform == "darwin" and shutil.which("brew"):
        return "brew install python@3.13"
    if os.name == "nt":
        return "winget install Python.Python.3.13"
    sudo = "" if os.name != "posix" or os.geteuid() == 0 else "sudo "
    for version in SUITABLE:
        name = "python" + version
        if _succeeds("apt-cache", "show", name):
            return "{0}apt install {1} {1}-venv".format(sudo, name)
        if _succeeds("dnf", "--quiet", "--cacheonly", "list", name):
            return "{0}dnf install {1}".format(sudo, name)
    # Distributions with a newer Python only: uv has Pythons of its own. It gets an environment,
    # since their pip refuses to install outside of one (PEP 668).
    words = "python3 -m venv {0} && {0}/bin/pip install uv && {0}/bin/uv python install {1}"
    return words.format(UV_FOLDER, SUITABLE[0])


def _succeeds(*command: str) -> bool:
    try:
        subprocess.check_output(command, stderr=subprocess.STDOUT)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def main() -> int:
    """Run the installer; returns the exit status."""
    version = (sys.version_info[0], sys.version_info[1])
    if version < OLDEST:
        sys.stderr.write(explain_old_python(version, find_suitable_python()) + "\n")
        return 1
    here = Path(__file__).resolve().parent
    # Running a directory puts it first on the path, where our modules would hide the standard ones.
    sys.path[:] = [entry for entry in sys.path if Path(entry).resolve() != here]
    sys.path.insert(0, str(here.parent))
    from installer import cli

    return cli.main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
