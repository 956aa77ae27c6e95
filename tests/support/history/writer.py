"""A process that writes a history until it is killed, and says what is kept.

`python -m tests.support.history.writer MODE FOLDER [NAME]`; each line on standard output
is a fact that holds from then on.
"""

import asyncio
import sqlite3
import sys
from dataclasses import replace
from itertools import count
from pathlib import Path

from medusa_core.chats.history.exchange.reading import ConversationFile
from medusa_core.chats.history.history import History
from medusa_core.chats.history.mending import mend
from medusa_core.chats.history.records import AnswerState
from medusa_core.chats.history.schema import MIGRATIONS
from medusa_core.chats.rounds import Approval, CallState, RoundCall, ToolResult
from medusa_core.messages import ToolCall, as_content
from medusa_core.system.storage.database import (
    Migration,
    open_database,
)
from tests.support.history.samples import answer, done, prompt, steps

SENTENCE = "Wörter, die bleiben müssen. "


def second(db: sqlite3.Connection) -> None:
    """A migration that takes a while."""
    db.execute("ALTER TABLE messages ADD COLUMN shouted TEXT NOT NULL DEFAULT ''")
    db.execute("UPDATE messages SET shouted = upper(text)")
    db.execute("CREATE TABLE many (number INTEGER PRIMARY KEY, text TEXT) STRICT")
    db.executemany("INSERT INTO many (text) VALUES (?)", [("more " * 50,)] * 20_000)


SECOND: tuple[Migration, ...] = (*MIGRATIONS, second)


def say(*words: object) -> None:
    """State a fact; one write, which is whole or not there."""
    sys.stdout.buffer.write((" ".join(map(str, words)) + "\n").encode())
    sys.stdout.buffer.flush()


def write(history: History) -> None:
    """Conversations that come, stream, and go."""
    say("ready")
    for number in count():
        name = f"k{number}"
        history.begin(name, name)
        history.add_prompt(prompt(name, f"{name}-0", "Say it"))
        history.begin_answer(answer(name, f"{name}-1", f"{name}-0"))
        text = SENTENCE * 8
        batch = []
        for step in steps(text, size=7):
            batch.append(step)
            if len(batch) == 4:
                history.append_steps(f"{name}-1", tuple(batch))
                say("appended", f"{name}-1", step.num_visible_bytes)
                batch.clear()
        history.append_steps(f"{name}-1", tuple(batch))
        history.finish_answer(f"{name}-1", text, done(text), AnswerState.DONE)
        say("finished", f"{name}-1")
        if number % 3 == 1:
            say("leaves", name)
            history.trash([name])
            history.empty_trash()
            say("emptied", name)
        if number % 5 == 4:
            history.checkpoint()


def call(history: History, folder: Path) -> None:
    """Answers of two rounds, whose calls append to a file when they run."""
    say("ready")
    for number in count():
        name, first, last = f"c{number}", f"c{number}-1", f"c{number}-2"
        asked = RoundCall(ToolCall(name, "append", "{}"))
        history.begin(name, name)
        history.add_prompt(prompt(name, f"{name}-0", "Call it"))
        history.begin_answer(answer(name, first, f"{name}-0"))
        history.append_steps(first, tuple(steps(SENTENCE, size=20)))
        history.finish_answer(first, SENTENCE, done(SENTENCE), AnswerState.DONE, None, (asked,))
        say("called", first)
        for state in (CallState.APPROVED, CallState.RUNNING):
            history.save_call(first, 0, replace(asked, state=state, approval=Approval.ONCE))
        with (folder / "ran").open("a", encoding="utf-8") as file:
            file.write(f"{first}\n")
        result = ToolResult(as_content(SENTENCE))
        history.save_call(first, 0, RoundCall(asked.call, CallState.DONE, Approval.ONCE, result))
        say("returned", first)
        history.begin_answer(answer(name, last, first))
        history.finish_answer(last, SENTENCE, done(SENTENCE), AnswerState.DONE)
        say("said", last)


def take(history: History, file: Path, gently: bool) -> None:
    """Import a file repeatedly, as different conversations."""
    with ConversationFile(file) as found:
        conversations = list(found)
    say("ready")
    for number in count():
        for conversation in conversations:
            conversation["id"] = f"{conversation['id']}+{number}"
        if gently:
            asyncio.run(history.import_in_thread(conversations))
        else:
            history.import_all(conversations)
        say("taken", number)


def back_up(history: History) -> None:
    """A backup that is made over and over, of more each time."""
    say("ready")
    for number in count():
        history.begin(f"b{number}", "Backed up")
        history._database.back_up()
        say("backed", number)


def talk(history: History, name: str) -> None:
    """Write exchanges in a shared conversation, and in one that is created and deleted.

    Args:
        history: Where.
        name: Who talks: all that is written begins with it.
    """
    say("ready")
    for number in count():
        asked, answered, own = f"{name}-{number}-q", f"{name}-{number}-a", f"{name}-own"
        leaf = history.conversation("tea").leaf_id
        history.add_prompt(prompt("tea", asked, f"Asks {name}", leaf))
        history.begin_answer(answer("tea", answered, asked))
        text = SENTENCE * 8
        for step in steps(text, size=40):
            history.append_steps(answered, (step,))
            say("appended", answered, step.num_visible_bytes)
        history.finish_answer(answered, text, done(text), AnswerState.DONE)
        say("finished", answered)
        if number % 4 == 1:
            history.begin(own, f"Of {name}")
            history.checkpoint()
        if number % 4 == 3:
            history.trash([own])
            history.empty_trash()


def main(mode: str, folder: Path, name: str = "") -> None:
    """Write until the end."""
    path = folder / "history.db"
    match mode:
        case "write":
            write(History(path))
        case "call":
            call(History(path), folder)
        case "take" | "gently":
            take(History(path), folder / "all.json", mode == "gently")
        case "talk":
            talk(History(path), name)
        case "migrate":
            say("ready")
            open_database(path, SECOND).close()
        case "back up":
            back_up(History(path))
        case "salvage":
            say("ready")
            open_database(path, MIGRATIONS, mend=mend).close()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
