"""Several programs use one history at once: each finds it whole, and none loses anything."""

import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import deque
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from medusa_core.chats.history.exchange.export import FileKind, export
from medusa_core.chats.history.exchange.reading import ConversationFile
from medusa_core.chats.history.history import History, open_history
from medusa_core.chats.history.records import AnswerState
from medusa_core.chats.history.schema import MIGRATIONS
from medusa_core.errors import StorageError
from medusa_core.system.storage.database import open_database
from medusa_core.system.storage.database_backup import backup_of
from medusa_core.system.storage.database_copy import marker_of
from tests.support.history.samples import Clock, answer, done, filled, prompt, steps, tell
from tests.support.history.talkers import ROOT, check_facts, facts_of, talking, wait_for


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed history of two conversations."""
    path = tmp_path / "history.db"
    filled(path, Clock()).close()
    return path


def check_whole(path: Path) -> None:
    """Check that SQLite finds no fault, and that nothing was repaired."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
    assert not list(path.parent.glob("*damaged*"))


def kill_one_of_two(path: Path, num_kills: int, seed: int) -> None:
    """Kill one of two processes repeatedly; the other and its replacement continue."""
    folder, chance = path.parent, random.Random(seed)
    with ExitStack() as processes:
        others = [f"p{number}" for number in range(num_kills)]
        processes.enter_context(talking(folder, "stays"))
        for name in others:
            one = processes.enter_context(talking(folder, name))
            wait_for(folder, name, "finished")
            time.sleep(chance.random() * 0.1)  # the moment is what is tested
            one.send_signal(signal.SIGKILL)
            one.wait()
            wait_for(folder, "stays", "finished", 2)
        with closing(History(path)) as history:  # beside the one that goes on
            assert history.notice == ""
            for name in others:
                check_facts(history, facts_of(folder, name))
    facts = [facts_of(folder, name) for name in (*others, "stays")]
    with closing(History(path)) as history:
        assert history.notice == ""
        for each in facts:
            check_facts(history, each)
        messages = history.messages("tea")
        assert history.conversation("tea").num_messages == len(messages)
        answers = [message.answer for message in messages if message.answer]
        assert AnswerState.STREAMING not in {one.state for one in answers}
    check_whole(path)
    check_whole(backup_of(path))


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_two_programs_write_one_conversation_and_a_kill_of_one_loses_nothing(path: Path) -> None:
    kill_one_of_two(path, 2, seed=1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_a_hundred_kills_beside_a_running_program_lose_nothing(path: Path) -> None:
    kill_one_of_two(path, 100, seed=2)


MANY = """
import sys
from contextlib import closing
from pathlib import Path
from medusa_core.chats.history.history import History
sys.stdin.readline()
with closing(History(Path(sys.argv[1]))) as history:
    assert not history.notice, history.notice
    history.begin(sys.argv[2], sys.argv[2])
"""


def test_programs_that_create_the_file_concurrently_create_one(tmp_path: Path) -> None:
    path, names = tmp_path / "history.db", [f"c{number}" for number in range(5)]
    children = [
        subprocess.Popen([sys.executable, "-c", MANY, str(path), name], stdin=subprocess.PIPE)
        for name in names
    ]
    for child in children:
        assert child.stdin is not None
        child.stdin.write(b"go\n")
        child.stdin.close()
    assert [child.wait() for child in children] == [0] * len(children)
    with closing(History(path)) as history:
        assert {info.id for info in history.conversations()} == set(names)
    check_whole(path)


def test_a_program_notices_writes_of_others_but_not_its_own(path: Path) -> None:
    with closing(History(path)) as first, closing(History(path)) as second:
        assert not first.changed_elsewhere()
        first.begin("mine", "Mine")
        first.conversations()
        assert not first.changed_elsewhere()
        second.begin("theirs", "Theirs")
        assert first.changed_elsewhere()
        assert not first.changed_elsewhere()
        assert second.changed_elsewhere()


def test_two_answers_to_one_message_are_branches(path: Path) -> None:
    with closing(History(path)) as first, closing(History(path)) as second:
        for number, history in enumerate((first, second)):
            history.add_prompt(prompt("tea", f"q{number}", f"Asks {number}", "tea-5"))
        for number, history in enumerate((first, second)):
            history.begin_answer(answer("tea", f"a{number}", f"q{number}"))
        for number, history in enumerate((second, first)):  # each ends the other's question last
            name = f"a{1 - number}"
            history.append_steps(name, tuple(steps("Both stay.")))
            history.finish_answer(name, "Both stay.", done("Both stay."), AnswerState.DONE)
        parents = {message.id: message.parent_id for message in first.messages("tea")}
        assert parents.items() >= {"q0": "tea-5", "q1": "tea-5", "a0": "q0", "a1": "q1"}.items()
        assert first.messages("tea") == second.messages("tea")


def test_a_partial_answer_of_another_program_can_be_read(path: Path) -> None:
    with closing(History(path)) as first, closing(History(path)) as second:
        first.begin_answer(answer("tea", "open", "tea-4"))
        first.append_steps("open", tuple(steps("So far")))
        assert second.messages("tea")[-1].text == "So far"


def test_an_answer_of_a_killed_program_is_ended_by_the_last_one_that_closes(path: Path) -> None:
    killed = (
        "import os, sys; from pathlib import Path; from medusa_core.chats.history.history import"
        " History; from tests.support.history.samples import answer, steps;"
        " h = History(Path(sys.argv[1]));"
        " h.begin_answer(answer('tea', 'open', 'tea-4'));"
        " h.append_steps('open', tuple(steps('So far'))); os._exit(9)"
    )
    with closing(History(path)) as history:
        subprocess.run([sys.executable, "-c", killed, str(path)], cwd=ROOT, check=False)
        message = history.messages("tea")[-1]
        assert message.answer is not None
        assert (message.text, message.answer.state) == ("So far", AnswerState.STREAMING)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT state FROM answers WHERE state = 'streaming'").fetchall() == []
        (text,) = db.execute("SELECT text FROM messages WHERE id = 'open'").fetchone()
        assert text == "So far"


def test_an_import_continues_while_others_open_and_stop_imports(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("medusa_core.chats.history.importing.PIECE_S", 0.0)  # message by message
    with closing(History(path)) as history:
        export(history, tmp_path / "all.json", FileKind.JSON)
    with closing(History(tmp_path / "new.db")) as first, closing(first.another()) as second:
        with ConversationFile(tmp_path / "all.json") as found:
            pieces = first.import_in_pieces(found)
            next(pieces)
            History(tmp_path / "new.db").close()
            with ConversationFile(tmp_path / "all.json") as same:
                stopped = second.import_in_pieces([{**one, "id": f"2-{one['id']}"} for one in same])
                next(stopped)
                stopped.close()
            deque(pieces, maxlen=0)
        assert {one.id for one in second.conversations()} == {"tea", "ships"}
        assert len(second.messages("tea")) == 6


def test_a_file_in_use_is_never_replaced(path: Path) -> None:
    with closing(History(path)) as first:
        marker_of(path).touch()  # it failed while it was used
        with pytest.raises(StorageError, match="another program is using it") as caught:
            History(path)
        assert "Close the other windows" in caught.value.hint
        with closing(open_history(path)) as reads:
            assert not reads.is_saved
            assert len(reads.messages("tea")) == 6
        tell(first, "tea", "Is it still the same file?", "It is.", "tea-5")
    with closing(History(path)) as history:
        assert "was damaged" in history.notice
        assert history.messages("tea")[-1].text == "It is."


def test_a_file_in_use_is_not_migrated(path: Path) -> None:
    more = (*MIGRATIONS, "CREATE TABLE more (a TEXT) STRICT;\n")
    with closing(History(path)) as first:
        with pytest.raises(StorageError, match="another program is using it"):
            open_database(path, more)
        first.begin("still", "Still there")
    with closing(open_database(path, more)) as database:
        assert database.rows("SELECT count(*) FROM more") == [(0,)]
    with pytest.raises(StorageError, match="newer version"):
        History(path)


def test_emptying_the_trash_leaves_no_byte_even_beside_another_program(path: Path) -> None:
    with closing(History(path)) as first, closing(History(path)) as second:
        second.messages("ships")
        first.trash(["ships"])
        first.empty_trash()
        files = path.parent.glob("history.db*")
        # By another process: one that closes a file loses SQLite's locks on it.
        count = "import pathlib, sys; print(sum(b'lighthouse' in pathlib.Path(f).read_bytes()"
        command = [sys.executable, "-c", f"{count} for f in sys.argv[1:]))", *map(str, files)]
        assert subprocess.check_output(command) == b"0\n"
        assert second.search("lighthouse") == ()
