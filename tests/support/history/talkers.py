"""Processes that talk in a history until they are killed, and what must be there afterwards."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import AnswerState
from tests.support.history.writer import SENTENCE

ROOT = Path(__file__).resolve().parents[3]
WHOLE = SENTENCE * 8
Facts = list[list[str]]


@contextmanager
def talking(folder: Path, name: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that talks in the history until it is killed."""
    command = [sys.executable, "-m", "tests.support.history.writer", "talk", str(folder), name]
    with (folder / name).open("wb") as out, subprocess.Popen(command, cwd=ROOT, stdout=out) as one:
        try:
            yield one
        finally:
            one.kill()


def facts_of(folder: Path, name: str) -> Facts:
    """Return the facts a process reported, without one it was killed in."""
    text = (folder / name).read_text(encoding="utf-8")
    return [line.split() for line in text[: text.rfind("\n") + 1].splitlines()]


def wait_for(folder: Path, name: str, kind: str, number: int = 1) -> None:
    """Wait until a process has reported the given number of further facts of a kind."""

    def num_stated() -> int:
        return sum(words[0] == kind for words in facts_of(folder, name))

    before, end_s = num_stated(), time.monotonic() + 240
    while num_stated() < before + number:
        assert time.monotonic() < end_s, f"{name} doesn't go on"
        time.sleep(0.005)


def check_facts(history: History, facts: Facts) -> None:
    """Check that all reported facts are stored."""
    messages = {message.id: message for message in history.messages("tea")}
    for words in facts:
        if words[0] == "finished":
            assert messages[words[1]].text == WHOLE
            ended = messages[words[1]].answer
            assert ended is not None
            assert ended.state is AnswerState.DONE
        elif words[0] == "appended":
            text = messages[words[1]].text
            assert WHOLE.startswith(text)
            assert len(text.encode()) >= int(words[2]) - 3  # half a character
