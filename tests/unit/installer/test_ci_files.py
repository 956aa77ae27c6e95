"""Files for a host's machines: they run what `.ci/run` runs, and ask for no more than they need."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from installer.__main__ import NEWEST, OLDEST
from installer.layout import this_repository
from installer.package.format import all_formats

LAYOUT = this_repository()
TEXT = (LAYOUT.root / "installer" / "ci" / "checks.yml").read_text(encoding="utf-8")
FILE = yaml.safe_load(TEXT)
JOBS: dict[str, dict[str, Any]] = FILE["jobs"]
STEPS = list(chain.from_iterable(job["steps"] for job in JOBS.values()))
CELLS = [
    cell
    for job in JOBS.values()
    if "strategy" in job
    for cell in job["strategy"]["matrix"]["include"]
]


def test_jobs_try_every_python_and_package_by_what_a_checkout_runs() -> None:
    script = (LAYOUT.root / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    commands = [step["run"] for step in STEPS if "run" in step]
    assert script[-1] == 'python3 installer test "$@"'
    assert {'sudo env "PATH=$PATH" .ci/run', "python installer test"} <= set(commands)
    minors = range(OLDEST[1], NEWEST[1] + 1)
    assert {cell["python"] for cell in CELLS} == {f"3.{minor}" for minor in minors}
    project = tomllib.loads(LAYOUT.pyproject.read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">=3.{OLDEST[1]},<3.{NEWEST[1] + 1}"
    flags = set(" ".join(cell.get("packages", "") for cell in CELLS).split())
    assert flags >= {f"--{one.name}" for one in all_formats()}


def test_jobs_trust_no_stranger() -> None:
    """Actions are pinned; titles and names of branches, which would run as code, aren't read."""
    assert FILE["permissions"] == {"contents": "read"}
    assert not re.search(r"secrets|pull_request_target", TEXT)
    assert set(re.findall(r"\$\{\{ (\S+) \}\}", "\n".join(s.get("run", "") for s in STEPS))) <= {
        "matrix.packages"
    }
    for action in re.findall(r"uses: (.*)", TEXT):
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action)


@pytest.mark.skipif(sys.platform == "win32", reason="a script of bash")
def test_it_starts_with_an_empty_home_and_leaves_none(tmp_path: Path) -> None:
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
