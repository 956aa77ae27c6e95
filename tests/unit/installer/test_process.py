"""Programs that are run silently: what they say, and the environment that they get."""

import os
import sys
from pathlib import Path

import pytest

from installer.errors import CommandError
from installer.process import Output, SystemCommands, run_checked

OTHERS = ("PYTHONHOME", "PYTHONPATH", "__PYVENV_LAUNCHER__", "VIRTUAL_ENV", "CONDA_PREFIX")


def test_a_started_program_inherits_no_other_python(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner = SystemCommands(tmp_path)
    for name in OTHERS:
        monkeypatch.setenv(name, str(tmp_path))
    names = "import os; print(*sorted(os.environ), os.getcwd())"
    done = runner.capture([sys.executable, "-I", "-c", names], 60.0)
    assert done.status == 0
    reported = done.text.split()
    assert set(OTHERS).isdisjoint(reported)
    assert "PATH" in reported
    assert Path(reported[-1]).samefile(tmp_path)
    assert runner.capture([str(tmp_path / "absent")], 60.0).status is None
    slow = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert runner.capture(slow, 0.2, dict(os.environ)).status is None


def test_a_command_without_a_status_is_not_reported_as_successful(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SystemCommands, "follow", lambda *_: Output(None, "timed out"))
    with pytest.raises(
        CommandError, match=r"^pip download \.\.\. did not end by itself\.$"
    ) as caught:
        run_checked(SystemCommands(tmp_path), ["pip", "download"])
    assert caught.value.status is None
