"""Files that are damaged, too new, locked, read-only or on a full disk."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from medusa_core.chats.history.folding import fold
from medusa_core.chats.history.history import (
    History,
    open_history,
)
from medusa_core.chats.history.mending import mend
from medusa_core.chats.history.schema import MIGRATIONS
from medusa_core.errors import StorageError
from medusa_core.system.storage.database import open_database
from medusa_core.system.storage.database_backup import backup_of
from tests.support.history.samples import Clock, filled, tell

PAGE = 4096
NUM_EXCHANGES = 7


def texts_of(path: Path) -> tuple[set[str], str]:
    """Return all stored texts, and the notice at opening."""
    history = History(path, Clock())
    try:
        infos = history.conversations() + history.conversations(in_trash=True)
        history.search("minutes")
        texts = {m.text for info in infos for m in history.messages(info.id)}
        return texts | {info.title for info in infos}, history.notice
    finally:
        history.close()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed file of several pages for each table."""
    path = tmp_path_factory.mktemp("sound") / "history.db"
    history = filled(path, Clock())
    parent = "tea-5"
    for number in range(NUM_EXCHANGES):
        question = f"Question {number}: " + f"word{number} " * 60
        _, parent = tell(history, "tea", question, f"Answer {number}. " + "no " * 400, parent)
    history.close()
    return path


def copied(sound: Path, tmp_path: Path) -> Path:
    path = tmp_path / "history.db"
    for old in tmp_path.iterdir():
        if old.is_dir():
            shutil.rmtree(old)
        else:
            old.unlink()
    shutil.copyfile(sound, path)
    return path


JUNK = (b"\xff", b"\0", b"garbage!")


def test_a_lost_page_loses_no_text(sound: Path, tmp_path: Path) -> None:
    whole, notice = texts_of(copied(sound, tmp_path))
    assert not notice
    raw = sound.read_bytes()
    losses, num_told = [], 0
    for number, begin in enumerate(range(0, len(raw), 2 * PAGE)):  # each second page
        path = copied(sound, tmp_path)
        junk = (JUNK[number % len(JUNK)] * PAGE)[:PAGE]
        harmed = raw[:begin] + junk + raw[begin + PAGE :]
        path.write_bytes(harmed)
        texts, notice = texts_of(path)
        if notice:
            num_told += 1
            assert (tmp_path / "history.db.damaged-1").read_bytes() == harmed
        losses.append(len({fold(text) for text in whole} - {fold(text) for text in texts}))
        assert texts_of(path)[1] == "", "it is well from then on"
    # A page of titles is lost with them; texts are found in steps and in the index.
    assert max(losses) <= 2, losses
    assert num_told >= len(losses) * 0.8


def test_an_empty_file_a_text_file_and_half_a_history_are_set_aside(
    sound: Path, tmp_path: Path
) -> None:
    raw = sound.read_bytes()
    for harmed in (b"", b"Dear diary\n" * 3, b"\0" * 100, raw[: PAGE // 2], raw[: len(raw) // 2]):
        path = copied(sound, tmp_path)
        path.write_bytes(harmed)
        _, notice = texts_of(path)
        assert "history.db was damaged" in notice
        assert (tmp_path / "history.db.damaged-1").read_bytes() == harmed


def test_a_truncated_file_keeps_its_intact_rows(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    raw = path.read_bytes()
    path.write_bytes(raw[: len(raw) * 9 // 10])
    texts, _ = texts_of(path)
    whole, _ = texts_of(copied(sound, tmp_path))
    kept = {fold(text) for text in texts} & {fold(text) for text in whole}
    assert len(kept) > len(whole) / 2


def test_the_last_backup_is_used_if_nothing_can_be_read(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    shutil.copyfile(sound, tmp_path / "history.db.backup-1")
    path.write_bytes(b"")
    texts, notice = texts_of(path)
    assert "Four minutes." in texts
    assert "backup" in notice


def test_damage_found_in_use_is_reported_and_repaired_at_the_next_start(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medusa_core.system.storage.database._SMALL_BYTES", 0)
    path = copied(sound, tmp_path)
    shutil.copyfile(sound, backup_of(path))  # so that the start doesn't read all of it to make one
    raw = bytearray(path.read_bytes())
    for begin in range(PAGE, len(raw), PAGE):
        if raw[begin : begin + PAGE].count(b"tea-") > 4:
            raw[begin] = 0x77  # no kind of page
    path.write_bytes(raw)
    history = History(path, Clock())
    with pytest.raises(StorageError, match="damaged"):
        history.messages("tea")
    history.close()
    _, notice = texts_of(path)
    assert "was damaged" in notice


@pytest.mark.parametrize("num_renamed", [1, 2])
def test_a_salvage_that_was_killed_is_finished(
    sound: Path, tmp_path: Path, num_renamed: int
) -> None:
    path = copied(sound, tmp_path)
    shutil.copyfile(sound, tmp_path / "history.db.salvaged")
    (tmp_path / "history.db-wal").write_bytes(b"log of the damaged file")
    path.write_bytes(b"damaged")
    (tmp_path / "history.db-wal").rename(tmp_path / "history.db.damaged-1-wal")
    if num_renamed == 2:
        path.rename(tmp_path / "history.db.damaged-1")
    assert "Four minutes." in texts_of(path)[0]
    assert not (tmp_path / "history.db-wal").exists()


def test_a_write_ahead_log_without_its_file_is_not_applied_to_another(
    sound: Path, tmp_path: Path
) -> None:
    path = copied(sound, tmp_path)
    history = History(path, Clock())
    history.begin("x", "In the log")
    shutil.copyfile(f"{path}-wal", tmp_path / "log")
    history.close()
    path.unlink()
    (tmp_path / "log").rename(f"{path}-wal")
    assert texts_of(path)[0] == set()
    assert (tmp_path / "history.db.damaged-1-wal").exists()


def test_a_file_of_a_newer_version_is_left_alone(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 99")
    newer = path.read_bytes()
    with pytest.raises(StorageError, match="newer version") as caught:
        History(path)
    assert "Update" in caught.value.hint
    assert {file.name for file in tmp_path.iterdir()} == {"history.db", "history.db.lock"}
    assert path.read_bytes() == newer


LOCK = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA locking_mode = EXCLUSIVE")
db.execute("BEGIN EXCLUSIVE")
print("locked", flush=True)
sys.stdin.read()
"""


def test_a_file_locked_by_another_program_raises_its_own_error(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    command = [sys.executable, "-c", LOCK, str(path)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(StorageError, match="Another program"):
            open_database(path, MIGRATIONS, busy_s=0.05)
        other.communicate("")
    assert texts_of(path)[1] == ""


def test_a_full_disk_is_reported_and_nothing_is_half_written(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    history = History(path, Clock())
    (pages,) = history._database.row("PRAGMA page_count")  # type: ignore[misc]
    history._database.rows(f"PRAGMA max_page_count = {pages}")
    history.begin("full", "Full")
    with pytest.raises(StorageError, match="disk is full") as caught:
        tell(history, "full", "long " * 40_000, "reply")
    assert "Make room" in caught.value.hint
    assert history.messages("full") == ()
    history._database.rows("PRAGMA max_page_count = 1000000")
    tell(history, "full", "long", "reply")
    history.close()
    assert texts_of(path)[1] == ""


READ_ONLY = """
import os, sys
from pathlib import Path
from medusa_core.errors import StorageError
from medusa_core.chats.history.folding import fold
from medusa_core.chats.history.history import History, open_history
if os.geteuid() == 0:
    os.setuid(65534)  # permissions don't bind the superuser
try:
    History(Path(sys.argv[1]))
except StorageError as error:
    print(type(error).__name__, error)
"""


NO_ROOM = """
import resource, sys
from pathlib import Path
from medusa_core.chats.history.history import open_history
resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
history = open_history(Path(sys.argv[1]))
print(history.is_saved, len(history.messages("tea")), history.notice)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_a_history_can_be_read_if_not_one_byte_can_be_written(sound: Path, tmp_path: Path) -> None:
    path = copied(sound, tmp_path)
    command = [sys.executable, "-c", NO_ROOM, str(path)]
    reported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert reported.startswith(f"False {6 + 2 * NUM_EXCHANGES} ")
    assert "won't be remembered" in reported
    assert path.read_bytes() == sound.read_bytes()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Folder that other users can enter, unlike pytest's."""
    folder = Path(tempfile.mkdtemp(prefix="medusa-read-only-"))
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such permissions there")
def test_a_read_only_folder_is_reported_with_a_remedy(sound: Path, open_folder: Path) -> None:
    path = open_folder / "history.db"
    shutil.copyfile(sound, path)
    path.chmod(0o444)
    open_folder.chmod(0o555)
    for place in (path, open_folder / "new" / "history.db"):
        command = [sys.executable, "-c", READ_ONLY, str(place)]
        reported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert reported.startswith("StorageError ")
        assert "may write" in reported
    assert os.listdir(open_folder) == ["history.db"]  # noqa: PTH208


def test_a_history_can_be_read_on_a_read_only_disk(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = copied(sound, tmp_path)

    def refuse(*_: object, **__: object) -> None:
        raise StorageError("The folder can't be written.", "See that you may write.")

    monkeypatch.setattr("medusa_core.chats.history.history.open_database", refuse)
    history = open_history(path, Clock())
    assert "won't be remembered" in history.notice
    assert not history.is_saved
    _, reported = tell(history, "tea", "And now?", "Only for today.", "tea-5")
    assert history.messages("tea")[-1].id == reported
    history.close()


def test_each_migration_is_atomic_and_preceded_by_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    dump = Path(__file__).with_name("version_1.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(dump)
    second = "ALTER TABLE folders ADD COLUMN colour TEXT NOT NULL DEFAULT 'blue';\n"

    def broken(db: sqlite3.Connection) -> None:
        db.execute("UPDATE conversations SET title = 'gone'")
        raise sqlite3.OperationalError("the third migration fails")

    with pytest.raises(StorageError, match="third migration"):
        open_database(path, (*MIGRATIONS, second, broken))
    with closing(sqlite3.connect(tmp_path / "history.db.backup-1")) as backup:
        assert backup.execute("SELECT title FROM conversations").fetchall()[0] == ("About tea",)
    database = open_database(path, (*MIGRATIONS, second))
    assert database.rows("SELECT name, colour FROM folders") == [("Kitchen", "blue")]
    assert database.rows("SELECT title FROM conversations") == [("About tea",), ("Ships",)]
    database.close()


# Migrates, and is killed when all statements of the migration from a version have run.
_KILLED = """
import os, signal, sys
from pathlib import Path
from medusa_core.chats.history.schema import MIGRATIONS
from medusa_core.system.storage import database_schema
from medusa_core.system.storage.database import open_database

run_migration = database_schema.run_migration

def watch(statement):
    if statement.startswith("PRAGMA user_version ="):
        os.kill(os.getpid(), signal.SIGKILL)

def watched(db, migration, version):
    if version == int(sys.argv[2]) + 1:
        db.set_trace_callback(watch)
    run_migration(db, migration, version)

database_schema.run_migration = watched
open_database(Path(sys.argv[1]), MIGRATIONS)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_a_killed_migration_loses_nothing(tmp_path: Path, version: int) -> None:
    path = tmp_path / "history.db"
    dump = Path(__file__).with_name("version_1.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(dump)
    open_database(path, MIGRATIONS[:version]).close()
    with closing(sqlite3.connect(path)) as db:
        texts = db.execute("SELECT id, text FROM messages ORDER BY number").fetchall()
    command = [sys.executable, "-c", _KILLED, str(path), str(version)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    with closing(sqlite3.connect(tmp_path / f"history.db.backup-{version}")) as backup:
        assert backup.execute("SELECT id, text FROM messages ORDER BY number").fetchall() == texts
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (version,)
    with closing(History(path, Clock())) as history:
        found = [m for info in history.conversations() for m in history.messages(info.id)]
        assert sorted((m.id, m.text) for m in found) == sorted(texts)
        tell(history, "tea", "And now?", "More.", "tea-5")
        assert history.problems() == ()


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are of another kind there")
def test_a_history_and_its_copies_are_readable_by_their_user_only(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    history = filled(path, Clock())
    names = {"history.db", "history.db-wal", "history.db-shm"}
    assert names < {file.name for file in tmp_path.iterdir()}
    modes = {file.name: file.stat().st_mode & 0o077 for file in tmp_path.iterdir()}
    assert not any(modes[name] for name in names)
    history.close()
    open_database(path, (*MIGRATIONS, "CREATE TABLE more (a TEXT) STRICT;\n")).close()
    backup = tmp_path / f"history.db.backup-{len(MIGRATIONS)}"
    assert backup.stat().st_mode & 0o077 == 0
    path.write_bytes(b"")
    open_database(path, MIGRATIONS).close()
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("page", [0, 3])
def test_a_damaged_file_of_an_older_version_is_salvaged_and_migrated(
    sound: Path, tmp_path: Path, page: int
) -> None:
    path = copied(sound, tmp_path)
    with path.open("r+b") as file:
        file.seek(page * PAGE)
        file.write(b"\xff" * PAGE)
    second = "ALTER TABLE messages ADD COLUMN stars INTEGER NOT NULL DEFAULT 5;\n"
    database = open_database(path, (*MIGRATIONS, second), mend=mend)
    assert "damaged" in database.notice
    found = database.rows("SELECT stars, count(*) FROM messages GROUP BY stars")
    assert found == [(5, 8 + 2 * NUM_EXCHANGES)]
    database.close()


def test_a_file_of_the_frozen_version_1_is_read_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    dump = Path(__file__).with_name("version_1.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(dump)
    history = History(path, Clock())
    assert history.notice == ""
    assert [info.id for info in history.conversations()] == ["ships", "tea"]
    messages = history.messages("tea")
    assert [m.parent_id for m in messages] == [None, "tea-0", "tea-1", "tea-2", "tea-1", "tea-4"]
    answer = messages[1].answer
    assert answer is not None
    assert answer.done is not None
    assert answer.done.text == messages[1].text == "Two minutes, not more."
    assert answer.done.plain_step_s == 0.004
    assert b"".join(p for step in answer.steps for p in step.pieces).decode() == messages[1].text
    assert {hit.message_id for hit in history.search("minutes")} == {"tea-1", "tea-3"}
    history.close()


def test_rows_with_numbers_far_apart_are_salvaged(tmp_path: Path) -> None:
    path, sparse = (
        tmp_path / "sparse.db",
        ("CREATE TABLE t (n INTEGER PRIMARY KEY, b BLOB) STRICT;",),
    )
    numbers = [number << 50 for number in range(1, 200)]
    with closing(open_database(path, sparse)) as database:
        for number in numbers:
            database.write("INSERT INTO t VALUES (?, ?)", number, bytes(900))
    with path.open("r+b") as file:
        file.seek(20 * 4096)
        file.write(b"\x07" * 4096)
    with closing(open_database(path, sparse)) as database:
        assert "was damaged" in database.notice
        kept = [number for (number,) in database.rows("SELECT n FROM t")]
    assert set(kept) <= set(numbers)
    assert len(kept) >= len(numbers) - 4  # a page of them is lost
