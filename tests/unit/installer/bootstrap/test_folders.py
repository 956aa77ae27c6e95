"""Folders are those that the program itself uses, on every system; versions sort as pip's do."""

import os
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.version import Version
from platformdirs.macos import MacOS
from platformdirs.unix import Unix

from installer.bootstrap.files import folder_bytes, remove_folder, write_whole
from installer.bootstrap.folders import ProgramData, UserFolders, program_data, user_folders
from installer.bootstrap.records import (
    Current,
    Settings,
    read_current,
    read_settings,
    write_current,
    write_settings,
)
from installer.bootstrap.version import is_newer, newest_wheel, version_key, wheel_version
from medusa_core.system.user_folders import cache_dir, places


@pytest.mark.parametrize("home", ["", "portable"])
def test_folders_are_the_programs_own(
    home: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if home:
        monkeypatch.setenv("MEDUSA_HOME", str(tmp_path / home))
    own = places()
    assert user_folders() == UserFolders(own.config, own.data, own.state, own.log, cache_dir())


@pytest.mark.parametrize(("system", "kind"), [("linux", Unix), ("darwin", MacOS)])
def test_folders_are_the_systems(system: str, kind: type[Unix | MacOS]) -> None:
    theirs = kind("medusa-chat")
    found = user_folders(os.environ, system)
    assert found.config == theirs.user_config_path
    assert found.data == theirs.user_data_path
    assert found.state == theirs.user_state_path
    assert found.log == theirs.user_log_path
    assert found.cache == theirs.user_cache_path


def test_on_windows_folders_are_below_the_local_data() -> None:
    env = {"LOCALAPPDATA": "C:/Local"}
    assert program_data(env, "win32").root == Path("C:/Local/medusa-chat-program")
    assert user_folders(env, "win32").log == Path("C:/Local/medusa-chat/medusa-chat/Logs")


def test_the_program_is_in_a_folder_of_its_own() -> None:
    own = user_folders()
    for folder in (own.config, own.data, own.state, own.log, own.cache):
        assert not folder.is_relative_to(program_data().root)


def test_a_portable_home_contains_the_program_too(tmp_path: Path) -> None:
    assert program_data({"MEDUSA_HOME": str(tmp_path)}).root == tmp_path / "program"


ORDER = ["1.0.dev1", "1.0a1", "1.0a2.dev3", "1.0a2", "1.0b1", "1.0rc1", "1.0", "1.0+cpu"]
ORDER += ["1.0.post1", "1.0.1", "1.2", "1.10", "2"]


def test_versions_sort_like_pips() -> None:
    assert [str(one) for one in sorted(map(Version, ORDER))] == ORDER
    for one, next_one in pairwise(ORDER):
        assert is_newer(next_one, one)
        assert not is_newer(one, next_one)
    assert version_key("1.0") == version_key("1.0.0")


def test_an_invalid_version_is_none() -> None:
    for text in ("", "..", "../1.0", "1.0/..", "v", "1.0-x", "1!2"):
        assert version_key(text) is None, text


def test_the_newest_wheel_of_medusa_chat_is_found(tmp_path: Path) -> None:
    for name in ("medusa_chat-1.9-py3-none-any.whl", "medusa_chat-1.10-py3-none-any.whl"):
        (tmp_path / name).touch()
    (tmp_path / "medusa_chatx-2-py3-none-any.whl").touch()
    (tmp_path / "medusa_chat-x-py3-none-any.whl").touch()
    found = newest_wheel(tmp_path)
    assert found is not None
    assert wheel_version(found) == "1.10"


def test_records_are_read_as_they_were_written(data: ProgramData) -> None:
    write_current(data, Current("1.1", "1.0", 1, "0.9"))
    assert read_current(data) == Current("1.1", "1.0", 1, "0.9")
    write_settings(data, Settings("/mirror", "cpu"))
    assert read_settings(data) == Settings("/mirror", "cpu")
    if os.name != "nt":
        assert data.settings.stat().st_mode & 0o077 == 0  # an address may hold a password


def test_damaged_records_count_as_none(data: ProgramData) -> None:
    wrong = ('{"version": "../../x"}', '{"version": 1}', '{"failed_starts": "2"}')
    for text in ("", "[]", "{", "\0", *wrong):
        write_whole(data.current, text)
        write_whole(data.settings, text)
        assert (read_current(data), read_settings(data)) == (Current(), Settings()), text


def test_a_removal_keeps_the_target_of_a_link(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    gone = tmp_path / "gone"
    gone.mkdir()
    (gone / "link").symlink_to(kept)
    (gone / "locked").mkdir(mode=0o500)
    remove_folder(gone)
    assert not gone.exists()
    assert (kept / "file").exists()


def test_a_hard_linked_file_is_counted_once(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(b"12345")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    (tmp_path / "link").symlink_to(tmp_path / "one")
    assert folder_bytes(tmp_path) == 5 + (tmp_path / "link").lstat().st_size
