"""A process that writes the history is killed: what it had said was kept is there."""

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from medusa_core.chats.history.exchange.export import (
    FileKind,
    export,
)
from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import AnswerState
from medusa_core.chats.rounds import Approval, CallState
from medusa_core.system.storage.database import open_database
from medusa_core.system.storage.database_backup import backup_of
from tests.support.history.samples import Clock, filled, tell
from tests.support.history.writer import SECOND, SENTENCE

ROOT = Path(__file__).resolve().parents[3]
MODES = ("write", "call", "take", "migrate", "gently", "salvage", "back up")
# How long each has something to do.
LONGEST_S = {
    "write": 0.6,
    "call": 0.4,
    "take": 0.8,
    "gently": 0.8,
    "migrate": 0.25,
    "salvage": 0.12,
    "back up": 0.4,
}


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a history, and a file of it."""
    folder = tmp_path_factory.mktemp("before")
    history = filled(folder / "history.db", Clock())
    parent = "tea-5"
    for number in range(100):
        _, parent = tell(history, "tea", f"Question {number}? " * 20, "Answer. " * 100, parent)
    export(history, folder / "all.json", FileKind.JSON)
    history.close()
    return folder


def kill(mode: str, folder: Path, after_s: float) -> list[list[str]]:
    """Start a writer, kill it so long after it is ready, and return the facts it stated."""
    command = [sys.executable, "-m", "tests.support.history.writer", mode, str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"
        time.sleep(after_s)  # the moment is what is tested
        child.send_signal(signal.SIGKILL)
        output = child.stdout.read()
    return [line.split() for line in output.decode().splitlines()]


def check(mode: str, folder: Path, facts: list[list[str]]) -> None:
    """Check that all reported facts hold."""
    history = History(folder / "history.db")
    with closing(history):
        assert history.problems() == ()
        names = {info.id for info in history.conversations() + history.conversations(in_trash=True)}
        assert {"tea", "ships"} <= names
        assert history.conversation("tea").num_messages == 206
        assert len(history.messages("tea")) == 206
        leaves = {words[1] for words in facts if words[0] == "leaves"}
        assert not names & {words[1] for words in facts if words[0] == "emptied"}
        for words in facts:
            if words[0] in ("appended", "finished") and words[1].split("-")[0] not in leaves:
                check_answer(history, words)
        numbers = [int(words[1]) for words in facts if words[0] == "taken"]
        for number in numbers:
            ending = "".join(f"+{each}" for each in range(number + 1))
            assert {f"tea{ending}", f"ships{ending}"} <= names
        if mode in ("take", "gently"):
            assert len(names) % 2 == 0, "an import is whole or not there"


def check_calls(folder: Path, facts: list[list[str]]) -> None:
    """No finished round is lost, and a call that may have run never runs again by itself."""
    ran = (folder / "ran").read_text().split() if (folder / "ran").exists() else []
    assert len(ran) == len(set(ran))
    stated = {kind: {words[1] for words in facts if words[0] == kind} for kind, *_ in facts}
    with closing(History(folder / "history.db")) as history:
        rounds = [
            message
            for info in history.conversations()
            for message in history.messages(info.id)
            if message.calls or message.id.endswith("-2")
        ]
    texts = {message.id: message.text for message in rounds}
    calls = {message.id: message.calls[0] for message in rounds if message.calls}
    assert all(texts.get(name) == SENTENCE for name in stated.get("called", ()))
    assert all(texts.get(name) == SENTENCE for name in stated.get("said", ()))
    for name in stated.get("returned", ()):
        assert calls[name].state is CallState.DONE
        assert calls[name].result is not None
    for name, found in calls.items():
        assert found.state in (CallState.REQUESTED, CallState.INTERRUPTED, CallState.DONE)
        if name in ran:
            assert found.state is not CallState.REQUESTED
        if found.state is CallState.REQUESTED:
            assert found.approval is Approval.NONE


def check_answer(history: History, words: list[str]) -> None:
    message = history.messages(words[1].split("-")[0])[1]
    assert message.answer is not None
    whole = SENTENCE * 8
    if words[0] == "finished":
        assert message.text == whole
        assert message.answer.state is AnswerState.DONE
        assert message.answer.done is not None
    else:
        assert message.answer.state in (AnswerState.DONE, AnswerState.CUT)
        assert whole.startswith(message.text)
        # A character that was cut in two comes with its other half.
        assert len(message.text.encode()) >= int(words[2]) - 3


def kill_often(before: Path, tmp_path: Path, num_kills: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(num_kills):
        mode = MODES[number % len(MODES)]
        folder = tmp_path / str(number)
        shutil.copytree(before, folder)
        if mode == "salvage":
            lose_an_index(folder / "history.db")
        facts = kill(mode, folder, chance.random() * LONGEST_S[mode])
        if mode == "migrate":
            with closing(open_database(folder / "history.db", SECOND)) as database:
                assert database.notice == ""
                assert database.rows("PRAGMA integrity_check") == [("ok",)]
                (shouted,) = database.rows("SELECT shouted FROM messages WHERE id = 'tea-1'")
                assert shouted == ("TWO MINUTES, NOT MORE.",)
                assert database.rows("SELECT count(*) FROM many") == [(20_000,)]
        else:
            check_backup(folder, facts)
            check(mode, folder, facts)
            if mode == "call":
                check_calls(folder, facts)
        shutil.rmtree(folder)


def check_backup(folder: Path, facts: list[list[str]]) -> None:
    """The backup is whole, has what was stated, and nothing of what was deleted."""
    backup = backup_of(folder / "history.db")
    if not backup.exists():
        assert any(words[0] == "leaves" for words in facts), "only an emptied trash removes it"
        return
    with closing(sqlite3.connect(backup)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        names = {name for (name,) in db.execute("SELECT id FROM conversations")}
    assert {"tea", "ships"} <= names
    assert {f"b{words[1]}" for words in facts if words[0] == "backed"} <= names
    assert not {words[1] for words in facts if words[0] == "emptied"} & names


def lose_an_index(path: Path) -> None:
    """Damage that costs no text: an index is made anew."""
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute(
            "SELECT rootpage FROM sqlite_schema WHERE name = 'messages_by_parent'"
        ).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_saved_messages_survive_a_kill(before: Path, tmp_path: Path) -> None:
    kill_often(before, tmp_path, len(MODES), seed=1)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")
def test_saved_messages_survive_two_hundred_kills(before: Path, tmp_path: Path) -> None:
    kill_often(before, tmp_path, 200, seed=2)
