"""Starts by the real launcher: what is counted, what is offered, what holds a version."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from installer.bootstrap.folders import ProgramData, program_data
from installer.bootstrap.in_use import is_in_use
from installer.bootstrap.program import Program
from installer.bootstrap.records import (
    Current,
    Settings,
    read_current,
    write_current,
    write_settings,
)
from installer.bootstrap.situation import Kind, look
from installer.bootstrap.start import give_up, note_start
from installer.lock import installation_lock
from tests.support.installer.fakes import installed

pytestmark = pytest.mark.skipif(os.name == "nt", reason="programs are scripts of a shell here")
CAME_UP = 'touch "$MEDUSA_STARTED_FILE"; '


@pytest.fixture
def data() -> ProgramData:
    return program_data()


def launch(program: Program, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-I", str(program.launcher), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_command_is_passed_to_the_installed_program(data: ProgramData, program: Program) -> None:
    installed(data, "1.0", run='echo "$@ $MEDUSA_BOOTSTRAP $MEDUSA_MODELS"; exit 3')
    write_current(data, Current("1.0"))
    done = launch(program, "medusa", "generate", "-p", "two words")
    assert done.returncode == 3
    assert done.stdout == f"generate -p two words {program.launcher} {data.models}\n"


def test_the_program_downloads_from_the_same_mirror(
    data: ProgramData, program: Program, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / "one-1.0-py3-none-any.whl").touch()
    installed(data, "1.0", run='echo "$UV_OFFLINE $UV_FIND_LINKS $UV_DEFAULT_INDEX"')
    write_current(data, Current("1.0"))
    for place, heard in (
        (str(mirror), f"1 {mirror} \n"),
        ("https://mirror.example/simple", "  https://mirror.example/simple\n"),
        (str(tmp_path / "gone"), "  \n"),
    ):
        write_settings(data, Settings(place))
        assert launch(program, "medusa", "hi").stdout == heard


def test_without_an_installed_version_a_script_is_told_what_to_type(program: Program) -> None:
    done = launch(program, "medusa", "generate")
    assert done.returncode == 2
    assert "isn't set up" in done.stderr
    assert "medusa update --yes" in done.stderr


@pytest.mark.parametrize(
    ("script", "before", "after"),
    [
        ("exit 1", 0, 1),
        ("kill -SEGV $$", 1, 2),
        (CAME_UP + "exit 1", 1, 0),  # it came up; what happened later is another matter
        ("exit 0", 1, 1),  # the window that is open already was shown
        ("kill -TERM $$", 1, 1),
    ],
)
def test_failed_starts_are_counted(
    data: ProgramData,
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    before: int,
    after: int,
) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    installed(data, "1.0", chat=script)
    write_current(data, Current("1.0", failed_starts=before))
    launch(program, "medusa-chat")
    assert read_current(data).failed_starts == after
    assert not list(data.log.glob("started-*"))


def test_errors_of_a_window_are_logged(data: ProgramData, program: Program) -> None:
    installed(data, "1.0", chat="echo ImportError: libEGL >&2; exit 1")
    write_current(data, Current("1.0"))
    assert "libEGL" in launch(program, "medusa-chat").stderr
    assert "libEGL" in (data.log / "start.log").read_text(encoding="utf-8")


def test_without_a_display_failed_starts_are_not_counted(
    data: ProgramData, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("QT_QPA_PLATFORM", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    installed(data, "1.0", chat="exit 2")
    write_current(data, Current("1.0"))
    launch(program, "medusa-chat")
    assert read_current(data).failed_starts == 0


def test_after_two_failures_the_previous_version_is_offered_and_can_be_restored(
    data: ProgramData, program: Program
) -> None:
    installed(data, "0.9")
    installed(data, "1.0")
    write_current(data, Current("1.0", "0.9"))
    note_start(data, "1.0", failed=True)
    assert look(data, program).kind is Kind.READY
    note_start(data, "1.0", failed=True)
    assert look(data, program).kind is Kind.FAILING
    give_up(data)
    assert read_current(data) == Current("0.9", failed="1.0")
    # The package's version isn't offered again by itself.
    assert look(data, program).kind is Kind.READY


def test_a_count_of_another_version_is_ignored(data: ProgramData) -> None:
    write_current(data, Current("1.0", failed_starts=1))
    note_start(data, "0.9", failed=True)
    assert read_current(data).failed_starts == 1


def test_every_situation_at_a_start_is_recognised(data: ProgramData, program: Program) -> None:
    assert look(data, program).kind is Kind.FIRST
    installed(data, "0.9")
    write_current(data, Current("0.9"))
    assert look(data, program).kind is Kind.NEWER
    data.environment("0.9").python.unlink()
    assert look(data, program).kind is Kind.DAMAGED


def test_a_lost_record_is_restored_from_what_is_installed(
    data: ProgramData, program: Program
) -> None:
    installed(data, "0.9")
    installed(data, "1.0")
    assert look(data, program).current == "1.0"


def test_an_older_package_keeps_a_newer_version(data: ProgramData, program: Program) -> None:
    installed(data, "1.1")
    write_current(data, Current("1.1"))
    assert look(data, program).kind is Kind.READY


def test_a_window_locks_its_version_even_if_its_launcher_was_killed(
    data: ProgramData, program: Program, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    installed(data, "1.0", chat=f"echo $$ > {pid}.part; mv {pid}.part {pid}; exec sleep 60")
    write_current(data, Current("1.0"))
    command = [sys.executable, "-I", str(program.launcher), "medusa-chat"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as launcher:
        _wait_for(pid)
        assert is_in_use(data, "1.0")
        launcher.kill()
    assert is_in_use(data, "1.0")
    os.kill(int(pid.read_text()), signal.SIGKILL)
    _wait_until_idle(data)


def test_ending_the_launcher_ends_the_window(
    data: ProgramData, program: Program, tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    script = f"trap 'exit 0' TERM; echo $$ > {pid}.part; mv {pid}.part {pid}; "
    installed(data, "1.0", chat=script + "while :; do sleep 0.05; done")
    write_current(data, Current("1.0"))
    command = [sys.executable, "-I", str(program.launcher), "medusa-chat"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as launcher:
        _wait_for(pid)
        launcher.terminate()
        assert launcher.wait(30) == 0
    _wait_until_idle(data)


def test_a_read_only_user_folder_doesnt_prevent_the_window(
    data: ProgramData, program: Program
) -> None:
    installed(data, "1.0", chat="exit 1")
    write_current(data, Current("1.0"))
    data.log.touch()  # nothing can be kept there
    data.lock.mkdir()  # nor be locked
    assert launch(program, "medusa-chat").returncode == 1


def _wait_for(path: Path) -> None:
    end = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.01)


def _wait_until_idle(data: ProgramData) -> None:
    end = time.monotonic() + 30
    while is_in_use(data, "1.0"):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_normal_start_waits_for_no_installation(data: ProgramData) -> None:
    installed(data, "1.0")
    write_current(data, Current("1.0"))
    data.lock.parent.mkdir(parents=True, exist_ok=True)
    with installation_lock(data.lock):
        note_start(data, "1.0", failed=False)  # would wait for ever for the lock of this process


def test_without_a_writable_folder_no_shared_file_is_used(
    data: ProgramData, program: Program
) -> None:
    installed(data, "1.0", chat='echo "<$MEDUSA_STARTED_FILE>"')
    write_current(data, Current("1.0"))
    data.log.touch()  # no folder can be made there
    assert launch(program, "medusa-chat").stdout == "<>\n"
