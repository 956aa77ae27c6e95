"""`medusa update`, `repair`, `uninstall`: what is asked, refused and kept."""

from pathlib import Path

import pytest

from installer.bootstrap import request, terminal, uninstall, update
from installer.bootstrap.folders import ProgramData, program_data, user_folders
from installer.bootstrap.in_use import hold_in_use
from installer.bootstrap.installation import Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.records import (
    Current,
    Settings,
    read_current,
    read_settings,
    write_current,
)
from installer.bootstrap.update_source import checked_version, find_update
from installer.errors import SetupError
from tests.support.installer.fakes import NO_CARD, installed, make_program, make_wheel

OURS = {"medusa_core/__init__.py": ""}


@pytest.fixture
def data() -> ProgramData:
    return program_data()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Wanted]:
    """Record requested installations instead of executing them."""
    found: list[Wanted] = []

    def note(data: ProgramData, wanted: Wanted, *_: object, **__: object) -> None:
        found.append(wanted)

    monkeypatch.setattr(terminal, "install_version", note)
    monkeypatch.setattr(request, "chosen_torch", lambda *_: NO_CARD)
    return found


def test_the_first_update_installs_with_the_model(
    data: ProgramData, program: Program, made: list[Wanted]
) -> None:
    assert update.update(data, program, ["--yes"]) == 0
    assert (made[0].version, made[0].with_model) == ("1.0", True)
    update.update(data, program, ["--yes", "--no-model"])
    assert not made[1].with_model


def test_an_installed_version_is_not_changed(
    data: ProgramData, program: Program, made: list[Wanted]
) -> None:
    installed(data, "1.0")
    assert update.update(data, program, []) == 0
    installed(data, "1.1")
    write_current(data, Current("1.1"))
    assert update.update(data, program, ["--yes"]) == 0
    assert not made


def test_without_a_terminal_to_ask_the_error_names_the_command(
    data: ProgramData, program: Program
) -> None:
    installed(data, "0.9")
    for work in (update.update, update.repair, uninstall.uninstall):
        with pytest.raises(SetupError) as caught:
            work(data, program, [])
        assert caught.value.mend == f"medusa {work.__name__} --yes"
        assert caught.value.exit_status == 2


def test_a_mirror_is_checked_before_it_is_saved(
    data: ProgramData, program: Program, made: list[Wanted], tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match="is no folder"):
        update.update(data, program, ["--yes", "--mirror", str(tmp_path / "none")])
    assert read_settings(data) == Settings()
    make_wheel(tmp_path / "wheels", "torch", "1.0", {})
    update.update(data, program, ["--yes", "--mirror", str(tmp_path / "wheels"), "--torch", "cpu"])
    assert read_settings(data) == Settings(str(tmp_path / "wheels"), "cpu")
    assert made[0].settings == read_settings(data)


def test_a_failed_update_says_what_still_runs(
    data: ProgramData, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(data, "0.9")

    def fail(*_: object, **__: object) -> None:
        raise SetupError("The disk became full.", "Free some space.")

    monkeypatch.setattr(terminal, "install_version", fail)
    with pytest.raises(SetupError, match=r"version 0\.9 still runs") as caught:
        update.update(data, program, ["--yes"])
    assert "disk became full" in caught.value.message


def test_a_wheel_or_a_folder_is_installed_beside_the_other_versions(
    data: ProgramData, program: Program, made: list[Wanted], tmp_path: Path
) -> None:
    installed(data, "1.0")
    wheel = make_wheel(tmp_path / "new", "medusa-chat", "1.2", OURS)
    make_wheel(tmp_path / "new", "medusa-chat", "1.1", OURS)
    for source in (wheel, wheel.parent):
        assert update.update(data, program, ["--yes", "--from", str(source)]) == 0
        assert made[-1].version == "1.2"
    assert made[-1].packages == wheel.parent


def test_an_address_is_refused_since_anybody_could_register_the_name(
    data: ProgramData, program: Program
) -> None:
    with pytest.raises(SetupError, match="anybody could") as caught:
        find_update(data, program, "https://me:cret@example.invalid/simple")
    assert "cret" not in caught.value.message
    assert "--from FILE" in caught.value.mend


@pytest.mark.parametrize("name", ["medusa_chat-1.2-py3-none-any.whl", "other-1.0-py3-none-any.whl"])
def test_a_foreign_wheel_is_refused(tmp_path: Path, name: str) -> None:
    other = make_wheel(tmp_path, "other", "1.0", {})
    for content in (other.read_bytes(), b"", b"PK\x05\x06" + bytes(18), other.read_bytes()[:90]):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SetupError):
            checked_version(tmp_path / name)


def test_a_repair_uses_what_was_kept_of_the_installed_version(
    data: ProgramData, program: Program, made: list[Wanted], tmp_path: Path
) -> None:
    installed(data, "0.9")
    kept = make_wheel(data.wheels / "0.9", "medusa-chat", "0.9", OURS)
    assert update.repair(data, program, ["--yes"]) == 0
    assert made[0].wheel == kept
    kept.unlink()
    update.repair(data, program, ["--yes"])
    assert made[1].version == program.version()


def belongings_of_a_user(data: ProgramData) -> list[Path]:
    installed(data, "1.0")
    (data.root / "foreign.txt").touch()
    own = user_folders()
    folders = [own.data, own.config, own.state, own.cache]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"x" * 2_000_000)
    return folders


def test_uninstall_names_every_folder_with_its_size_and_keeps_data(
    data: ProgramData, program: Program, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = belongings_of_a_user(data)[:3]
    assert uninstall.uninstall(data, program, ["--yes"]) == 0
    said = capsys.readouterr().out
    for folder in kept:
        assert f"2 MB  {folder}" in said
        assert (folder / "file").exists()
    assert not data.versions.exists()
    assert (data.root / "foreign.txt").exists()  # not ours
    assert not user_folders().cache.exists()


def test_uninstall_deletes_data_only_on_request(data: ProgramData, program: Program) -> None:
    folders = belongings_of_a_user(data)
    (data.root / "foreign.txt").unlink()
    uninstall.uninstall(data, program, ["--yes", "--delete-data"])
    assert not any(folder.exists() for folder in (*folders, data.root))
    assert uninstall.uninstall(data, program, []) == 0  # there is nothing


@pytest.mark.parametrize(
    ("answers", "program_goes", "data_goes"), [("y y n", True, False), ("n n y", False, True)]
)
def test_uninstall_asks_for_each_kind_of_data(
    data: ProgramData,
    program: Program,
    monkeypatch: pytest.MonkeyPatch,
    answers: str,
    program_goes: bool,
    data_goes: bool,
) -> None:
    belongings_of_a_user(data)
    monkeypatch.setattr("installer.bootstrap.terminal.is_conversation", lambda: True)
    monkeypatch.setattr(uninstall, "is_conversation", lambda: True)
    left = iter(answers.split())
    monkeypatch.setattr("builtins.input", lambda _: next(left))
    uninstall.uninstall(data, program, [])
    assert data.versions.exists() is not program_goes
    assert user_folders().data.exists() is not data_goes


@pytest.mark.parametrize("options", [["--yes"], []], ids=["program", "data"])
def test_uninstall_refuses_while_the_program_runs(
    options: list[str], data: ProgramData, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = belongings_of_a_user(data)
    monkeypatch.setattr(uninstall, "is_conversation", lambda: True)
    monkeypatch.setattr(uninstall, "ask", lambda question, *, default: "conversa" in question)
    with (
        hold_in_use(data, "1.0") or pytest.fail("not held"),
        pytest.raises(SetupError, match="is running"),
    ):
        uninstall.uninstall(data, program, options)
    assert data.environment("1.0").is_complete
    assert all((folder / "file").exists() for folder in folders)


def test_a_folder_named_by_the_user_loses_no_cache_unless_requested(
    program: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("MEDUSA_HOME", str(tmp_path / "stick"))
    belongings_of_a_user(program_data())
    token = tmp_path / "stick" / "huggingface" / "token"
    token.parent.mkdir()
    token.touch()
    assert uninstall.uninstall(program_data(), program, ["--yes"]) == 0
    assert (user_folders().cache / "file").exists()
    assert token.exists()
    assert f"{token.parent}\n" in capsys.readouterr().out
    assert not program_data().versions.exists()
    uninstall.uninstall(program_data(), program, ["--yes", "--delete-data"])
    assert not user_folders().cache.exists()
    assert not token.parent.exists()


def test_folders_that_are_links_to_another_disk_are_named(
    data: ProgramData, program: Program, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = belongings_of_a_user(data)
    (data.root / "foreign.txt").unlink()
    disk = tmp_path / "disk"
    disk.mkdir()
    for name, folder in (("program", data.root), ("chats", folders[0])):
        folder.rename(disk / name)
        folder.symlink_to(disk / name)
    assert uninstall.uninstall(data, program, ["--yes", "--delete-data"]) == 0
    assert (disk / "chats" / "file").exists()  # who made the link decides
    assert f"is in {disk / 'chats'}" in capsys.readouterr().out
    assert not any((disk / "program" / "versions").iterdir())


def test_installing_in_a_terminal_asks_about_program_and_model(
    data: ProgramData, program: Program, made: list[Wanted], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("installer.bootstrap.terminal", "installer.bootstrap.terminal"):
        monkeypatch.setattr(f"{name}.is_conversation", lambda: True)
    from installer.bootstrap.situation import look

    for answers, goes, model in (("n", False, False), ("y n", True, False), ("\n y", True, True)):
        left = iter(answers.split(" "))
        monkeypatch.setattr("builtins.input", lambda _, left=left: next(left))
        assert terminal.set_up(data, program, look(data, program), agrees=False) is goes
        assert not goes or made[-1].with_model is model
    assert read_current(data) == Current()


def test_a_package_without_its_wheel_is_reported(data: ProgramData, tmp_path: Path) -> None:
    program = make_program(tmp_path / "bare")
    program.wheel().unlink()
    with pytest.raises(SetupError, match="holds no wheel"):
        update.update(data, program, ["--yes"])


FOREIGN = ("cache/a", "log/a", "models/a", "python/a", "wheels/a", "versions/a/b", "lock")
FOREIGN += ("settings.json", "current.json", "versions/.a.old/b", "versions/.a.in-use")


@pytest.mark.parametrize("options", [["--yes"], ["--yes", "--delete-data"], []])
def test_files_that_were_in_a_linked_folder_before_are_kept(
    options: list[str],
    data: ProgramData,
    program: Program,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(uninstall, "is_conversation", lambda: True)
    monkeypatch.setattr(uninstall, "ask", lambda question, *, default: default)
    foreign = [tmp_path / "disk" / name for name in FOREIGN]
    for path in foreign:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}", encoding="utf-8")
    data.root.parent.mkdir(parents=True, exist_ok=True)
    data.root.symlink_to(tmp_path / "disk")
    installed(data, "1.0")
    (data.environment("1.1").new.root).mkdir()
    assert uninstall.uninstall(data, program, options) == 0
    assert [path for path in foreign if not path.exists()] == []
    assert not data.environment("1.0").root.exists()
    assert not data.environment("1.1").new.root.exists()
    assert f"what is left of the folder that it names is in {tmp_path / 'disk'}" in (
        capsys.readouterr().out
    )


def test_linked_folders_of_the_program_keep_their_targets(
    data: ProgramData, program: Program, tmp_path: Path
) -> None:
    foreign = tmp_path / "disk" / "file"
    foreign.parent.mkdir()
    foreign.touch()
    data.root.mkdir(parents=True)
    parts = ("versions", "wheels", "cache", "models", "log", "python")
    for part in parts:
        (data.root / part).symlink_to(foreign.parent)
    assert uninstall.uninstall(data, program, ["--yes", "--delete-data"]) == 0
    assert foreign.exists()
    assert [part for part in parts if (data.root / part).is_symlink()] == []


def test_a_log_in_a_linked_state_folder_is_kept_unless_requested(
    data: ProgramData, program: Program, tmp_path: Path
) -> None:
    foreign = tmp_path / "disk" / "log" / "file"
    foreign.parent.mkdir(parents=True)
    foreign.touch()
    state = user_folders().state
    state.parent.mkdir(parents=True, exist_ok=True)
    state.symlink_to(tmp_path / "disk")
    installed(data, "1.0")
    assert uninstall.uninstall(data, program, ["--yes"]) == 0
    assert foreign.exists()
    assert not data.root.exists()
