"""Settings and presets as one file: it comes back as it was, holds no secret, and a bad one is
refused as a whole."""

import json
from pathlib import Path, PureWindowsPath
from typing import Any

import pytest

from medusa_core import __version__
from medusa_core.__main__ import main
from medusa_core.chats.presets import Preset, Presets
from medusa_core.chats.settings import ChatSettings
from medusa_core.chats.settings_file import (
    NOT_EXPORTED,
    SettingsFile,
    exported_names,
    read_settings_file,
    write_settings_file,
)
from medusa_core.errors import PresetError, SettingsFileError
from medusa_core.hub.boundary import printable
from medusa_core.hub.settings import save_token
from medusa_core.remote.endpoints import Endpoint, Endpoints
from medusa_core.system.key_store import KeyStore
from medusa_core.system.local_folder import is_local_path
from medusa_core.system.running_models import RunningFile
from medusa_core.system.user_folders import HOME_VARIABLE, places

OWN = Preset("Ärger", {"rule": "sample", "temperature": 1.2, "stop": ["\n"], "seed": None})
FILE = SettingsFile(
    {"theme": "dark", "zoom": 1.2, "shortcuts": {"stop": "F2"}, "notifies": False},
    (OWN, Preset("Short", {"max_new_tokens": 64, "system_prompt": "Be brief."})),
    ChatSettings(rule="greedy", system_prompt="As we always begin."),
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of settings in a folder that isn't there yet."""
    path = tmp_path / "kept" / "settings.json"
    write_settings_file(FILE, path)
    return path


def test_a_settings_file_is_read_as_it_was_written(path: Path) -> None:
    assert read_settings_file(path) == FILE
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert (raw["program"], raw["note"]) == (__version__, NOT_EXPORTED)
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_only_settings_of_the_schema_are_written(path: Path) -> None:
    secret = {"model": {"dir": "/home/me/models"}, "hub_token": "hf_secret", "theme": "light"}
    write_settings_file(SettingsFile(secret), path)
    assert read_settings_file(path).preferences == {"theme": "light"}
    assert "secret" not in path.read_text()
    assert not {name for name in exported_names() if "token" in name or "key" in name}


def changed(path: Path, **values: Any) -> Path:
    """Return the file with other top-level values."""
    raw = json.loads(path.read_text(encoding="utf-8")) | values
    path.write_text(json.dumps(raw), encoding="utf-8")
    return path


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    ({"format": "medusa-chat-trace"}, "is no file of settings"),
    ({"version": 2}, "written by a newer Medusa Chat"),
    ({"version": "1"}, "version must be same as const definition: 1"),
    ({"preferences": {"theme": "pink"}}, "preferences.theme must be one of"),
    ({"preferences": {"zoom": "1"}}, "preferences.zoom must be number"),
    ({"preferences": {"font_family": "\ud800"}}, "half a character"),
    ({"preferences": {"shortcuts": {"stop": "\udfff"}}}, "half a character"),
    ({"preferences": {"zoom": 9}}, "preferences.zoom must be smaller"),
    ({"preferences": []}, "preferences must be object"),
    ({"preferences": {"shortcuts": {"stop": 3}}}, "must be string"),
    ({"presets": [{"name": "x"}]}, r"presets\[0\] must contain"),
    ({"presets": [{"name": "Exact", "settings": {}}]}, "called 'Exact'"),
    ({"presets": [{"name": "a\n", "settings": {}}] * 2}, "two presets of one name"),
    ({"presets": [{"name": "a\x07b", "settings": {}}]}, "called 'a"),
    ({"presets": [{"name": "x", "settings": {"top_p": 7}}]}, "in the preset x, top_p"),
    ({"presets": [{"name": "x", "settings": {"stop": "now"}}]}, "in the preset x, stop"),
    ({"presets": [{"name": "x", "settings": {"overflow": {}}}]}, "in the preset x, overflow"),
    ({"new_chats": {"seed": -1}}, "in the beginning of new chats, seed"),
    ({"extra": 1}, "must not contain"),
)


def test_invalid_settings_are_named(path: Path) -> None:
    whole = path.read_text(encoding="utf-8")
    for values, told in WRONG:
        path.write_text(whole, encoding="utf-8")
        with pytest.raises(SettingsFileError, match=told) as caught:
            read_settings_file(changed(path, **values))
        assert caught.value.hint, told


def test_a_file_without_settings_is_refused(path: Path) -> None:
    for text in ("", "{", "[]", "[" * 100_000, '{"a": 1e999}', "\udcff"):
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        with pytest.raises(SettingsFileError):
            read_settings_file(path)


def test_missing_and_huge_files_are_refused(path: Path) -> None:
    with path.open("ab") as file:
        file.truncate(9 << 20)
    for bad in (path, path.with_name("none"), path.parent):
        with pytest.raises(SettingsFileError):
            read_settings_file(bad)


def test_a_full_disk_keeps_the_previous_file(path: Path) -> None:
    blocked = path.parent / "settings.json" / "below.json"
    with pytest.raises(SettingsFileError, match="can't be written"):
        write_settings_file(FILE, blocked)
    assert read_settings_file(path) == FILE


def test_settings_of_a_newer_version_are_ignored_and_named(path: Path) -> None:
    presets = [{"name": "New", "settings": {"warp": 9, "top_k": 5}}]
    found = read_settings_file(
        changed(path, preferences={"theme": "dark", "aura": 1}, presets=presets)
    )
    assert (found.unknown, found.preferences) == (("aura", "warp"), {"theme": "dark"})
    assert found.presets == (Preset("New", {"top_k": 5}),)


@pytest.mark.parametrize(
    "folder", ["gone", "//server/share", r"\\server\share", "/", "/" + "x" * 4095]
)
def test_a_missing_folder_is_ignored_and_named(
    path: Path, folder: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chosen = {"theme": "dark", "models_dir": folder, "layers_dir": ""}
    changed(path, preferences=chosen, presets=[], new_chats=None)
    absent = {} if folder == "/" else {"models_dir": folder}
    assert read_settings_file(path).absent == absent
    assert main(["settings", "import", str(path)]) == 0
    assert (f"no folder {printable(folder)}: models_dir" in capsys.readouterr().out) is bool(absent)
    kept = json.loads(places().preferences.read_text())
    assert (kept["theme"], kept.get("models_dir")) == ("dark", None if absent else folder)


def test_a_network_folder_is_not_contacted() -> None:
    for text in (r"C:\models", "c:/models"):
        assert is_local_path(text, PureWindowsPath), text
    others = ("", "models", "C:models", r"\models", "//server/share/x", r"\/server\share")
    others += tuple(
        rf"\\{text}" for text in ("server", r"server\share", r"?\C:\x", r"?\UNC\s\x", r".\pipe\x")
    )
    for text in (*others, r"\??\UNC\server\x"):
        assert not is_local_path(text, PureWindowsPath), text


def test_an_unknown_choice_doesnt_hide_other_settings(path: Path) -> None:
    presets = [{"name": "New", "settings": {"top_k": 5}}]
    found = read_settings_file(changed(path, preferences={"top_k": 9}, presets=presets))
    assert found.presets == (Preset("New", {"top_k": 5}),)


def test_presets_are_replaced_all_or_not_at_all(tmp_path: Path) -> None:
    presets = Presets(tmp_path / "config")
    presets.save("Mine", ChatSettings(seed=3))
    with pytest.raises(PresetError, match="too many"):
        presets.replace_own((Preset(str(n), {}) for n in range(501)), None)
    assert list(presets.own) == ["Mine"]
    presets.replace_own(FILE.presets, FILE.new_chats)
    kept = Presets(tmp_path / "config")
    assert tuple(kept.own.values()) == FILE.presets
    assert kept.new_chats == FILE.new_chats


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write all files of a user, including secrets."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))
    monkeypatch.delenv("HF_HOME", raising=False)
    config = places().config
    save_token("hf_token_of_mine", {HOME_VARIABLE: str(tmp_path / "home")})
    KeyStore(config).save_key("http://machine", "sk-key-of-mine")
    Endpoints(config).add(Endpoint("http://machine-of-mine", "Machine", has_key=True))
    Presets(config).save("Mine", ChatSettings(seed=3))
    places().preferences.write_text('{"theme": "dark", "model": "/mine", "newer": 1}')
    return config


def test_the_command_line_exports_without_secrets_and_imports(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.json"
    assert main(["settings", "export", str(path)]) == 0
    assert NOT_EXPORTED in capsys.readouterr().out
    assert "of-mine" not in path.read_text()
    assert "/mine" not in path.read_text()
    assert read_settings_file(path).presets[0].name == "Mine"
    changed(path, preferences={"theme": "light"}, presets=[{"name": "New", "settings": {}}])
    before = {one: one.read_bytes() for one in home.iterdir()}
    assert main(["settings", "import", "--dry-run", str(path)]) == 0
    assert {one: one.read_bytes() for one in home.iterdir()} == before
    assert main(["settings", "import", str(path)]) == 0
    assert json.loads(places().preferences.read_text()) == {
        "theme": "light",
        "model": "/mine",
        "newer": 1,
    }
    assert sorted(Presets(home).own) == ["Mine", "New"]
    saved = read_settings_file(home / "settings-before-import.json")
    assert saved.preferences == {"theme": "dark"}


def test_the_command_line_changes_nothing_under_an_open_window(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.json"
    assert main(["settings", "export", str(path)]) == 0
    window = RunningFile(places().running, "window")
    assert main(["settings", "import", str(path)]) == 1
    assert "Medusa Chat is open." in capsys.readouterr().err
    window.close()
    assert main(["settings", "import", str(changed(path, version=7))]) == 1
    assert not (home / "settings-before-import.json").exists()


def test_unreadable_presets_are_not_exported_as_none(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "presets.json").write_text("{", encoding="utf-8")
    assert main(["settings", "export", str(tmp_path / "all.json")]) == 1
    assert "presets.damaged" in capsys.readouterr().err
    assert not (tmp_path / "all.json").exists()
