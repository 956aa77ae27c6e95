"""What may be wrong with the machine: each trouble has its sentence and its command."""

import ast
import errno
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.startup.qt_libraries import (
    COMMON,
    WAYLAND,
    XCB,
    Library,
    install_command,
    likely_platforms,
    missing_libraries,
)
from installer import __main__ as entry
from installer import cli, system_packages
from installer.checkout import Request
from installer.errors import SetupError
from installer.layout import Layout
from installer.lock import installation_lock
from installer.process import SystemCommands, run
from tests.support.installer.fakes import FakeMachine

DEBIAN = 'ID=ubuntu\nID_LIKE="debian"\n'
FEDORA = "ID=fedora\n"
SUSE = 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n'
ARCH = "ID=manjaro\nID_LIKE=arch\n"
CURSOR = Library("libxcb-cursor.so.0", "libxcb-cursor0", "xcb-util-cursor")


def test_the_entry_point_parses_on_pythons_too_old_for_the_rest() -> None:
    source = Path(entry.__file__).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))


def test_on_too_old_a_python_the_message_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["installer", "test"])
    words = entry.explain_old_python((3, 9), "python3.12")
    assert words.startswith("This is Python 3.9; Medusa Chat needs 3.11")
    assert words.endswith("\nThen:    python3.12 installer test")


def test_on_too_old_a_python_without_another_the_message_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.argv", ["installer"])
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("os.geteuid", lambda: 1000, raising=False)
    uv = entry.UV_FOLDER
    for known, install, then in (
        ("python3.12", "sudo apt install python3.12 python3.12-venv", "python3.12"),
        (
            "nothing",
            f"python3 -m venv {uv} && {uv}/bin/pip install uv && {uv}/bin/uv python install 3.13",
            f"{uv}/bin/uv run --no-project --python 3.13 python",
        ),
    ):
        monkeypatch.setattr(
            entry,
            "_succeeds",
            lambda *command, name=known: command[:1] + command[2:] == ("apt-cache", name),
        )
        _, first, second = entry.explain_old_python((3, 9), "").splitlines()
        assert first == f"Install: {install}"
        assert second == f"Then:    {then} installer run"


def test_libraries_of_the_current_platform_are_checked() -> None:
    def only_common(file: str) -> bool:
        return file in {library.file for library in COMMON}

    def without_x11(file: str) -> bool:
        return "xcb" not in file

    assert missing_libraries(["offscreen"], only_common) == ()
    assert missing_libraries(["xcb"], only_common) == XCB
    assert missing_libraries(["wayland", "xcb"], without_x11) == (), "Wayland needs none of X11"
    assert missing_libraries(["wayland", "xcb"], only_common) == WAYLAND


def test_a_missing_library_names_the_distributions_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000, raising=False)
    commands = {
        DEBIAN: "sudo apt update && sudo apt install python3.12-venv libxcb-cursor0",
        FEDORA: "sudo dnf install python3.12-venv 'libxcb-cursor.so.0()(64bit)'",
        SUSE: "sudo zypper install python3.12-venv 'libxcb-cursor.so.0()(64bit)'",
        ARCH: "sudo pacman -S python3.12-venv xcb-util-cursor",
    }
    for system, command in commands.items():
        assert install_command([CURSOR], ["python3.12-venv"], system) == command
    assert CURSOR.file in install_command([CURSOR], os_release="")
    monkeypatch.setattr("os.geteuid", lambda: 0, raising=False)
    assert install_command([CURSOR], (), ARCH) == "pacman -S xcb-util-cursor", "root needs no sudo"


def test_everything_missing_is_reported_at_once_with_one_command(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("sys.argv", ["installer", "run", "--no-model"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(system_packages, "missing_libraries", lambda platforms: (CURSOR,))
    with pytest.raises(SetupError) as caught:
        cli.run_app(machine.layout, machine.at, Request(), ["--platform", "xcb"])
    assert "ensurepip" in caught.value.message
    assert CURSOR.file in caught.value.message
    install, then = caught.value.mend.splitlines()
    assert install.startswith("Install: ")
    assert f"python3.{sys.version_info.minor}-venv" in install
    assert then == "Then:    python3 installer run --no-model"
    assert machine.commands == []


def test_the_qt_platform_is_configured_or_follows_the_display() -> None:
    cases: list[tuple[dict[str, str], list[str], tuple[str, ...]]] = [
        ({}, [], ()),
        ({"DISPLAY": ":0"}, [], ("xcb",)),
        ({"WAYLAND_DISPLAY": "wayland-0"}, [], ("wayland",)),
        ({"WAYLAND_DISPLAY": "wayland-0", "DISPLAY": ":0"}, [], ("wayland", "xcb")),
        ({"QT_QPA_PLATFORM": "offscreen"}, [], ("offscreen",)),
        ({"QT_QPA_PLATFORM": "wayland;xcb"}, [], ("wayland", "xcb")),
        ({"DISPLAY": ":0"}, ["-platform", "offscreen:size=800x600"], ("offscreen",)),
        ({}, ["--theme", "dark", "--platform=minimal"], ("minimal",)),
    ]
    for environ, app_args, platforms in cases:
        named = cli.named_platform(app_args)
        assert likely_platforms(environ, named) == platforms, (environ, app_args)


def test_run_without_a_display_offers_the_command_line(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(SetupError) as caught:
        cli.run_app(machine.layout, machine.at, Request(), [])
    assert caught.value.exit_status == 2
    assert ".venv/bin/medusa run" in caught.value.mend
    assert not machine.ran("-m app")


def test_run_opens_the_app_with_its_arguments(machine: FakeMachine) -> None:
    assert cli.run_app(machine.layout, machine.at, Request(), ["--platform", "offscreen"]) == 0
    assert machine.commands[-1].endswith("-m app --platform offscreen")


def test_a_disk_error_is_a_message_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fill_up(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device", "/checkout/.venv")

    monkeypatch.setattr(cli, "run_app", fill_up)
    assert cli.main(["run"]) == 1
    err = capsys.readouterr().err
    assert "/checkout/.venv: No space left on device.\nWhat to do:\n    Check that this disk" in err


def test_a_crash_of_the_app_is_an_error_status(machine: FakeMachine) -> None:
    machine.statuses = {"app": -6}
    assert cli.run_app(machine.layout, machine.at, Request(), ["--platform", "offscreen"]) == 134


def test_two_installations_run_one_after_the_other(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    first = installation_lock(machine.layout.lock)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        first.__exit__(None, None, None)

    first.__enter__()
    with installation_lock(machine.layout.lock, wait):
        assert len(waited) == 1
    assert "Another installation is running" in capsys.readouterr().out


def test_an_interrupted_command_does_not_continue(tmp_path: Path) -> None:
    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    code = (
        "import os, pathlib, time\n"
        "pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "print('started', flush=True)\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(KeyboardInterrupt):
        run(SystemCommands(tmp_path), [sys.executable, "-c", code], on_line=interrupt)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_help_starts_fast_and_imports_no_other_package() -> None:
    root = Layout(Path(entry.__file__).resolve().parent.parent).root
    code = (
        "import sys; sys.argv = ['installer', '--help']\n"
        "import runpy\n"
        "try: runpy.run_path('installer', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'PySide6', 'medusa_core', 'tomllib'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().endswith("[]")
