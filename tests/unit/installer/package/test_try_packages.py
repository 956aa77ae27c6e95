"""The script that tries packages: its words, its table, and what stops it."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from installer.layout import this_repository

INSTALLER = this_repository().root / "installer"
SCRIPT = INSTALLER / "try_packages.sh"
TRIALS = sorted(path for path in (INSTALLER / "trials").glob("*.sh"))

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="a script of bash")


def run(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script of bash."""
    command = ["bash", str(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The script in a checkout that has one trial, which a test writes."""
    script = tmp_path / "installer" / "try_packages.sh"
    (script.parent / "trials").mkdir(parents=True)
    shutil.copy(SCRIPT, script)
    shutil.copy(INSTALLER / "trials" / "common.sh", script.parent / "trials" / "common.sh")
    return script


def write_trial(script: Path, name: str, *lines: str) -> None:
    text = "\n".join(['. "$(dirname "$0")/common.sh"', *lines, ""])
    (script.parent / "trials" / f"{name}.sh").write_text(text, encoding="utf-8")


@pytest.mark.parametrize("path", [SCRIPT, *TRIALS], ids=lambda path: path.name)
def test_all_scripts_parse(path: Path) -> None:
    assert run(Path("-n"), str(path)).returncode == 0
    if shutil.which("shellcheck"):
        command = ["shellcheck", "--external-sources", "--severity=warning", str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def test_help_names_sections_and_options() -> None:
    shown = run(SCRIPT, "--help")
    assert shown.returncode == 0
    assert all(f"--{path.stem}" in shown.stdout for path in TRIALS if path.stem != "common")
    assert "--mirror DIR" in shown.stdout
    assert "set -eu" not in shown.stdout
    assert os.access(SCRIPT, os.X_OK)


def test_an_unknown_section_is_refused_before_anything_runs(copied: Path) -> None:
    write_trial(copied, "deb", "touch $WORK/tried")
    refused = run(copied, "--deb", "--rpm", "--work", str(copied.parent / "work"))
    assert refused.returncode == 2
    assert "There is no section --rpm" in refused.stderr
    assert not (copied.parent / "work" / "tried").exists()


def test_steps_and_sizes_become_a_table(copied: Path) -> None:
    write_trial(
        copied, "deb", "head -c 3000000 /dev/zero > $WORK/file", "step 'do it' sleep 0.2",
        'note file "" "$(size_of "$WORK/file")"', "check 'it is there' test -e $WORK/file",
    )  # fmt: skip
    tried = run(copied)
    assert tried.returncode == 0, tried.stderr
    rows = [line for line in tried.stdout.splitlines() if line.startswith("| deb")]
    assert rows[0].startswith("| deb | do it | 0.")
    assert rows[1] == "| deb | file |  | 3 MB |"
    assert "  it is there" in tried.stdout


def test_a_failed_step_shows_why_ends_its_section_and_the_next_one_runs(copied: Path) -> None:
    write_trial(copied, "deb", "step 'break it' sh -c 'echo because; exit 3'", "touch $WORK/after")
    write_trial(copied, "wheel", "note fine 1 ''")
    work = copied.parent / "work"
    tried = run(copied, "--work", str(work))
    assert tried.returncode == 1
    assert "because" in tried.stderr
    assert "Failed: deb" in tried.stderr
    assert "| wheel | fine | 1 |  |" in tried.stdout
    assert not (work / "after").exists()
    assert "break it: failed" in (work / "table.tsv").read_text()


def test_temporary_files_are_removed_unless_requested(copied: Path, tmp_path: Path) -> None:
    write_trial(copied, "deb", "echo place $WORK")
    tried = run(copied)
    (place,) = [line.split()[1] for line in tried.stdout.splitlines() if line.startswith("place")]
    assert not Path(place).exists()
    kept = tmp_path / "kept"
    run(copied, "--work", str(kept))
    assert (kept / "table.tsv").exists()


def test_a_missing_tool_is_named_with_its_package(copied: Path) -> None:
    write_trial(copied, "deb", "need sh:dash no-such-tool:its-package")
    tried = run(copied)
    assert tried.returncode == 1
    assert "sudo apt-get install its-package" in tried.stderr
