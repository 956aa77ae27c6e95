"""The environment of a checkout: first start, second start, and every way of being cut short."""

import os
import re
import threading
from pathlib import Path

import pytest

from installer import cli
from installer.bootstrap import first_model
from installer.bootstrap.environment import read_stamp
from installer.bootstrap.first_model import FILE, FOLDER
from installer.checkout import Request, ensure_ready, is_ready
from installer.errors import SetupError
from installer.lock import installation_lock
from installer.torch_choice import AUTO
from medusa_core.__main__ import COMMANDS
from medusa_core.cli.pull import FIRST_MODEL
from medusa_core.hub import first_model as hub_model
from medusa_core.system import resources
from tests.support.installer.fakes import FakeMachine, Listener, put_model

NO_MODEL = Request(with_model=False)
OFFLINE = "error: Request failed\n  cause: dns error"


def install(machine: FakeMachine, request: Request = NO_MODEL) -> list[str]:
    """Run the set-up; returns the commands that it needed."""
    machine.commands.clear()
    ensure_ready(machine.layout, machine.at, request, Listener())
    return machine.commands


def test_torch_is_installed_first_and_every_version_is_pinned(machine: FakeMachine) -> None:
    installs = [c for c in install(machine) if "pip install" in c and "--dry-run" not in c]
    torch, others = installs
    assert "--torch-backend=cpu torch==2.13.0" in torch
    assert others.endswith(f"-r {machine.layout.pyproject} --extra server --extra tools")
    assert all(f"--constraint {machine.layout.constraints}" in c for c in installs)
    assert is_ready(machine.layout, NO_MODEL)


def test_a_second_start_runs_no_command(machine: FakeMachine) -> None:
    install(machine)
    assert install(machine) == []


@pytest.mark.parametrize("name", ["pyproject.toml", "installer/constraints.txt"])
def test_a_change_of_its_inputs_updates_the_environment_in_place(
    machine: FakeMachine, name: str
) -> None:
    install(machine)
    extra = machine.layout.venv / "extra of a developer"
    extra.touch()
    with (machine.layout.root / name).open("a", encoding="utf-8") as file:
        file.write("\n# changed\n")
    assert not is_ready(machine.layout, NO_MODEL)
    commands = install(machine)
    assert is_ready(machine.layout, NO_MODEL)
    assert extra.exists()
    installs = [c for c in commands if "pip install" in c and "--dry-run" not in c]
    assert len(installs) == 1, "torch is there in the right build"


def test_test_tools_are_added_to_an_environment_for_running(machine: FakeMachine) -> None:
    install(machine)
    with_tests = Request(with_tests=True, with_model=False)
    assert not is_ready(machine.layout, with_tests)
    assert install(machine, with_tests)[-2].endswith("--extra server --extra tools --extra test")
    assert install(machine) == []


def test_a_deleted_package_is_detected_and_reinstalled(machine: FakeMachine) -> None:
    install(machine)
    about = next(machine.layout.environment.site_packages.glob("PySide6*.dist-info"))
    (about / "RECORD").unlink()
    about.rmdir()
    install(machine)
    assert about.exists()


def test_a_package_upgraded_by_a_developer_does_not_discard_the_environment(
    machine: FakeMachine,
) -> None:
    machine.torch = [("--torch-backend=cu126", ["torch==2.13.0+cu126"])]
    install(machine, Request(with_tests=True, torch="cu126", with_model=False))
    extra = machine.layout.venv / "extra of a developer"
    extra.touch()
    about = next(machine.layout.environment.site_packages.glob("PySide6*.dist-info"))
    about.rename(about.with_name("PySide6_Essentials-2.0.dist-info"))
    assert not is_ready(machine.layout, NO_MODEL)
    commands = install(machine)
    assert extra.exists()
    assert not [c for c in commands if "nvidia-smi" in c or " venv " in c]
    assert is_ready(machine.layout, Request(with_tests=True, torch="cu126", with_model=False))


@pytest.mark.parametrize("what", ["python", "stamp"])
def test_a_broken_environment_is_made_again(machine: FakeMachine, what: str) -> None:
    install(machine, Request(with_tests=True, with_model=False))
    old = machine.layout.venv / "old"
    old.touch()
    if what == "python":
        machine.layout.python.unlink()
    else:
        stamp = machine.layout.environment.stamp
        stamp.write_text(stamp.read_text(encoding="utf-8")[:20], encoding="utf-8")
    install(machine)
    assert is_ready(machine.layout, NO_MODEL)
    assert is_ready(machine.layout, Request(with_tests=True)) is (what == "python")
    assert not old.exists()


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("is_update", [False, True])
def test_an_environment_interrupted_anywhere_is_made_again(
    machine: FakeMachine, at: int, *, is_update: bool
) -> None:
    request = Request(with_tests=is_update, with_model=False)
    if is_update:
        install(machine)

    def cut(command: str) -> None:
        if len(machine.commands) == at + 1:
            raise KeyboardInterrupt

    machine.before = cut
    with pytest.raises(KeyboardInterrupt):
        install(machine, request)
    assert not is_ready(machine.layout, request)
    machine.before = lambda command: None
    install(machine, request)
    assert is_ready(machine.layout, request)


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
@pytest.mark.parametrize("is_changed", [False, True])
def test_an_update_that_changed_nothing_keeps_the_record(
    machine: FakeMachine, error: type[BaseException], *, is_changed: bool
) -> None:
    install(machine)
    module = machine.layout.environment.site_packages / "PySide6_Essentials.py"

    def fail(command: str) -> None:
        if "pip install" in command and "--dry-run" not in command:
            if is_changed:
                module.unlink()
            raise error

    machine.before = fail
    with pytest.raises(error):
        install(machine, Request(with_tests=True, with_model=False))
    assert is_ready(machine.layout, NO_MODEL) is not is_changed


def test_long_commands_inherit_the_lock(machine: FakeMachine) -> None:
    held: list[int] = []

    def make_commands(folder: Path, lock: int) -> FakeMachine:
        held.append(os.fstat(lock).st_ino)
        return machine

    ensure_ready(machine.layout, make_commands, NO_MODEL, Listener())
    assert held == [machine.layout.lock.stat().st_ino]


def test_without_network_an_error_is_shown_and_the_environment_is_kept(
    machine: FakeMachine,
) -> None:
    install(machine)
    machine.says = OFFLINE
    with pytest.raises(SetupError) as caught:
        install(machine, Request(with_tests=True))
    assert "could not be reached" in caught.value.message
    assert "pip config list" in caught.value.mend
    assert is_ready(machine.layout, NO_MODEL)


def test_a_full_disk_stops_the_installation_before_anything_is_made(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 10**9}))
    with pytest.raises(SetupError, match=r"2.2 GB are needed in .*; 1.0 GB are free"):
        install(machine)
    assert not machine.layout.venv.exists()


def test_a_torch_that_does_not_load_is_not_recorded(machine: FakeMachine) -> None:
    machine.starts = False
    with pytest.raises(SetupError, match="libgomp") as caught:
        install(machine)
    assert "--torch cpu" in caught.value.mend
    assert not is_ready(machine.layout, NO_MODEL)


def test_a_foreign_folder_named_venv_is_not_touched(machine: FakeMachine) -> None:
    diary = machine.layout.venv / "diary.txt"
    diary.parent.mkdir()
    diary.touch()
    with pytest.raises(SetupError, match="in the way"):
        install(machine)
    assert diary.exists()


def test_without_any_python_the_message_has_the_command_that_installs_one(
    machine: FakeMachine,
) -> None:
    machine.says = "error: Failed to download `cpython: x/cpython-3.13.18.tar.gz`\n dns error"
    with pytest.raises(SetupError, match="No suitable Python was found") as caught:
        install(machine)
    assert re.fullmatch(r"Install: .+\nThen:    python3 installer.*", caught.value.mend)


def test_a_chosen_build_of_torch_survives_an_update(machine: FakeMachine) -> None:
    machine.torch = [("--torch-backend=cu126", ["torch==2.13.0+cu126"])]
    install(machine, Request(torch="cu126", with_model=False))
    with machine.layout.constraints.open("a", encoding="utf-8") as file:
        file.write("# changed\n")
    install(machine)
    assert not machine.ran("nvidia-smi")
    assert install(machine, Request(torch="cu126", with_model=False)) == []


@pytest.mark.parametrize("build", ["cpu", "cu126"])
def test_a_chosen_build_whose_wheel_names_none_is_not_looked_for_again(
    machine: FakeMachine, build: str
) -> None:
    machine.torch = [("torch==2.13.0", ["torch==2.13.0"])]
    install(machine, Request(torch=build, with_model=False))
    assert install(machine, Request(torch=build, with_model=False)) == []
    assert install(machine, Request(torch=AUTO, with_model=False)) != []
    assert install(machine, Request(torch=AUTO, with_model=False)) != [], "it looks at the cards"


def test_torch_auto_detects_the_cards_again_and_replaces_the_build(machine: FakeMachine) -> None:
    install(machine)
    machine.nvidia_smi = "8.9, 580.95.05, NVIDIA GeForce RTX 4060\n"
    machine.torch = [("--torch-backend=cu130", ["torch==2.13.0+cu130"])]
    assert install(machine) == []
    install(machine, Request(torch=AUTO, with_model=False))
    stamp = read_stamp(machine.layout.environment)
    assert stamp is not None
    assert stamp["torch"] == "2.13.0+cu130"
    assert "torch-2.13.0+cpu.dist-info" not in machine.layout.environment.packages()


def test_a_waiting_installation_finds_it_installed(machine: FakeMachine) -> None:
    with installation_lock(machine.layout.lock):
        arguments = (machine.layout, machine.at, Request(), Listener())
        second = threading.Thread(target=ensure_ready, args=arguments, daemon=True)
        second.start()
        # What the first would do while it holds the lock.
        first = FakeMachine(machine.layout.root / "first")
        ensure_ready(first.layout, first.at, NO_MODEL, Listener())
        first.layout.pyproject.replace(machine.layout.pyproject)
        first.layout.venv.rename(machine.layout.venv)
        put_model(machine.layout.models)
    second.join(timeout=60)
    assert not second.is_alive()
    assert machine.commands == []


# The model of the first start.


def test_the_model_is_downloaded_once_by_the_program(machine: FakeMachine) -> None:
    pull = f"{machine.layout.python} -X utf8 -m medusa_core pull {FOLDER}"
    assert install(machine, Request())[-1] == pull
    put_model(machine.layout.models, first_model.FILE_BYTES - 1)
    assert install(machine, Request()) == [pull], "a file of another size"
    put_model(machine.layout.models)
    assert install(machine, Request()) == []


def test_a_models_folder_set_by_the_user_is_used_by_installer_and_program(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MEDUSA_MODELS", str(tmp_path))
    put_model(tmp_path)
    assert not [c for c in install(machine, Request()) if "pull" in c]
    assert resources.first_model_file() == tmp_path / FOLDER / FILE


def test_without_the_first_model_the_window_opens(
    machine: FakeMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.pull_status = 1
    assert cli.run_app(machine.layout, machine.at, Request(), ["--platform", "offscreen"]) == 0
    assert machine.ran("-m app")
    assert "There is no network.\nThe program starts without it" in capsys.readouterr().out


def test_interrupting_the_download_interrupts_the_installation(machine: FakeMachine) -> None:
    machine.pull_status = 130
    with pytest.raises(KeyboardInterrupt):
        install(machine, Request())


def test_installer_and_program_name_the_same_model(
    machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.prefix", str(machine.layout.venv))
    assert resources.models_dir() == machine.layout.models
    assert (FOLDER, FILE) == resources.FIRST_MODEL_FILE
    assert first_model.NAME == resources.FIRST_MODEL_NAME
    assert first_model.FILE_BYTES == hub_model.FILE_BYTES
    assert first_model.PULL[2] in COMMANDS
    assert first_model.PULL[3:] == (FIRST_MODEL,)
