"""`medusa update`, `repair`, `uninstall`: what is asked, refused and kept."""

import base64
import functools
import hashlib
import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from installer.bootstrap import first_start, repair, request, uninstall, update
from installer.bootstrap.current import Current, read_current, write_current
from installer.bootstrap.folders import ProgramData, program_data, user_folders
from installer.bootstrap.in_use import hold_in_use
from installer.bootstrap.installation import Wanted
from installer.bootstrap.program import Program
from installer.bootstrap.settings import Settings, read_settings
from installer.bootstrap.update_source import checked_version, find_update
from installer.errors import SetupError
from tests.support.installer.fakes import NO_CARD, installed, make_program, make_wheel

OURS = {"medusa_core/__init__.py": ""}


@pytest.fixture
def data() -> ProgramData:
    return program_data()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Wanted]:
    """What would be installed, instead of installing it."""
    found: list[Wanted] = []

    def note(data: ProgramData, wanted: Wanted, *_: object, **__: object) -> None:
        found.append(wanted)

    monkeypatch.setattr(first_start, "install_version", note)
    monkeypatch.setattr(request, "chosen_torch", lambda *_: NO_CARD)
    return found


def test_the_first_update_installs_with_the_model(
    data: ProgramData, program: Program, made: list[Wanted]
) -> None:
    assert update.run(data, program, ["--yes"]) == 0
    assert (made[0].version, made[0].with_model) == ("1.0", True)
    update.run(data, program, ["--yes", "--no-model"])
    assert not made[1].with_model


def test_an_installed_version_is_not_changed(
    data: ProgramData, program: Program, made: list[Wanted]
) -> None:
    installed(data, "1.0")
    assert update.run(data, program, []) == 0
    installed(data, "1.1")
    write_current(data, Current("1.1"))
    assert update.run(data, program, ["--yes"]) == 0
    assert not made


def test_without_a_terminal_to_ask_the_error_names_the_command(
    data: ProgramData, program: Program
) -> None:
    installed(data, "0.9")
    for work, words in ((update, "update"), (repair, "repair"), (uninstall, "uninstall")):
        with pytest.raises(SetupError) as caught:
            work.run(data, program, [])
        assert caught.value.mend == f"medusa {words} --yes"
        assert caught.value.exit_status == 2


def test_a_mirror_is_checked_before_it_is_saved(
    data: ProgramData, program: Program, made: list[Wanted], tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match="is no folder"):
        update.run(data, program, ["--yes", "--mirror", str(tmp_path / "none")])
    assert read_settings(data) == Settings()
    make_wheel(tmp_path / "wheels", "torch", "1.0", {})
    update.run(data, program, ["--yes", "--mirror", str(tmp_path / "wheels"), "--torch", "cpu"])
    assert read_settings(data) == Settings(str(tmp_path / "wheels"), "cpu")
    assert made[0].settings == read_settings(data)


def test_a_failed_update_says_what_still_runs(
    data: ProgramData, program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(data, "0.9")

    def fail(*_: object, **__: object) -> None:
        raise SetupError("The disk became full.", "Free some space.")

    monkeypatch.setattr(first_start, "install_version", fail)
    with pytest.raises(SetupError, match=r"version 0\.9 still runs") as caught:
        update.run(data, program, ["--yes"])
    assert "disk became full" in caught.value.message


def test_a_wheel_or_a_folder_is_installed_beside_the_other_versions(
    data: ProgramData, program: Program, made: list[Wanted], tmp_path: Path
) -> None:
    installed(data, "1.0")
    wheel = make_wheel(tmp_path / "new", "medusa-chat", "1.2", OURS)
    make_wheel(tmp_path / "new", "medusa-chat", "1.1", OURS)
    (tmp_path / "new" / "constraints.txt").write_text("torch==2.14.0\n", encoding="utf-8")
    for source in (wheel, wheel.parent):
        assert update.run(data, program, ["--yes", "--from", str(source)]) == 0
        assert made[-1].version == "1.2"
        assert "2.14.0" in made[-1].constraints.read_text(encoding="utf-8")
    assert made[-1].packages == wheel.parent


def test_inspecting_a_wheel_changes_nothing_installed(
    data: ProgramData, program: Program, tmp_path: Path
) -> None:
    kept = data.wheels / "1.2" / "constraints.txt"
    kept.parent.mkdir(parents=True)
    kept.write_text("torch==2.13.0\n", encoding="utf-8")
    packed = {**OURS, "medusa_core/_resources/constraints.txt": "torch==2.15.0\n"}
    find_update(data, program, str(make_wheel(tmp_path, "medusa-chat", "1.2", packed)), agrees=True)
    assert kept.read_text(encoding="utf-8") == "torch==2.13.0\n"


def test_versions_pinned_in_a_wheel_take_precedence(
    data: ProgramData, program: Program, tmp_path: Path
) -> None:
    packed = {**OURS, "medusa_core/_resources/constraints.txt": "torch==2.15.0\n"}
    wheel = make_wheel(tmp_path / "new", "medusa-chat", "1.2", packed)
    (wheel.parent / "constraints.txt").write_text("torch==2.14.0\n", encoding="utf-8")
    wanted = find_update(data, program, str(wheel), agrees=True)
    assert wanted.constraints.read_text(encoding="utf-8") == "torch==2.15.0\n"


def test_a_public_index_is_refused_since_anybody_could_register_the_name_there(
    data: ProgramData, program: Program
) -> None:
    for host in ("93.184.216.34/simple", "8.8.8.8", "no-such-host.invalid/simple"):
        with pytest.raises(SetupError, match="anybody could") as caught:
            find_update(data, program, f"https://{host}", agrees=True)
        assert "--from FILE" in caught.value.mend


@pytest.mark.parametrize("name", ["medusa_chat-1.2-py3-none-any.whl", "other-1.0-py3-none-any.whl"])
def test_a_foreign_wheel_is_refused(tmp_path: Path, name: str) -> None:
    other = make_wheel(tmp_path, "other", "1.0", {})
    for content in (other.read_bytes(), b"", b"PK\x05\x06" + bytes(18), other.read_bytes()[:90]):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SetupError):
            checked_version(tmp_path / name)


class _Index(http.server.SimpleHTTPRequestHandler):
    wanted: str | None = None

    def do_GET(self) -> None:
        if self.wanted is None or self.headers["Authorization"] == self.wanted:
            super().do_GET()
        else:
            self.send_error(401)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def index(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """The folder of a project on an index of this computer, and the index's address."""
    folder = tmp_path / "simple" / "medusa-chat"
    folder.mkdir(parents=True)
    handler = functools.partial(_Index, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield folder, f"http://127.0.0.1:{server.server_port}/simple"
        server.shutdown()


def publish(folder: Path, version: str, fragment: str = "") -> Path:
    wheel = make_wheel(folder, "medusa-chat", version, OURS)
    fragment = fragment or f"#sha256={hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    with (folder / "index.html").open("a", encoding="utf-8") as page:
        page.write(f'<a href="{wheel.name}{fragment}">{wheel.name}</a>\n')
        page.write('<a href="file:///etc/medusa_chat-9-py3-none-any.whl">x</a><a>y</a>\n')
    return wheel


def test_the_newest_wheel_of_a_private_index_is_downloaded(
    data: ProgramData, program: Program, index: tuple[Path, str]
) -> None:
    folder, address = index
    for version in ("1.9", "1.10", "1.2"):
        publish(folder, version)
    wanted = find_update(data, program, address, agrees=True)
    assert wanted.version == "1.10"
    with pytest.raises(SetupError, match="Nothing was installed"):
        find_update(data, program, address, agrees=False)


def test_credentials_in_an_address_are_sent_but_not_shown(
    data: ProgramData,
    program: Program,
    index: tuple[Path, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    publish(index[0], "1.9")
    secret = base64.b64encode(b"me:s3:cret").decode()
    monkeypatch.setattr(_Index, "wanted", f"Basic {secret}")
    own = index[1].replace("//", "//me:s3%3Acret@")
    assert find_update(data, program, own, agrees=True).version == "1.9"
    with pytest.raises(SetupError, match="401") as caught:
        find_update(data, program, own.replace("s3", "s4"), agrees=True)
    assert "cret" not in caught.value.message + capsys.readouterr().out


HASHES = ("sha256", "SHA256", "sha512", "md5", "sha3_256", "blake2b")


def test_a_wheel_is_accepted_only_with_its_published_hash(
    data: ProgramData, program: Program, index: tuple[Path, str]
) -> None:
    wheel = make_wheel(index[0], "medusa-chat", "1.9", OURS)
    page = index[0] / "index.html"
    for kind in HASHES:
        digest = hashlib.new(kind, wheel.read_bytes()).hexdigest()
        for promise in (digest, digest.upper()):
            page.unlink(missing_ok=True)
            publish(index[0], "1.9", f"#{kind}={promise}")
            assert find_update(data, program, index[1], agrees=True).version == "1.9", kind
        page.unlink()
        publish(index[0], "1.9", f"#{kind}={'0' * 64}")
        with pytest.raises(SetupError, match="other bytes"):
            find_update(data, program, index[1], agrees=True)
    for fragment in ("crc=0", "shake_128=00", "sha256%3D00", "egg=x&md5=00", "=", "?"):
        page.unlink()
        publish(index[0], "1.9", f"#{fragment}")
        with pytest.raises(SetupError, match="hash"):
            find_update(data, program, index[1], agrees=True)


def test_an_invalid_index_address_is_reported(data: ProgramData, program: Program) -> None:
    for address in ("http://[::1/", "https://["):
        with pytest.raises(SetupError, match="is no address"):
            find_update(data, program, address, agrees=True)


def test_an_invalid_link_hides_no_wheel(
    data: ProgramData, program: Program, index: tuple[Path, str]
) -> None:
    wheel = make_wheel(index[0], "medusa-chat", "1.9", OURS)
    for fragment in ("", "#"):
        page = f'<a href="http://[::1/">x</a><a href="{wheel.name}{fragment}">y</a>'
        (index[0] / "index.html").write_text(page, encoding="utf-8")
        assert find_update(data, program, index[1], agrees=True).version == "1.9"


def test_an_index_without_the_package_or_without_an_answer_is_reported(
    data: ProgramData, program: Program, index: tuple[Path, str]
) -> None:
    (index[0] / "index.html").write_text("<a href='other-1.whl'>", encoding="utf-8")
    with pytest.raises(SetupError, match="has no wheel"):
        find_update(data, program, index[1], agrees=True)
    with pytest.raises(SetupError, match="could not be read"):
        find_update(data, program, "http://127.0.0.1:9/simple", agrees=True)


def test_a_repair_uses_the_stored_wheel_of_the_installed_version(
    data: ProgramData, program: Program, made: list[Wanted], tmp_path: Path
) -> None:
    installed(data, "0.9")
    kept = make_wheel(data.wheels / "0.9", "medusa-chat", "0.9", OURS)
    (kept.parent / "constraints.txt").write_text("torch==2.12.0\n", encoding="utf-8")
    assert repair.run(data, program, ["--yes"]) == 0
    assert made[0].wheel == kept
    kept.unlink()
    repair.run(data, program, ["--yes"])
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
    assert uninstall.run(data, program, ["--yes"]) == 0
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
    uninstall.run(data, program, ["--yes", "--delete-data"])
    assert not any(folder.exists() for folder in (*folders, data.root))
    assert uninstall.run(data, program, []) == 0  # there is nothing


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
    uninstall.run(data, program, [])
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
        uninstall.run(data, program, options)
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
    assert uninstall.run(program_data(), program, ["--yes"]) == 0
    assert (user_folders().cache / "file").exists()
    assert token.exists()
    assert f"{token.parent}\n" in capsys.readouterr().out
    assert not program_data().versions.exists()
    uninstall.run(program_data(), program, ["--yes", "--delete-data"])
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
    assert uninstall.run(data, program, ["--yes", "--delete-data"]) == 0
    assert (disk / "chats" / "file").exists()  # who made the link decides
    assert f"is in {disk / 'chats'}" in capsys.readouterr().out
    assert not any((disk / "program").iterdir())


def test_installing_in_a_terminal_asks_about_program_and_model(
    data: ProgramData, program: Program, made: list[Wanted], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("installer.bootstrap.terminal", "installer.bootstrap.first_start"):
        monkeypatch.setattr(f"{name}.is_conversation", lambda: True)
    from installer.bootstrap.situation import look

    for answers, goes, model in (("n", False, False), ("y n", True, False), ("\n y", True, True)):
        left = iter(answers.split(" "))
        monkeypatch.setattr("builtins.input", lambda _, left=left: next(left))
        assert first_start.set_up(data, program, look(data, program), agrees=False) is goes
        assert not goes or made[-1].with_model is model
    assert read_current(data) == Current()


def test_a_package_without_its_wheel_is_reported(data: ProgramData, tmp_path: Path) -> None:
    program = make_program(tmp_path / "bare")
    program.wheel().unlink()
    with pytest.raises(SetupError, match="holds no wheel"):
        update.run(data, program, ["--yes"])


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
    assert uninstall.run(data, program, options) == 0
    assert [path for path in foreign if not path.exists()] == []
    assert not data.environment("1.0").root.exists()
    assert not data.environment("1.1").new.root.exists()
    assert f"Kept: {data.cache}" in capsys.readouterr().out


def test_a_linked_folder_is_emptied_if_the_user_says_so(
    data: ProgramData, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uninstall, "is_conversation", lambda: True)
    monkeypatch.setattr(uninstall, "ask", lambda question, *, default: True)
    installed(data, "1.0")
    (data.cache / "uv").mkdir(parents=True)
    data.root.rename(tmp_path / "disk")
    data.root.symlink_to(tmp_path / "disk")
    assert uninstall.run(data, program, []) == 0
    assert list((tmp_path / "disk").iterdir()) == []


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
    assert uninstall.run(data, program, ["--yes", "--delete-data"]) == 0
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
    assert uninstall.run(data, program, ["--yes"]) == 0
    assert foreign.exists()
    assert not data.root.exists()
