"""A chat in the history: beside other programs, and on a disk that is full for a while."""

from __future__ import annotations

from pathlib import Path

import pytest

from medusa_core.chats.conversation import Conversation, Turn
from medusa_core.chats.history.history import History
from medusa_core.chats.history.stored_chats import open_conversation
from medusa_core.chats.settings import ChatSettings
from medusa_core.cli.terminal.chat_record import ChatRecord
from medusa_core.errors import StorageError
from medusa_core.messages import GenerateSettings, Role


class FullDisk(History):
    """A history that can't begin answers while the disk is full."""

    is_full = True

    def begin_answer(self, message: object) -> None:
        if self.is_full:
            raise StorageError("The disk is full.", "Free some space.")
        super().begin_answer(message)  # type: ignore[arg-type]


def talk(record: ChatRecord, conversation: Conversation, text: str) -> Turn:
    turn = conversation.ask(text, GenerateSettings())
    record.begin_turn(conversation, turn, ChatSettings(temperature=0.3))
    turn.answer.content.finish(f"Answer to {text}")
    turn.answer.last.is_cut = True
    record.end_turn(turn)
    return turn


def test_a_full_disk_loses_nothing_and_is_reported_once(tmp_path: Path) -> None:
    history = FullDisk(tmp_path / "history.db")
    said: list[str] = []
    record = ChatRecord(history, lambda message, hint: said.append(f"{message} {hint}"))
    conversation = Conversation()
    talk(record, conversation, "one")
    talk(record, conversation, "two")
    assert len(said) == 1
    assert said[0].startswith("The disk is full. Free some space. What you write is kept here")
    assert len(history.messages(conversation.session_id)) == 1
    history.is_full = False
    talk(record, conversation, "three")
    texts = [m.text for m in history.messages(conversation.session_id) if m.role is Role.ASSISTANT]
    assert texts == ["Answer to one", "Answer to two", "Answer to three"]
    record.close()


def test_the_window_opens_terminal_chats_with_their_settings(tmp_path: Path) -> None:
    theirs, ours = History(tmp_path / "history.db"), History(tmp_path / "history.db")
    record = ChatRecord(ours, pytest.fail)
    conversation = Conversation()
    for text in ("Hello  there", "And now?"):
        talk(record, conversation, text)
    record.rename(conversation.session_id, "greeting")
    (info,) = theirs.conversations()
    assert (info.id, info.title, info.has_own_title) == (conversation.session_id, "greeting", True)
    opened = open_conversation(theirs, info.id)
    assert [turn.prompt.text for turn in opened.turns] == ["Hello  there", "And now?"]
    assert '"temperature": 0.3' in theirs.settings(info.id)
    record.close()
    theirs.close()


def test_a_chat_deleted_meanwhile_is_reported_once(tmp_path: Path) -> None:
    ours, theirs = History(tmp_path / "history.db"), History(tmp_path / "history.db")
    said: list[str] = []
    record = ChatRecord(ours, lambda message, hint: said.append(message))
    conversation = Conversation()
    talk(record, conversation, "one")
    theirs.trash((conversation.session_id,))
    theirs.empty_trash()
    talk(record, conversation, "two")
    talk(record, conversation, "three")
    assert ours.conversations() == ()
    assert len(said) == 1
    assert "was deleted" in said[0]
    record.close()
    theirs.close()


def test_without_a_history_nothing_is_saved() -> None:
    record = ChatRecord(None, pytest.fail)
    talk(record, Conversation(), "one")
    record.rename("x", "y")
    record.close()
