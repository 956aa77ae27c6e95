"""`medusa update`, `repair`, `uninstall`: handed to the package, or what to type instead."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from medusa_core.__main__ import main
from medusa_core.cli import installed
from medusa_core.cli.installed import BOOTSTRAP_VARIABLE, PACKAGED, is_packaged


@pytest.mark.parametrize("name", PACKAGED)
def test_a_checkout_says_how_to_install(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BOOTSTRAP_VARIABLE, raising=False)
    assert main([name, "--yes"]) == 1
    assert "in this checkout" in capsys.readouterr().err


@pytest.mark.parametrize("name", PACKAGED)
def test_a_pip_installation_is_left_to_pip(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(BOOTSTRAP_VARIABLE, raising=False)
    monkeypatch.setattr(installed, "is_checkout", lambda: False)
    assert main([name]) == 1
    assert "pip" in capsys.readouterr().err


def test_a_missing_launcher_counts_as_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(BOOTSTRAP_VARIABLE, str(tmp_path / "launch.py"))
    assert not is_packaged()


@pytest.mark.skipif(os.name == "nt", reason="there it is a child")
def test_the_launcher_passes_all_arguments_and_no_open_file(tmp_path: Path) -> None:
    launcher = tmp_path / "launch.py"
    launcher.write_text(
        "import os, sys\nprint(sys.argv[1:])\n"
        "try:\n    os.fstat(int(os.environ['HELD']))\nexcept OSError:\n    print('closed')\n",
        encoding="utf-8",
    )
    with (tmp_path / "held").open("w") as held:
        os.set_inheritable(held.fileno(), True)
        done = subprocess.run(
            [sys.executable, "-m", "medusa_core", "repair", "--yes", "--help"],
            env={**os.environ, BOOTSTRAP_VARIABLE: str(launcher), "HELD": str(held.fileno())},
            pass_fds=(held.fileno(),),
            capture_output=True,
            text=True,
            check=False,
        )
    assert "['medusa', 'repair', '--yes', '--help']" in done.stdout, done.stderr
    assert "closed" in done.stdout
