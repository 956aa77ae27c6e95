"""Where this user's files lie: in the system's folders, or all under `MEDUSA_HOME`."""

import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from app.__main__ import main as open_window
from app.settings.preferences import Preferences, load_preferences, save_preferences
from app.startup import portable
from medusa_core.__main__ import main
from medusa_core.errors import StorageError
from medusa_core.hub.library.find import folder_list
from medusa_core.hub.library.library_import import FolderList
from medusa_core.hub.settings import save_token, settings_from
from medusa_core.runtime.cluster.ray_setup import token_file
from medusa_core.system.key_store import KeyStore
from medusa_core.system.resources import calibrations_dir, quantized_models_dir
from medusa_core.system.user_folders import (
    HOME_VARIABLE,
    places,
    portable_home,
    prepare_home,
    with_home,
    without_home,
)

ROOT = Path(__file__).resolve().parents[3]
# What asks the system where a user's files lie, and who may: for the folders themselves, for those
# of other programs, and to choose a file.
ASKS = re.compile(
    r"import platformdirs|platformdirs\.|QStandardPaths|QSettings|XDG_[A-Z]+_HOME|XDG_CACHE|APPDATA"
    r"|Path\.home\(|[\"/]~?/?\.cache\b"
)
MAY_ASK = {
    "medusa_core/system/user_folders.py": "the one place",
    "medusa_core/hub/settings.py": "the cache that programs share, unless the program is portable",
    "medusa_core/hub/library/library.py": "looks for models of other programs",
    "medusa_core/hub/library/other_programs.py": "where other programs keep models",
    "medusa_core/doctor/report.py": "takes home folders out of a report",
    "medusa_core/tools/mcp/stdio.py": "names variables that a tool server gets",
    "app/tools/import_menu.py": "where other programs list their tool servers",
    "app/widgets/file_dialogs.py": "where the user's own documents are",
}
WINDOW = """
import sys
from app.window.application import Options, run
async def look(application):
    application.window.settings.set(theme="dark")
    application.window.close()
    application.close()
    return 0
sys.exit(run(Options(platform="offscreen"), look))
"""


def folders_in_use() -> dict[str, Path]:
    """Return every folder and file with the user's data."""
    where = places()
    hub = settings_from(os.environ)
    return {
        **{name: getattr(where, name) for name in ("config", "data", "state", "log")},
        **{name: getattr(where, name) for name in ("history", "layers", "running")},
        "learned": where.learned,
        "calibrations": calibrations_dir(),
        "quantized": quantized_models_dir(),
        "models": hub.cache_dir,
        "cluster's token": token_file(),
    }


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a portable program, with a space in its name; not made yet."""
    for name in ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("RAY_AUTH_TOKEN_PATH", raising=False)
    folder = tmp_path / "on a stick" / "Médusa"
    monkeypatch.setenv(HOME_VARIABLE, str(folder))
    return folder


def test_all_files_of_a_portable_program_are_in_its_folder(home: Path) -> None:
    prepare_home()
    assert home.is_dir()
    found = folders_in_use()
    assert {name for name, path in found.items() if not path.is_relative_to(home)} == set()
    assert len(set(found.values())) == len(found)


def test_without_medusa_home_the_systems_folders_are_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for unset in ("", " "):
        monkeypatch.setenv(HOME_VARIABLE, unset)
        prepare_home()
        assert portable_home() is None
        assert len({path.parent for path in (places().config, places().state)}) == 2


def test_a_data_dir_has_the_same_layout_and_takes_precedence(home: Path, tmp_path: Path) -> None:
    assert places(home) == places()
    assert places(tmp_path / "other").config == tmp_path / "other" / "config"


def test_a_relative_folder_is_the_same_for_processes_started_elsewhere(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(HOME_VARIABLE, "my files")
    prepare_home()
    assert os.environ[HOME_VARIABLE] == str(tmp_path / "my files")
    monkeypatch.chdir(ROOT)
    assert places().data == tmp_path / "my files" / "data"


def test_a_tilde_is_the_users_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somebody")
    monkeypatch.setenv("USERPROFILE", "/somebody")
    monkeypatch.setenv(HOME_VARIABLE, "~/medusa")
    assert portable_home() == Path("/somebody/medusa")
    monkeypatch.setenv(HOME_VARIABLE, "~nobody-of-this-name/x")
    assert portable_home() == Path("~nobody-of-this-name/x").absolute()


def test_a_folder_that_cannot_be_written_is_named_with_its_remedy(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "file" / "below"))
    with pytest.raises(StorageError, match=r"MEDUSA_HOME is .*below, which can't be written"):
        prepare_home()
    assert main(["history", "check"]) == 1
    said = capsys.readouterr().err
    assert "can't be written: Not a directory." in said
    assert "unset MEDUSA_HOME" in said
    assert main(["ps"]) == 1, "every command says it"


def test_the_hubs_own_variables_take_precedence(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert settings_from(os.environ).cache_dir == home / "huggingface" / "hub"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert settings_from(os.environ).cache_dir.is_relative_to(home)
    monkeypatch.setenv("HF_HOME", "/shared")
    assert settings_from(os.environ).cache_dir == Path("/shared/hub")


def test_tokens_and_keys_stay_in_the_portable_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert save_token("hf_x", os.environ).is_relative_to(home)

    def never() -> None:
        raise AssertionError("this computer's keyring was asked")

    monkeypatch.setattr("medusa_core.system.key_store._system_keyring", never)
    store = KeyStore(places().config)
    assert not store.save_key("http://x", "secret"), "a file has it"
    assert KeyStore(places().config).key_of("http://x") == "secret"
    assert {path.name for path in home.rglob("*") if path.is_file()} == {"token", "keys.json"}


def test_paths_in_the_portable_folder_are_found_after_it_moved(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = home / "huggingface" / "hub" / "tiny"
    from tests.support.models.tiny import write_tiny  # imports torch

    write_tiny(model)
    chosen = replace(Preferences(), models_dir=str(home / "m"), draft_models={str(model): "/x"})
    save_preferences(chosen, places().config)
    FolderList(places().data / "folders.json").add(model)
    kept = (places().config / "preferences.json").read_text()
    assert "on a stick" not in kept
    assert '"models_dir": "${MEDUSA_HOME}/m"' in kept
    moved = home.rename(tmp_path / "elsewhere")
    monkeypatch.setenv(HOME_VARIABLE, str(moved))
    assert folder_list().read() == (moved / "huggingface" / "hub" / "tiny",)
    found = load_preferences(places().config)
    assert found.models_dir == str(moved / "m")
    assert found.draft_models == {str(moved / "huggingface" / "hub" / "tiny"): "/x"}
    monkeypatch.delenv(HOME_VARIABLE)
    beside = ["/on a stick", f"{home}er/x", 3, None, {"a": str(home)}]
    assert with_home(without_home(beside)) == beside
    monkeypatch.setenv(HOME_VARIABLE, str(home))
    assert without_home(beside) == [*beside[:4], {"a": "${MEDUSA_HOME}/."}]
    assert with_home(without_home(beside)) == beside


@pytest.mark.parametrize("package", ["app", "medusa_core"])
def test_no_other_module_queries_the_systems_folders(package: str) -> None:
    asking = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / package).rglob("*.py")
        if ASKS.search(path.read_text(encoding="utf-8"))
    }
    assert asking <= MAY_ASK.keys()
    assert {name for name in MAY_ASK if name.startswith(package)} <= asking, "a rule of nothing"


def test_a_portable_window_writes_nothing_outside(home: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "user"
    elsewhere.mkdir()
    names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")
    ran = subprocess.run(
        [sys.executable, "-c", WINDOW],
        cwd=ROOT,
        env=os.environ | dict.fromkeys(names, str(elsewhere)),
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert list(elsewhere.rglob("*")) == []
    assert {"config/preferences.json", "log/medusa-chat.log", "data/history.db"} <= {
        path.relative_to(home).as_posix() for path in home.rglob("*")
    }


def test_a_window_reports_a_read_only_folder(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home.parent.mkdir()
    home.write_text("")
    shown: list[str] = []
    monkeypatch.setattr(portable, "show_problem", lambda problem, platform: shown.append(problem))
    monkeypatch.setattr(sys, "argv", ["medusa-chat", "--platform", "offscreen"])
    assert open_window() == 2
    assert f"MEDUSA_HOME is {home}, which can't be written" in shown[0]
    assert capsys.readouterr().err == f"{shown[0]}\n"
