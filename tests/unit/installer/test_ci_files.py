"""`.ci/run`: a clean home, and the installer with its arguments."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from installer.layout import this_repository

LAYOUT = this_repository()


@pytest.mark.skipif(sys.platform == "win32", reason="a script of bash")
def test_the_ci_script_starts_with_an_empty_home_and_leaves_none(tmp_path: Path) -> None:
    """A Python that only tells what it was started with stands for the installer."""
    script, home, found = (tmp_path / name for name in (".ci/run", "home", "found"))
    for path in (script, tmp_path / "bin" / "python3", home / ".config" / "pip" / "pip.conf"):
        path.parent.mkdir(parents=True)
    (home / ".pyenv").mkdir()
    (home / ".config" / "pip" / "pip.conf").touch()
    shutil.copy(LAYOUT.root / ".ci" / "run", script)
    python = tmp_path / "bin" / "python3"
    python.write_text(
        f"""#!/bin/sh
[ "$1" = installer ] || exit 0
exec > {found}
echo "$*"
echo "$HOME"
ls -A "$HOME"
echo "$PIP_CONFIG_FILE $PYENV_ROOT $XDG_DATA_HOME"
touch "$HOME/of pip"
exit 3
"""
    )
    python.chmod(0o755)
    ran = subprocess.run(
        ["bash", script, "-k", "some tests"],
        env={
            "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(home),
            "XDG_DATA_HOME": str(home),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 3, ran.stderr
    arguments, empty, kept = found.read_text().splitlines()
    assert arguments == "installer test -k some tests"
    assert Path(empty) != home
    assert not Path(empty).exists()
    assert kept.split() == [str(home / ".config" / "pip" / "pip.conf"), str(home / ".pyenv")]
