"""What may be wrong with the machine: each trouble has its sentence and its command."""

import ast
import importlib.util
import os
import subprocess
import sys
import threading
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
from installer import cli, environment, system_packages
from installer.errors import SetupError
from installer.layout import Layout
from installer.lock import installation_lock
from installer.process import SystemRunner
from installer.setup import Request, ensure_ready
from installer.space import GB, check_space
from installer.torch_choice import TorchBuild
from tests.support.installer.fakes import FakeMachine

DEBIAN = 'ID=ubuntu\nID_LIKE="debian"\n'
FEDORA = "ID=fedora\n"
SUSE = 'ID="opensuse-leap"\nID_LIKE="suse opensuse"\n'
ARCH = "ID=manjaro\nID_LIKE=arch\n"
CURSOR = Library("libxcb-cursor.so.0", "libxcb-cursor0", "xcb-util-cursor")


def test_entry_point_is_read_by_pythons_too_old_to_run_the_rest() -> None:
    source = Path(entry.__file__).read_text(encoding="utf-8")
    ast.parse(source, feature_version=(3, 6))


def test_too_old_python_is_told_what_to_type() -> None:
    words = entry.explain_unsuitable_python((3, 9), "python3.12")
    assert "needs Python 3.11 to 3.13; this is Python 3.9" in words
    assert "python3.12 installer" in words


def test_too_old_python_without_another_is_told_what_to_install() -> None:
    assert entry.install_command() in entry.explain_unsuitable_python((3, 9), "")


def test_python_without_ensurepip_is_told_the_package(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError) as caught:
        environment.prepare_environment(machine.layout, machine)
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert caught.value.mend == f"sudo apt install python{version}-venv"
    assert not machine.layout.venv.exists()


def test_space_is_checked_for_the_build(tmp_path: Path) -> None:
    for build, too_little in ((TorchBuild.CPU, 2.9), (TorchBuild("cu130"), 7.9)):
        check_space(tmp_path, build, lambda _, gb=too_little + 0.2: int(gb * GB))
        with pytest.raises(SetupError, match=f"{too_little} GB are free"):
            check_space(tmp_path, build, lambda _, gb=too_little: int(gb * GB))


def test_a_small_directory_for_temporary_files_is_named(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="temporary files") as caught:
        check_space(tmp_path, TorchBuild.CPU, lambda path: 9 * GB if path == tmp_path else 0)
    assert "TMPDIR=" in caught.value.mend


def test_libraries_of_the_platform_at_hand_are_looked_for() -> None:
    def only_common(file: str) -> bool:
        return file in {library.file for library in COMMON}

    def without_x11(file: str) -> bool:
        return "xcb" not in file

    assert missing_libraries(["offscreen"], only_common) == ()
    assert missing_libraries(["xcb"], only_common) == XCB
    assert missing_libraries(["wayland", "xcb"], without_x11) == (), "Wayland needs none of X11"
    assert missing_libraries(["wayland", "xcb"], only_common) == WAYLAND


def test_missing_library_is_mended_as_the_distribution_does(
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


def test_all_that_is_missing_is_said_at_once_with_one_command(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr("sys.argv", ["installer", "run", "--no-model"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(system_packages, "missing_libraries", lambda platforms: (CURSOR,))
    with pytest.raises(SetupError) as caught:
        cli.run_app(machine.layout, machine, Request(), ["--platform", "xcb"])
    assert "ensurepip" in caught.value.message
    assert CURSOR.file in caught.value.message
    install, then = caught.value.mend.splitlines()
    assert install.startswith("Install: ")
    assert f"python3.{sys.version_info.minor}-venv" in install
    assert then == "Then:    python3 installer run --no-model"
    assert machine.commands == []


def test_platform_is_asked_for_or_follows_the_display() -> None:
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
        cli.run_app(machine.layout, machine, Request(), [])
    assert caught.value.exit_status == 2
    assert ".venv/bin/medusa run" in caught.value.mend
    assert not machine.ran("-m app")


def test_run_opens_the_app_with_its_arguments(machine: FakeMachine) -> None:
    assert cli.run_app(machine.layout, machine, Request(), ["--platform", "offscreen"]) == 0
    assert machine.commands[-1].endswith("-m app --platform offscreen")


def test_a_crash_of_the_app_is_an_error_status(machine: FakeMachine) -> None:
    machine.app_status = -6
    assert cli.run_app(machine.layout, machine, Request(), ["--platform", "offscreen"]) == 134


def test_two_installations_take_turns(
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


def test_whoever_waited_finds_it_installed(machine: FakeMachine) -> None:
    with installation_lock(machine.layout.lock):
        second = threading.Thread(
            target=ensure_ready, args=(machine.layout, machine, Request()), daemon=True
        )
        second.start()
        # What the first would do while it holds the lock.
        first = FakeMachine(machine.layout.root / "first")
        ensure_ready(first.layout, first, Request())
        first.layout.venv.rename(machine.layout.venv)
    second.join(timeout=10)
    assert not second.is_alive()
    assert machine.commands == []


def test_a_program_that_hangs_is_given_up(tmp_path: Path) -> None:
    runner = SystemRunner(tmp_path)
    answer = runner.capture([sys.executable, "-c", "import time; time.sleep(60)"], timeout_s=0.2)
    assert answer.status is None


def test_an_interrupted_command_does_not_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(line: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("installer.process.say", interrupt)
    code = (
        "import os, pathlib, time\n"
        "pathlib.Path('pid').write_text(str(os.getpid()))\n"
        "print('started', flush=True)\n"
        "time.sleep(60)\n"
    )
    with pytest.raises(KeyboardInterrupt):
        SystemRunner(tmp_path).echo([sys.executable, "-c", code])
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_missing_program_has_no_status(tmp_path: Path) -> None:
    assert SystemRunner(tmp_path).capture(["no-such-program-here"], timeout_s=5).status is None


def test_help_starts_fast_and_imports_nothing_of_ours() -> None:
    root = Layout(Path(entry.__file__).resolve().parent.parent).root
    code = (
        "import sys; sys.argv = ['installer', '--help']\n"
        "import runpy\n"
        "try: runpy.run_path('installer', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "print(sorted({'torch', 'PySide6', 'medusa_core'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip().endswith("[]")
