"""The backup beside a history: when it is made, what it gives back, and what it forgets."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import AnswerState
from medusa_core.system.storage.database_backup import backup_of
from tests.support.history.samples import Clock, answer, done, filled, prompt, steps, tell

PAGE = 4096
HOUR_S = 3600.0


def titles_in(file: Path) -> list[str]:
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return [title for (title,) in db.execute("SELECT title FROM conversations ORDER BY number")]


def make_older(file: Path, age_s: float = 2 * HOUR_S) -> None:
    """Set a file's time back."""
    made_s = file.stat().st_mtime - age_s
    os.utime(file, (made_s, made_s))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed history with a backup of two conversations."""
    path = tmp_path / "history.db"
    filled(path, Clock()).close()
    return path


def test_closing_writes_a_backup_and_no_other_file(path: Path) -> None:
    assert titles_in(backup_of(path)) == ["About tea", "Ships"]
    names = {file.name for file in path.parent.iterdir()}
    assert names <= {"history.db", "history.db.backup", "history.db.lock"}
    if sys.platform != "win32":
        assert backup_of(path).stat().st_mode & 0o077 == 0


def test_closing_renews_the_backup_if_something_was_written(path: Path) -> None:
    with closing(History(path, Clock())) as history:
        history.begin("later", "Later")
    assert titles_in(backup_of(path)) == ["About tea", "Ships", "Later"]
    make_older(path, 3 * HOUR_S)
    make_older(backup_of(path))
    before = backup_of(path).stat().st_mtime_ns
    with closing(History(path, Clock())) as history:
        assert len(history.conversations()) == 3
    assert backup_of(path).stat().st_mtime_ns == before, "nothing was written"


def test_closing_keeps_the_history_older_than_its_backup(path: Path) -> None:
    assert path.stat().st_mtime <= backup_of(path).stat().st_mtime


def test_a_program_that_is_always_killed_gets_its_backup_at_the_next_start(path: Path) -> None:
    make_older(backup_of(path))
    code = (
        "import os, sys; from pathlib import Path; from medusa_core.chats.history.history import"
        " History; h = History(Path(sys.argv[1])); h.begin('k', 'Killed'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    make_older(backup_of(path))
    history = History(path, Clock())
    assert titles_in(backup_of(path)) == ["About tea", "Ships", "Killed"]
    history.close()


def test_a_second_program_makes_no_backup(path: Path) -> None:
    with closing(History(path, Clock())):
        with closing(History(path, Clock())) as second:
            second.begin("other", "Of the second")
        assert titles_in(backup_of(path)) == ["About tea", "Ships"]
    assert titles_in(backup_of(path)) == ["About tea", "Ships", "Of the second"]


def lose(path: Path, *words: bytes) -> None:
    """Overwrite all pages with one of these words."""
    raw = bytearray(path.read_bytes())
    for begin in range(0, len(raw), PAGE):
        if any(word in raw[begin : begin + PAGE] for word in words):
            raw[begin : begin + PAGE] = b"\xff" * PAGE
    path.write_bytes(raw)


def test_salvage_restores_lost_rows_and_keeps_newer_ones(path: Path) -> None:
    shutil.copyfile(backup_of(path), path.with_name("older"))
    with closing(History(path, Clock())) as history:
        history.rename("tea", "A newer title")
        parent = "tea-5"
        for number in range(20):  # more than a page of messages between the old and the new
            _, parent = tell(history, "tea", f"Question {number}", "word " * 200, parent)
        history.begin("new", "New")
        tell(history, "new", "Is this newer?", "It is whole on the disk. " * 300)
    path.with_name("older").replace(backup_of(path))
    lose(path, b"lighthouse", b"steep")
    with closing(History(path, Clock())) as history:
        assert "came from its last backup" in history.notice
        assert history.messages("ships")[1].text == "The lighthouse keeper's boat."
        assert history.messages("tea")[0].text == "How long does green tea steep?"
        assert history.messages("new")[1].text == "It is whole on the disk. " * 300
        assert history.problems() == ()
        assert {hit.message_id for hit in history.search("lighthouse")} == {"ships-1"}


def test_older_text_never_replaces_newer(path: Path) -> None:
    with closing(History(path, Clock())) as history:
        history.begin("open", "Open")
        history.add_prompt(prompt("open", "open-0", "Say it"))
        history.begin_answer(answer("open", "open-1", "open-0"))
        so_far, further = 3, tuple(steps("So far and further"))
        history.append_steps("open-1", further[:so_far])
        history._database.back_up()
        shutil.copyfile(backup_of(path), path.with_name("older"))
        history.append_steps("open-1", further[so_far:])
        history.rename("tea", "A newer title")
    path.with_name("older").replace(backup_of(path))
    lose(path, b"messages_by_parent")  # the first page, nothing else
    with closing(History(path, Clock())) as history:
        assert "was damaged" in history.notice
        assert history.conversation("tea").title == "A newer title"
        assert history.messages("open")[1].text == "So far and further"


def test_a_text_changed_on_the_disk_is_restored_from_the_backup(path: Path) -> None:
    raw = path.read_bytes()
    path.write_bytes(raw.replace(b"keeper's boat", b"keeper's coat"))
    lose(path, b"messages_by_parent")
    with closing(History(path, Clock())) as history:
        assert history.messages("ships")[1].text == "The lighthouse keeper's boat."
        assert history.search("coat") == ()


def test_an_answer_incomplete_in_the_backup_gets_the_text_of_its_steps(path: Path) -> None:
    text = "All of it was written later. " * 300
    with closing(History(path, Clock())) as history:
        history.begin("open", "Open")
        history.add_prompt(prompt("open", "open-0", "Say it"))
        history.begin_answer(answer("open", "open-1", "open-0"))
        history._database.back_up()
        shutil.copyfile(backup_of(path), path.with_name("older"))
        history.append_steps("open-1", tuple(steps(text)))
        history.finish_answer("open-1", text, done(text), AnswerState.DONE)
    path.with_name("older").replace(backup_of(path))
    lose(path, b"open-1")
    with closing(History(path, Clock())) as history:
        assert history.messages("open")[1].text == text


def test_reused_row_numbers_restore_nothing_foreign(path: Path) -> None:
    older = path.with_name("older")
    with closing(History(path, Clock())) as history:
        history.begin("gone", "Gone")
        tell(history, "gone", "Gone with the trash", "Gone, too")
        history._database.back_up()
        shutil.copyfile(backup_of(path), older)
        history.trash(["gone"])
        history.empty_trash()
        history.begin("next", "Next")
        tell(history, "next", "Of another conversation", "With the numbers of the one before")
    older.replace(backup_of(path))  # as if it couldn't have been removed
    lose(path, b"With the numbers of")
    with closing(History(path, Clock())) as history:
        texts = [message.text for message in history.messages("next")]
        assert "Gone, too" not in texts
        assert "Gone with the trash" not in texts


@pytest.mark.parametrize("page", [0, 3])
def test_a_damaged_backup_is_ignored(path: Path, page: int) -> None:
    lose(path, b"lighthouse")
    raw = bytearray(backup_of(path).read_bytes())
    raw[page * PAGE : (page + 1) * PAGE] = b"\xff" * PAGE
    backup_of(path).write_bytes(raw)
    with closing(History(path, Clock())) as history:
        assert "was damaged" in history.notice
        assert "backup" not in history.notice


def test_a_damaged_history_never_becomes_the_backup(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = backup_of(path).read_bytes()
    lose(path, b"lighthouse")
    with monkeypatch.context() as patch:
        patch.setattr("medusa_core.system.storage.database._SMALL_BYTES", 0)
        with closing(History(path, Clock())) as history:
            assert history.notice == "", "large files aren't looked through"
            history.begin("new", "New")
    assert backup_of(path).read_bytes() == before
    with closing(History(path, Clock())) as history:
        assert "was damaged" in history.notice
        assert history.messages("ships")[1].text == "The lighthouse keeper's boat."
        assert history.conversation("new").title == "New"


def test_an_emptied_trash_rewrites_the_backup(path: Path) -> None:
    history = History(path, Clock())
    assert b"lighthouse" in backup_of(path).read_bytes()
    history.trash(["ships"])
    history.empty_trash()
    assert titles_in(backup_of(path)) == ["About tea"]
    files = [file.read_bytes() for file in path.parent.iterdir()]
    assert not any(b"lighthouse" in raw for raw in files)
    history.close()


def test_a_backup_without_its_history_is_kept_aside(path: Path) -> None:
    path.unlink()
    History(path, Clock()).close()
    assert titles_in(path.with_name("history.db.damaged-1.backup")) == ["About tea", "Ships"]
    assert titles_in(backup_of(path)) == []


NO_ROOM_FOR_IT = """
import resource, sys
from contextlib import closing
from pathlib import Path
from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import AnswerState
from tests.support.history.samples import Clock, tell
path = Path(sys.argv[1])
with closing(History(path, Clock())) as history:
    most = path.stat().st_size - 4096
    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    tell(history, "tea", "Is there room?", "For this there is.", "tea-5")
print("closed", flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_a_disk_without_room_for_a_backup_blocks_nothing(path: Path) -> None:
    make_older(backup_of(path))
    command = [sys.executable, "-c", NO_ROOM_FOR_IT, str(path)]
    root = Path(__file__).resolve().parents[4]
    reported = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert reported.stdout == "closed\n", reported.stderr
    assert titles_in(backup_of(path)) == ["About tea", "Ships"]
    assert not list(path.parent.glob("*.backup-part-*"))
    with closing(History(path, Clock())) as history:
        assert history.notice == ""
        assert history.messages("tea")[-1].text == "For this there is."


def test_an_unwritable_backup_blocks_nothing(path: Path) -> None:
    backup_of(path).unlink()
    backup_of(path).mkdir()
    make_older(backup_of(path))
    with closing(History(path, Clock())) as history:
        tell(history, "tea", "And now?", "It goes on.", "tea-5")
    with closing(History(path, Clock())) as history:
        assert history.notice == ""
        assert history.messages("tea")[-1].text == "It goes on."


NO_ROOM_TO_SALVAGE = """
import resource, sys
from pathlib import Path
from medusa_core.chats.history.history import open_history
most = Path(sys.argv[1]).stat().st_size // 2
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
history = open_history(Path(sys.argv[1]))
print(history.is_saved, history.notice)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such limit")
def test_a_full_disk_isnt_mistaken_for_damage(path: Path) -> None:
    with closing(History(path, Clock())) as history:
        tell(history, "tea", "And now?", "It goes on. " * 300, "tea-5")
    backup_of(path).unlink()
    lose(path, b"messages_by_parent")
    damaged = path.read_bytes()
    command = [sys.executable, "-c", NO_ROOM_TO_SALVAGE, str(path)]
    reported = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert reported.startswith("False "), "today is kept in memory"
    assert "won't be remembered" in reported
    assert path.read_bytes() == damaged
    with closing(History(path, Clock())) as history:
        assert history.messages("tea")[-1].text == "It goes on. " * 300
        assert history.problems() == ()
