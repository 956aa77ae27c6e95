"""What another program writes into the history is seen in the window; neither loses anything."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from pytestqt.qtbot import QtBot

from app.window.main_window import MainWindow
from medusa_core.api import ConversationInfo, History
from medusa_core.chats.history.records import AnswerState
from tests.support.history.samples import answer, done, prompt, steps, tell
from tests.support.window.driving import ask, user_messages
from tests.support.window.fakes import Script
from tests.support.window.history_fixtures import OpenSaved

LOOKS_WITHIN_MS = 3_000


@pytest.fixture
def other(tmp_path: Path, open_saved: OpenSaved) -> Iterator[History]:
    """The history as another program has it open; it closes before the window does."""
    with closing(History(tmp_path / "history.db")) as history:
        yield history


def listed(window: MainWindow) -> list[str]:
    return [row.title for row in window.sidebar.model.rows if isinstance(row, ConversationInfo)]


def asked(window: MainWindow) -> list[str]:
    return [message.text for message in user_messages(window)]


def look(window: MainWindow) -> None:
    """Let the window check for changes immediately."""
    assert window.history is not None
    window.history._watch.look()


def last_answer(history: History) -> tuple[str, str]:
    """Return the conversation with the latest message, and its last answer."""
    info = history.conversations()[0]
    assert info.leaf_id is not None
    return info.id, info.leaf_id


def test_a_conversation_of_another_program_appears_in_the_list(
    qtbot: QtBot, open_saved: OpenSaved, other: History
) -> None:
    window, _ = open_saved()
    other.begin("c", "Of a terminal")
    tell(other, "c", "Where am I?", "In a terminal.")
    qtbot.waitUntil(lambda: listed(window) == ["Of a terminal"], timeout=LOOKS_WITHIN_MS)
    assert window.history is not None
    window.history.open_conversation("c")
    assert asked(window) == ["Where am I?"]
    assert window.chat.answers[0].document.text == "In a terminal."


def test_messages_added_by_another_program_appear_after_the_shown_ones(
    qtbot: QtBot, open_saved: OpenSaved, other: History
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    before = window.chat.answers[0]
    conversation, leaf = last_answer(other)
    tell(other, conversation, "two", "Of the terminal.", leaf)
    look(window)
    assert asked(window) == ["one", "two"]
    assert window.chat.answers[0] is before
    assert window.chat.answers[1].document.text == "Of the terminal."
    ask(qtbot, window, "three")
    parents = {m.text: m.parent_id for m in other.messages(conversation)}
    assert parents["three"] == f"{conversation}-3"


def test_concurrent_answers_become_versions(
    qtbot: QtBot, open_saved: OpenSaved, other: History
) -> None:
    window, engine = open_saved(Script(answer="Of the window. " * 10), 40)
    engine.gate.set()
    ask(qtbot, window, "one")
    conversation, leaf = last_answer(other)
    engine.gate.clear()
    window.chat.send("two here")
    tell(other, conversation, "two there", "Of the terminal.", leaf)
    look(window)
    assert asked(window) == ["one", "two here"], "what is being written stays in sight"
    engine.gate.set()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    versions = window.chat.conversation.prompt_versions(1)
    assert [one.text for one in versions] == ["two here", "two there"]
    texts = {m.text: m.parent_id for m in other.messages(conversation)}
    assert texts["two here"] == texts["two there"] == leaf
    assert "Of the terminal." in texts
    assert "Of the window. " * 10 in texts


def test_an_answer_opened_half_written_is_completed(open_saved: OpenSaved, other: History) -> None:
    window, _ = open_saved()
    other.begin("c", "Half")
    other.add_prompt(prompt("c", "q", "Go on?"))
    other.begin_answer(answer("c", "a", "q"))
    other.append_steps("a", tuple(steps("So far")))
    look(window)
    assert window.history is not None
    window.history.open_conversation("c")
    assert window.chat.answers[0].document.text == "So far"
    other.append_steps("a", tuple(steps(" so good.")))
    look(window)
    assert window.chat.answers[0].document.text == "So far"
    other.finish_answer("a", "So far so good.", done("So far so good."), AnswerState.DONE)
    look(window)
    assert [one.content.text for one in window.chat.answers] == ["So far so good."]


def test_a_conversation_trashed_by_another_program_is_not_shown_any_more(
    qtbot: QtBot, open_saved: OpenSaved, other: History
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    conversation, _ = last_answer(other)
    other.trash([conversation])
    look(window)
    assert (listed(window), asked(window)) == ([], [])
    other.restore([conversation])
    look(window)
    assert listed(window) == ["one"]


def test_the_selection_is_kept_when_another_program_writes(
    open_saved: OpenSaved, other: History
) -> None:
    for name in ("a", "b", "c"):
        other.begin(name, name)
    window, _ = open_saved()
    window.sidebar._select(["a", "c"])
    other.begin("d", "d")
    look(window)
    assert listed(window) == ["d", "c", "b", "a"]
    assert {one.id for one in window.sidebar.chosen} == {"a", "c"}


def test_the_windows_own_writes_are_not_reported_as_changes(
    qtbot: QtBot, open_saved: OpenSaved
) -> None:
    window, _ = open_saved()
    assert window.history is not None
    seen: list[None] = []
    window.history._watch.changed.connect(lambda: seen.append(None))
    ask(qtbot, window, "one")
    look(window)
    assert not seen
