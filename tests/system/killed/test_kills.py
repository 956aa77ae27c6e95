"""Whatever the program does when it is killed, the history and the models are whole afterwards."""

import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import AnswerState
from medusa_core.hub.cache_folder import find_snapshot
from medusa_core.hub.job import Pair
from medusa_core.hub.library.library_verify import verify
from medusa_core.hub.listing import list_repo
from medusa_core.hub.settings import HubSettings
from medusa_core.models.datastore.folder import store_of
from tests.support.history.samples import Clock, filled, tell
from tests.support.history.talkers import check_facts, facts_of, talking, wait_for
from tests.support.hub.fixtures import LoopbackHub
from tests.support.hub.pairs import HEADS, MIB, MODEL, check_whole, fetch, fill, sent
from tests.system.killed.activities import SAVED, STREAMED, secret

ROOT = Path(__file__).resolve().parents[3]
# What is done, and for how long it has something to do.
LONGEST_S = {
    "stream": 3.0,
    "save": 1.5,
    "download": 0.5,
    "delete": 0.12,
    "learn": 0.4,
}
MOST_LOST_S = 1.0
# What each says when an answer has its end.
ENDS = (("window", "ended"), ("program", "finished"))
NUM_GONE = 40
BYTES_PER_S = 16 * MIB
# Beside what is on the line, a file's last bytes may have to come again.
MOST_TWICE = 8 * MIB

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal")


@dataclass(frozen=True, slots=True)
class Death:
    """Exit of a process.

    Attributes:
        facts: What it had stated, as words.
        at_s: When it was killed, by the monotonic clock.
        was_at_work: Whether it had not come to its end before.
    """

    facts: list[list[str]]
    at_s: float
    was_at_work: bool


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a history."""
    folder = tmp_path_factory.mktemp("before")
    history = filled(folder / "history.db", Clock())
    for number in range(NUM_GONE):
        name, parent = f"gone-{number}", None
        history.begin(name, name)
        for turn in range(10):
            _, parent = tell(history, name, f"Ask {turn}", f"secret{number} " * 60, parent)
    history.close()
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoopbackHub]:
    """A Hub on loopback, with a model and its heads."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        running = LoopbackHub(tmp_path_factory.mktemp("hub"), BYTES_PER_S)
        fill(running, 2 * MIB)
        yield running


def kill(activity: str, folder: Path, endpoint: str, after_s: float) -> Death:
    """Start a process, kill it after a delay once it is ready, and return its reports."""
    command = [
        sys.executable,
        "-m",
        "tests.system.killed.activities",
        activity,
        str(folder),
        endpoint,
    ]
    reported = folder / "facts"  # not a pipe: that one would fill, and hold the process back
    with (
        reported.open("wb") as out,
        subprocess.Popen(command, cwd=ROOT, stdout=out) as child,
    ):
        while not reported.stat().st_size:
            assert child.poll() is None, "it ended before it was ready"
            time.sleep(0.001)
        time.sleep(after_s)  # the moment is what is tested
        was_at_work = child.poll() is None
        at_s = time.monotonic()
        child.send_signal(signal.SIGKILL)
    lines = reported.read_text(encoding="utf-8").splitlines()
    return Death([line.split() for line in lines[1:]], at_s, was_at_work)


def stated(death: Death, kind: str) -> list[list[str]]:
    """The facts of a kind, without its word."""
    return [words[1:] for words in death.facts if words[0] == kind]


def check_file(path: Path) -> None:
    """Check that SQLite finds no fault."""
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []


def check_talk(history: History, death: Death) -> None:
    """Questions and ended answers are whole; of an open one, the last second may lack."""
    answers = {
        message.id: message
        for info in history.conversations()
        for message in history.messages(info.id)
        if message.answer is not None
    }
    ended = {name: int(length) for name, length in stated(death, "ended")}
    for name, length in ended.items():
        assert len(answers[name].text) == length
    for (name,) in stated(death, "asked"):
        assert history.messages(name)[0].text.startswith("Question ")
    for name, reported_s, num_bytes in stated(death, "shown"):
        assert any(all_of_it.startswith(answers[name].text) for all_of_it in (STREAMED, SAVED))
        if death.at_s - float(reported_s) > MOST_LOST_S:
            assert len(answers[name].text.encode()) >= int(num_bytes)


def check_deleted(history: History, death: Death) -> None:
    """Check that each conversation is complete, or gone from lists and search."""
    kept = {info.id for info in history.conversations()}
    kept |= {info.id for info in history.conversations(in_trash=True)}
    gone = {name for names in stated(death, "emptied") for name in names}
    touched = gone | {name for names in stated(death, "trashed") for name in names}
    assert not kept & gone
    for number in range(NUM_GONE):
        name = f"gone-{number}"
        if name in kept:
            assert len(history.messages(name)) == 20
        else:
            assert history.search(f"secret{number}", 500) == ()
            assert name in touched or is_next(number, touched)


def is_next(number: int, touched: set[str]) -> bool:
    """Whether it was the turn of this one: the word about it didn't come any more."""
    return number // 4 == len(touched) // 4


def check_download(hub: LoopbackHub, cache: Path, sent_before: int) -> None:
    """The next one goes on, little comes twice, and what came is what the Hub announced."""
    settings = HubSettings(endpoint=hub.endpoint, cache_dir=cache, floor_bytes=0)
    fetch(settings, Pair(MODEL, HEADS))
    for repo in (MODEL, HEADS):
        snapshot = find_snapshot(cache, repo)
        assert snapshot is not None
        check_whole(hub, repo, snapshot)
        assert verify(snapshot).is_whole
    total = sum(list_repo(settings, repo).needed_bytes for repo in (MODEL, HEADS))
    assert sent(hub) - sent_before <= total + MOST_TWICE


def check_learned(folder: Path, death: Death) -> None:
    """Check that learned answers are stored and no byte of deleted ones remains."""
    left = b"".join(file.read_bytes() for file in folder.glob("model*"))  # before it is opened
    gone = {int(number) for (number,) in stated(death, "forgotten")}
    for number in gone:
        assert secret(number).tobytes() not in left
    with closing(store_of(folder, "model")) as store:
        kept = {int(name.removeprefix("talk-")) for name in store.conversations()}
        found = {answer.token_ids.tobytes() for answer in store.answers((), 1 << 30)}
    learned = {int(number) for (number,) in stated(death, "learned")}
    assert learned - gone - kept <= {max(learned, default=0)}  # the word about it may be missing
    assert not kept & gone
    assert found == {(array("i", (1, 2, 3)) + secret(number)).tobytes() for number in kept}
    check_file(folder / "model.db")
    assert not list(folder.glob("*damaged*"))


def check(activity: str, folder: Path, death: Death, hub: LoopbackHub, sent_before: int) -> None:
    """Check that all reported facts hold and the files are intact."""
    if activity == "download":
        check_download(hub, folder / "cache", sent_before)
        return
    if activity == "learn":
        if (folder / "learned").exists():
            check_learned(folder / "learned", death)
        return
    with closing(History(folder / "history.db")) as history:
        assert history.notice == ""
        assert history.problems() == ()
        assert [m.id for m in history.messages("tea")][:2] == ["tea-0", "tea-1"]
        states = [
            m.answer.state
            for i in history.conversations()
            for m in history.messages(i.id)
            if m.answer
        ]
        assert AnswerState.STREAMING not in states
        match activity:
            case "stream" | "save":
                check_talk(history, death)
            case "delete":
                check_deleted(history, death)
    check_file(folder / "history.db")


def kill_often(before: Path, hub: LoopbackHub, tmp_path: Path, num_kills: int, seed: int) -> None:
    """Kill each activity in turn; many kills must find it at work."""
    chance = random.Random(seed)
    killed: Counter[str] = Counter()
    at_work: Counter[str] = Counter()
    activities = list(LONGEST_S)
    for number in range(num_kills):
        activity = activities[number % len(activities)]
        folder = tmp_path / str(number)
        shutil.copytree(before, folder)
        sent_before = sent(hub)
        death = kill(activity, folder, hub.endpoint, chance.random() * LONGEST_S[activity])
        check(activity, folder, death, hub, sent_before)
        shutil.rmtree(folder)
        killed[activity] += 1
        at_work[activity] += death.was_at_work
    for activity, num in killed.items():
        print(f"{activity}: {num} kills, {at_work[activity]} at work")
    # A quick computer is done with some of them before the blow falls.
    assert sum(at_work.values()) >= num_kills / 3


def test_all_activities_survive_a_kill(before: Path, hub: LoopbackHub, tmp_path: Path) -> None:
    kill_often(before, hub, tmp_path, len(LONGEST_S), seed=3)


def kill_beside(before: Path, folder: Path, victim: str, after_s: float) -> None:
    """Kill a window or a program that share a history; the other one continues."""
    shutil.copytree(before, folder)
    command = [sys.executable, "-m", "tests.system.killed.activities", "save", str(folder)]
    with (
        (folder / "window").open("wb") as out,
        subprocess.Popen(command, cwd=ROOT, stdout=out) as window,
        talking(folder, "program") as program,
    ):
        processes, kinds = {"window": window, "program": program}, dict(ENDS)
        try:
            for name, kind in ENDS:
                wait_for(folder, name, kind)
            time.sleep(after_s)  # the moment is what is tested
            processes[victim].send_signal(signal.SIGKILL)
            killed_s = time.monotonic()
            (other,) = kinds.keys() - {victim}
            wait_for(folder, other, kinds[other], 3)
        finally:
            window.kill()
    at_s = killed_s if victim == "window" else time.monotonic()
    with closing(History(folder / "history.db")) as history:
        assert history.notice == ""
        check_facts(history, facts_of(folder, "program"))
        check_talk(history, Death(facts_of(folder, "window"), at_s, True))
        assert history.problems() == ()
    check_file(folder / "history.db")
    assert not list(folder.glob("*damaged*"))


@pytest.mark.parametrize("victim", ["window", "program"])
def test_a_window_and_another_program_survive_each_others_kill(
    before: Path, tmp_path: Path, victim: str
) -> None:
    kill_beside(before, tmp_path / "one", victim, 0.1)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_kills_of_a_window_or_of_a_program_beside_it(before: Path, tmp_path: Path) -> None:
    chance = random.Random(5)
    for number in range(50):
        folder = tmp_path / str(number)
        kill_beside(before, folder, ENDS[number % 2][0], chance.random())
        shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_all_activities_survive_two_hundred_kills(
    before: Path, hub: LoopbackHub, tmp_path: Path
) -> None:
    kill_often(before, hub, tmp_path, 200, seed=4)
