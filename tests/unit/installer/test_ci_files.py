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
from medusa_core.system.native import build

LAYOUT = this_repository()
TEXT = (LAYOUT.root / "installer" / "ci" / "checks.yml").read_text(encoding="utf-8")
FILE = yaml.safe_load(TEXT)
JOBS: dict[str, dict[str, Any]] = FILE["jobs"]
STEPS = list(chain.from_iterable(job["steps"] for job in JOBS.values()))
# What GitHub knows at each level; a key of another name would be refused there.
TOP = {"name", "on", "permissions", "concurrency", "jobs"}
JOB = {"name", "needs", "strategy", "runs-on", "timeout-minutes", "steps"}
STEP = {"name", "if", "uses", "with", "run"}
RUNNERS = {"linux-x86_64": "ubuntu-24.04", "linux-aarch64": "ubuntu-24.04-arm"}
RUNNERS |= {"windows-x86_64": "windows-2025", "macos-aarch64": "macos-15"}


def cells(job: dict[str, Any]) -> list[dict[str, str]]:
    """What a job's matrix is made of."""
    return job["strategy"]["matrix"]["include"] if "strategy" in job else []


EVERY = [cell for job in JOBS.values() for cell in cells(job)]


def commands(job: str) -> list[str]:
    return [step["run"] for step in JOBS[job]["steps"] if "run" in step]


def test_it_has_no_key_that_github_does_not_know() -> None:
    # YAML 1.1 takes the word "on" for true.
    assert {"on" if key is True else key for key in FILE} <= TOP
    for job in JOBS.values():
        assert set(job) <= JOB
        assert set(job) >= {"runs-on", "timeout-minutes", "steps"}
        assert set(job.get("needs", ())) <= set(JOBS)
    for step in STEPS:
        assert set(step) <= STEP
        assert ("uses" in step) != ("run" in step)


def test_each_job_runs_what_a_checkout_runs() -> None:
    """The last line of `.ci/run` is the whole of it; before it the machine is made ready."""
    script = (LAYOUT.root / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert script[-1] == 'python3 installer test "$@"'
    assert commands("linux")[0] == 'sudo env "PATH=$PATH" .ci/run'
    assert commands("others") == ["python installer test"]


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


def test_each_system_of_a_compiled_library_runs_the_tests() -> None:
    systems = {folder for _, folder, _, _ in build._BUILDS}
    assert set(RUNNERS) == systems, "a system more, or one less"
    assert {cell["os"] for cell in EVERY} == set(RUNNERS.values())


def test_each_python_that_the_program_runs_with_is_tried() -> None:
    minors = range(OLDEST[1], NEWEST[1] + 1)
    assert {cell["python"] for cell in EVERY} == {f"3.{minor}" for minor in minors}
    project = tomllib.loads(LAYOUT.pyproject.read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">=3.{OLDEST[1]},<3.{NEWEST[1] + 1}"


def test_the_compiled_libraries_are_built_anew_and_compared() -> None:
    install, check = commands("libraries")
    assert check == f"python -m {build.__name__} --check"
    assert install == "python -m pip install -c installer/constraints.txt -e '.[native]'"
    project = tomllib.loads(LAYOUT.pyproject.read_text(encoding="utf-8"))["project"]
    assert project["optional-dependencies"]["native"] == [f"ziglang=={build.ZIG_VERSION}"]


def test_every_package_is_built() -> None:
    flags = set(" ".join(cell.get("packages", "") for cell in EVERY).split())
    assert flags >= {f"--{one.name}" for one in all_formats()}


def test_actions_are_pinned_to_a_commit_whose_version_is_said() -> None:
    used = re.findall(r"uses: (.*)", TEXT)
    assert len(used) == sum("uses" in step for step in STEPS)
    for action in used:
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", action)
    by_name = {action.split("@")[0]: action for action in used}
    assert set(used) == set(by_name.values()), "one version of each"


def test_it_may_read_the_code_and_nothing_else() -> None:
    assert FILE["permissions"] == {"contents": "read"}
    assert "secrets" not in TEXT
    assert "pull_request_target" not in TEXT
    for step in STEPS:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("text", [step["run"] for step in STEPS if "run" in step])
def test_no_command_takes_words_of_a_stranger(text: str) -> None:
    """Titles and names of branches would be run as code."""
    assert set(re.findall(r"\$\{\{ (\S+) \}\}", text)) <= {"matrix.packages"}


def test_every_job_ends_some_time() -> None:
    assert all(0 < job["timeout-minutes"] <= 60 for job in JOBS.values())


def test_nothing_else_is_in_the_folder() -> None:
    folder = Path(LAYOUT.root / "installer" / "ci")
    assert [path.name for path in folder.iterdir()] == ["checks.yml"]
