"""The programs `medusa` and `medusa-chat` in the environment.

They name the checkout by its full path, so they run from any folder and may be linked to from
elsewhere; nothing is installed, so they need neither a network nor a build.
"""

import os
import stat
from pathlib import Path

from installer.console import say
from installer.layout import Layout

# As pyproject.toml declares them, which Python 3.10 can't read.
PROGRAMS = {
    "medusa": "medusa_core.__main__:main",
    "medusa-chat": "app.__main__:open_window",
}
_SCRIPT = """\
import sys

sys.path[0] = {root!r}  # in the place of this file's folder

if __name__ == "__main__":
    from {module} import {function}

    sys.exit({function}())
"""
# A shebang may be neither long nor hold spaces; sh finds the interpreter, which skips that line.
_UNIX = """\
#!/bin/sh
'''exec' "{python}" "$0" "$@"
' '''
"""
_WINDOWS = '@"{python}" "%~dp0{name}-script.py" %*\n'


def provide_launchers(layout: Layout) -> None:
    """Write missing and outdated launchers, and report those that can't be written."""
    for name, place in PROGRAMS.items():
        for path, text in _files(layout, name, place).items():
            try:
                if not path.exists() or path.read_text(encoding="utf-8") != text:
                    _write(path, text)
            except OSError as error:
                say(f"{path.name} could not be written: {error}.")


def _files(layout: Layout, name: str, place: str) -> dict[Path, str]:
    module, _, function = place.partition(":")
    script = _SCRIPT.format(root=str(layout.root), module=module, function=function)
    folder = layout.python.parent
    if os.name == "nt":
        command = _WINDOWS.format(python=layout.python, name=name)
        return {folder / f"{name}-script.py": script, folder / f"{name}.cmd": command}
    return {folder / name: _UNIX.format(python=layout.python) + script}


def _write(path: Path, text: str) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8", newline="\n")
        part.chmod(part.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        part.replace(path)  # at once: an interruption leaves no half of one
    finally:
        part.unlink(missing_ok=True)
