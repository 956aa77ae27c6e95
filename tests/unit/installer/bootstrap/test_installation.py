"""Making a version: whole or not at all, whatever cuts it short."""

import errno
import threading
from pathlib import Path

import pytest

from installer.bootstrap import installation
from installer.bootstrap.environment import read_stamp
from installer.bootstrap.folders import EnvironmentFolder, ProgramData
from installer.bootstrap.in_use import hold_in_use
from installer.bootstrap.installation import install_version
from installer.bootstrap.program import Program
from installer.bootstrap.records import Current, Settings, read_current, write_current
from installer.bootstrap.uv import Log
from installer.errors import SetupError
from installer.process import CancelledError
from tests.support.installer.fakes import (
    PINS,
    FakeMachine,
    Listener,
    installed,
    make_program,
    make_wheel,
    wanted_of,
)


def install(
    data: ProgramData,
    program: Program,
    machine: FakeMachine,
    listener: Listener | None = None,
    *,
    is_repair: bool = False,
    **changes: object,
) -> list[str]:
    """Install the package's version; returns the commands that it took."""
    machine.commands.clear()
    wanted = wanted_of(program, **changes)
    install_version(data, wanted, listener or Listener(), machine.at, is_repair=is_repair)
    return machine.commands


def test_torch_is_installed_first_and_the_version_is_activated_last(
    data: ProgramData, program: Program, machine: FakeMachine
) -> None:
    commands = install(data, program, machine)
    torch = next(i for i, c in enumerate(commands) if "pip install" in c and "dry" not in c)
    assert "--torch-backend=cpu torch==2.13.0" in commands[torch]
    assert "medusa-chat[server,tools] @ file" in commands[torch + 1]
    assert read_current(data) == Current("1.0")
    stamp = read_stamp(data.environment("1.0"))
    assert stamp is not None
    assert stamp["torch"] == "2.13.0+cpu"


@pytest.mark.parametrize("pulls", [True, False])
def test_the_new_version_downloads_its_model_and_runs_without_it_too(
    data: ProgramData, program: Program, machine: FakeMachine, *, pulls: bool
) -> None:
    machine.pull_status = 0 if pulls else 1
    listener = Listener()
    commands = install(data, program, machine, listener, with_model=True)
    assert commands[-1].startswith(str(data.environment("1.0").python))
    assert commands[-1].endswith(" pull smollm2-135m-instruct")
    assert ("There is no network." in listener.steps[-1]) is not pulls
    assert read_current(data) == Current("1.0")


def test_an_installed_version_is_not_installed_again(
    data: ProgramData, program: Program, machine: FakeMachine
) -> None:
    install(data, program, machine)
    assert install(data, program, machine) == []


def test_no_source_is_built_and_every_version_is_pinned(
    data: ProgramData, program: Program, machine: FakeMachine
) -> None:
    for command in install(data, program, machine):
        if "pip install" in command:
            assert "--no-build" in command
            assert f"--constraint {data.wheels / '1.0' / 'constraints.txt'}" in command


@pytest.mark.parametrize("at", range(5))
def test_an_interruption_anywhere_starts_no_partial_version_and_the_next_attempt_works(
    data: ProgramData, program: Program, machine: FakeMachine, at: int
) -> None:
    def cut(command: str) -> None:
        if len(machine.commands) == at + 1:
            raise KeyboardInterrupt

    machine.before = cut
    with pytest.raises(KeyboardInterrupt):
        install(data, program, machine)
    assert data.complete_versions() == []
    assert read_current(data) == Current()
    machine.before = lambda command: None
    install(data, program, machine)
    assert data.complete_versions() == ["1.0"]
    assert data.half_made() == []


@pytest.mark.parametrize("at", range(5))
def test_a_failed_update_keeps_the_running_version(
    data: ProgramData, program: Program, machine: FakeMachine, tmp_path: Path, at: int
) -> None:
    install(data, program, machine)
    newer = make_program(tmp_path / "newer", "1.1")

    def fail(command: str) -> None:
        if len(machine.commands) == at + 1:
            raise OSError(errno.ENOSPC, "No space left on device")

    machine.before = fail
    with pytest.raises(SetupError, match="No space left"):
        install(data, newer, machine)
    assert read_current(data) == Current("1.0")
    assert data.environment("1.0").is_complete


def test_an_update_keeps_the_previous_version_and_no_older_one(
    data: ProgramData, program: Program, machine: FakeMachine, tmp_path: Path
) -> None:
    for version in ("1.0", "1.1", "1.2"):
        install(data, make_program(tmp_path / version, version), machine)
    assert read_current(data) == Current("1.2", "1.1")
    assert data.complete_versions() == ["1.2", "1.1"]
    assert sorted(path.name for path in data.wheels.iterdir()) == ["1.1", "1.2"]


def test_a_running_version_is_not_removed(
    data: ProgramData, program: Program, machine: FakeMachine, tmp_path: Path
) -> None:
    install(data, program, machine)
    with hold_in_use(data, "1.0") or pytest.fail("not held"):
        for version in ("1.1", "1.2"):
            install(data, make_program(tmp_path / version, version), machine)
        assert data.environment("1.0").is_complete
    install(data, make_program(tmp_path / "1.3", "1.3"), machine)
    assert not data.environment("1.0").root.exists()


def test_a_version_that_does_not_start_never_becomes_the_current_one(
    data: ProgramData, program: Program, machine: FakeMachine, tmp_path: Path
) -> None:
    install(data, program, machine)
    machine.starts = False
    with pytest.raises(SetupError, match="libgomp") as caught:
        install(data, make_program(tmp_path / "newer", "1.1"), machine)
    assert "--torch cpu" in caught.value.mend
    assert read_current(data) == Current("1.0")


def test_a_complete_but_inactive_version_is_activated_without_work(
    data: ProgramData, program: Program, machine: FakeMachine
) -> None:
    install(data, program, machine)
    place = data.environment("1.0")
    place.root.rename(place.new.root)
    assert not place.is_complete
    assert install(data, program, machine) == []
    assert place.is_complete


def test_a_repair_reinstalls_and_downloads_damaged_packages_again(
    data: ProgramData, program: Program, machine: FakeMachine
) -> None:
    install(data, program, machine)
    extra = data.environment("1.0").root / "extra"
    extra.touch()
    machine.is_damaging = True  # until the cache has forgotten them
    install(data, program, machine, is_repair=True)
    assert machine.ran("cache clean medusa-chat torch")
    assert machine.ran("--reinstall-package torch")
    assert data.environment("1.0").is_complete
    assert not extra.exists()


def test_a_failed_repair_keeps_what_is_installed(
    data: ProgramData, program: Program, machine: FakeMachine
) -> None:
    install(data, program, machine)
    machine.says = "error: Request failed\n  cause: dns error"
    with pytest.raises(SetupError, match="could not be reached"):
        install(data, program, machine, is_repair=True)
    assert data.environment("1.0").is_complete


def test_a_running_version_is_not_repaired(
    data: ProgramData, program: Program, machine: FakeMachine
) -> None:
    install(data, program, machine)
    with (
        hold_in_use(data, "1.0") or pytest.fail("not held"),
        pytest.raises(SetupError, match="is running"),
    ):
        install(data, program, machine, is_repair=True)


def test_a_full_disk_stops_the_installation_before_anything_is_made(
    data: ProgramData, program: Program, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("installer.bootstrap.space.shutil.disk_usage", _almost_full)
    with pytest.raises(SetupError, match=r"2.2 GB are needed in .*; 1.0 GB are free"):
        install(data, program, machine)
    assert machine.commands == []


def _almost_full(path: object) -> object:
    class Usage:
        free = 1_000_000_000

    return Usage()


def test_downloaded_files_count_towards_the_space(
    data: ProgramData, program: Program, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("installer.bootstrap.space.shutil.disk_usage", _almost_full)
    data.cache.mkdir(parents=True)
    with (data.cache / "torch").open("wb") as file:
        file.truncate(1_400_000_000)
    install(data, program, machine)
    assert data.complete_versions() == ["1.0"]


def test_a_read_only_folder_is_named(
    tmp_path: Path, program: Program, machine: FakeMachine
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SetupError, match="can't be made") as caught:
        install(ProgramData(tmp_path / "file" / "data"), program, machine)
    assert "MEDUSA_HOME" in caught.value.mend


def test_two_concurrent_installations_install_once(
    data: ProgramData, program: Program, machine: FakeMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installation, "_check_is_idle", lambda *_: None)
    others: list[threading.Thread] = []
    second = Listener()

    def start_another(command: str) -> None:
        if not others:
            others.append(
                threading.Thread(
                    target=install_version, args=(data, wanted_of(program), second, machine.at)
                )
            )
            others[0].start()
            while not second.steps:
                others[0].join(0.01)

    machine.before = start_another
    install(data, program, machine)
    others[0].join()
    assert "waiting" in second.steps[0]
    assert len(machine.ran(" venv ")) == 1


def test_the_user_may_end_the_installation(
    data: ProgramData, program: Program, machine: FakeMachine, listener: Listener
) -> None:
    listener.is_over = True
    with pytest.raises(CancelledError):
        install(data, program, machine, listener)
    assert data.complete_versions() == []


def test_cuda_without_a_card_is_never_installed_unless_requested(
    data: ProgramData, program: Program, machine: FakeMachine, listener: Listener
) -> None:
    machine.torch = [("torch==2.13.0", ["torch==2.13.0", "nvidia-cublas==13.0"])]
    machine.torch.insert(0, ("torch==2.13.0+cpu", []))
    with pytest.raises(SetupError, match="5 GB more"):
        install(data, program, machine, listener)
    assert "NVIDIA" in listener.questions[0]
    assert not [c for c in machine.commands if "pip install" in c and "--dry-run" not in c]
    listener.agrees = True
    install(data, program, machine, listener)
    assert data.complete_versions() == ["1.0"]


def test_with_a_folder_as_mirror_nothing_else_is_contacted(
    data: ProgramData, program: Program, machine: FakeMachine, tmp_path: Path
) -> None:
    mirror = tmp_path / "mirror"
    make_wheel(mirror, "torch", "2.13.0", {})
    machine.torch = [("torch==2.13.0+cpu", ["torch==2.13.0+cpu"])]
    places = set()
    machine.before = lambda _: places.add(machine.env.get("UV_FIND_LINKS"))
    install(data, program, machine, settings=Settings(mirror=str(mirror)))
    assert all("--no-index" in command for command in machine.ran("pip install"))
    assert str(mirror) in places
    assert not machine.ran("--torch-backend")


def test_a_missing_torch_is_reported(
    data: ProgramData, program: Program, machine: FakeMachine
) -> None:
    machine.torch = []
    with pytest.raises(SetupError, match=r"torch 2\.13\.0 was not found"):
        install(data, program, machine)


def test_the_log_has_no_passwords(
    data: ProgramData, program: Program, machine: FakeMachine
) -> None:
    settings = Settings(mirror="https://me:secret@packages.invalid/simple")
    install(data, program, machine, settings=settings)
    text = (data.log / "installation.log").read_text(encoding="utf-8")
    assert "packages.invalid/simple" in text
    assert "secret" not in text


def test_an_unknown_folder_beside_the_versions_is_ignored(
    data: ProgramData, program: Program, machine: FakeMachine
) -> None:
    installed(data, "0.9")
    diary = data.versions / "diary"
    diary.mkdir()
    install(data, program, machine)
    assert diary.exists()
    assert not data.environment("0.9").root.exists()


def test_an_older_version_that_cannot_be_removed_doesnt_fail_an_update(
    data: ProgramData, machine: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(data, "0.8")

    def refuse(place: EnvironmentFolder) -> None:
        if place.root.name == "0.8":
            raise SetupError("in use")

    monkeypatch.setattr(installation, "discard_environment", refuse)
    write_current(data, Current("0.9"))
    installed(data, "0.9")
    install(data, make_program(tmp_path / "new", "1.0"), machine)
    assert read_current(data) == Current("1.0", before="0.9")


def test_the_log_accepts_names_that_are_not_utf_8(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.write("> uv venv /home/j\udcf6rg")
    log.close()
    assert "rg" in log.path.read_text(encoding="utf-8")


def test_the_versions_that_a_wheel_names_are_installed(
    data: ProgramData, program: Program, machine: FakeMachine, tmp_path: Path
) -> None:
    machine.torch = [("--torch-backend=cpu", ["torch==2.15.0+cpu"])]
    wheel = make_wheel(tmp_path, "medusa-chat", "1.2", {PINS: "torch==2.15.0\n"})
    install(data, program, machine, wheel=wheel, version="1.2")
    assert machine.ran("torch==2.15.0")
    bare = make_wheel(tmp_path, "medusa-chat", "1.3", {})
    with pytest.raises(SetupError, match="names no versions"):
        install(data, program, machine, wheel=bare, version="1.3")
