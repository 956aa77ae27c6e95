"""Documents in a conversation: read before a prompt is sent, shown under it, cited, stored."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QTextCharFormat
from PySide6.QtWidgets import QMessageBox
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.chat.messages.message_widgets import Notice, UserMessage
from app.chat.messages.passages import PassageDialog
from app.theme.appearance import Appearance
from app.window.main_window import MainWindow
from medusa_core.api import Collections, History, Places
from medusa_core.errors import StorageError
from medusa_core.loading.state import Phase
from medusa_core.messages import Generate, PassagePart, content_passages
from tests.support.window import fakes
from tests.support.window.driving import errors, user_messages
from tests.support.window.fakes import FakeEngine, Script
from tests.support.window.fixtures import Open
from tests.support.window.library_fixtures import Run

ANSWER = "Herons wait [1], and storks do not [7]. Use `a[1]` or [1](https://x.y) so: it[1]."
TEXT = "Herons wait in shallow water.\n"

OpenDocuments = Callable[..., Awaitable[tuple[MainWindow, FakeEngine]]]


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds, while Qt and the loop go on."""
    while not condition():
        await asyncio.sleep(0.005)


async def ask(window: MainWindow, text: str) -> AnswerMessage:
    """Send a prompt, and wait for the end of its answer."""
    window.chat.send(text)
    assert window.chat.is_busy
    await until(lambda: not window.chat.is_busy)
    return window.chat.answers[-1]


@pytest.fixture
def open_documents(
    open_fake: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> OpenDocuments:
    """Open windows one after the other on one history and one folder of documents."""
    monkeypatch.setattr(fakes, "CONTEXT_TOKENS", 4_096)
    places = Places(*(tmp_path / name for name in ("config", "data", "state", "log")))
    windows: list[MainWindow] = []

    async def open_one(script: Script | None = None) -> tuple[MainWindow, FakeEngine]:
        for window in windows:
            window.close()
        window, engine = open_fake(
            script or Script(answer=ANSWER), history=History(places.history), places=places
        )
        windows.append(window)
        await until(lambda: window.loaded_model.status.phase is Phase.READY)
        return window, engine

    return open_one


@pytest.fixture
def collection(tmp_path: Path) -> str:
    """Id of a collection with one short file."""
    file = tmp_path / "birds.txt"
    file.write_text(TEXT)
    collections = Collections(tmp_path / "data" / "documents")
    made = collections.create("Birds")
    collections.add_paths(made.id, [file])
    collections.update(made.id, lambda _: None, lambda: False)
    collections.close()
    return made.id


def prompts_of(engine: FakeEngine) -> list[str]:
    """Return the last message of each request for an answer."""
    return [command.messages[-1].text for command in engine.of_kind(Generate)]


def links_of(window: MainWindow) -> list[tuple[str, str, bool]]:
    """Return text, target and strikeout of each link of the last answer."""
    found = []
    block = window.chat.answers[-1].document.document.begin()
    while block.isValid():
        for part in block:
            fmt: QTextCharFormat = part.fragment().charFormat()
            if fmt.isAnchor():
                found.append((part.fragment().text(), fmt.anchorHref(), fmt.fontStrikeOut()))
        block = block.next()
    return found


def test_a_prompt_is_sent_with_what_was_read_and_the_answer_cites_it(
    run: Run, open_documents: OpenDocuments, collection: str, tmp_path: Path
) -> None:
    async def work() -> None:
        window, engine = await open_documents()
        window.chat.state.attach_collection(collection, True)
        answer = await ask(window, "Who waits?")
        (sent,) = prompts_of(engine)
        assert "[1] birds.txt, line 1" in sent
        assert TEXT.strip() in sent
        assert "\n\nQuestion: Who waits?\n\n" in sent
        (user,) = user_messages(window)
        assert user.text == "Who waits?"
        assert user.fold.button.text() == "Read 1 passage of the documents"
        user.fold.button.click()
        assert user.fold.view.toPlainText().startswith("[1] birds.txt, line 1")
        # The answer keeps its text; known and unknown numbers are links, code and indices aren't.
        assert answer.content.text == ANSWER
        assert (
            "wait [1], and storks do not [7]. Use a[1] or 1 so: it[1]." in answer.view.toPlainText()
        )
        assert links_of(window) == [
            ("[1]", "passage:1", False),
            ("[7]", "no-passage:7", True),
            ("1", "https://x.y", False),
        ]
        answer.view.anchorClicked.emit(QUrl("passage:1"))
        (dialog,) = window.findChildren(PassageDialog)
        assert dialog.view.toPlainText() == TEXT.strip()
        assert dialog.open_button is not None
        dialog.reject()
        answer.view.anchorClicked.emit(QUrl("no-passage:7"))
        (box,) = window.findChildren(QMessageBox)
        assert box.text() == "No passage has the number 7."
        box.reject()
        # The next prompt repeats nothing, and all of it is there after a restart.
        await ask(window, "And why?")
        assert prompts_of(engine)[1] == "And why?"
        name = window.chat.conversation.session_id
        window, _ = await open_documents()
        assert window.history is not None
        window.history.open_conversation(name)
        shown = window.chat.conversation
        assert shown.collections == (collection,)
        assert [one.document for one in shown.passages] == ["birds.txt"]
        assert shown.turns[0].prompt.passages[0].path == str(tmp_path / "birds.txt")
        first = window.chat.answers[0]
        first.populate()
        assert "passage:1" in first.view.toHtml()

    run(work)


def test_a_folder_gives_its_conversations_its_collections(
    run: Run, open_documents: OpenDocuments, collection: str
) -> None:
    async def work() -> None:
        window, engine = await open_documents()
        await ask(window, "Hello")
        assert window.history is not None
        history = window.history.history
        folder = history.add_folder("Birds")
        history.set_folder_collections(folder.id, (collection,))
        history.move(window.chat.conversation.session_id, folder.id)
        await ask(window, "Who waits?")
        assert TEXT.strip() in prompts_of(engine)[1]

    run(work)


class Slow:
    """A search that waits until it may go on, or fails."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.may_go_on = threading.Event()
        self.error: Exception | None = None
        whole_text = Collections.whole_text

        def wait(*arguments: Any) -> Any:
            self.may_go_on.wait(60)
            if self.error is not None:
                raise self.error
            return whole_text(*arguments)

        monkeypatch.setattr(Collections, "whole_text", wait)


def test_stop_during_the_search_puts_the_prompt_back(
    run: Run,
    open_documents: OpenDocuments,
    collection: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        slow = Slow(monkeypatch)
        window, engine = await open_documents()
        window.chat.state.attach_collection(collection, True)
        window.chat.send("Who waits?")
        assert window.chat.is_busy
        assert "documents" in window.chat.answers[-1]._waiting.text()
        window.chat.stop()
        assert not window.chat.is_busy
        assert window.chat.state.draft.text == "Who waits?"
        assert errors(window) == []
        slow.may_go_on.set()
        await until(lambda: not window.documents.tasks.is_running)
        assert prompts_of(engine) == []

    run(work)


def test_an_index_that_cannot_be_read_costs_no_prompt(
    run: Run,
    open_documents: OpenDocuments,
    collection: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        slow = Slow(monkeypatch)
        slow.error = StorageError("The file is damaged.", "Remove it.")
        slow.may_go_on.set()
        window, engine = await open_documents()
        window.chat.state.attach_collection(collection, True)
        window.chat.send("Who waits?")
        await until(lambda: not window.chat.is_busy)
        assert [card.message for card in errors(window)] == ["The file is damaged."]
        assert window.chat.state.draft.text == "Who waits?"
        assert prompts_of(engine) == []
        window.chat.state.attach_collection(collection, False)
        window.page.composer.submit()
        await until(lambda: not window.chat.is_busy)
        assert prompts_of(engine) == ["Who waits?"]

    run(work)


def test_another_conversation_may_be_shown_during_the_search(
    run: Run,
    open_documents: OpenDocuments,
    collection: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def work() -> None:
        slow = Slow(monkeypatch)
        window, engine = await open_documents()
        window.chat.state.attach_collection(collection, True)
        window.chat.send("Who waits?")
        asked = window.chat.conversation
        window.chat.new_chat()
        slow.may_go_on.set()
        await until(lambda: not window.chat.state.pending_answers)
        assert TEXT.strip() in prompts_of(engine)[0]
        assert [one.document for one in asked.passages] == ["birds.txt"]
        assert window.chat.conversation.passages == ()
        assert window.history is not None
        stored = window.history.history.messages(asked.session_id)
        assert content_passages(stored[0].content) == asked.passages

    run(work)


@pytest.mark.parametrize("is_laid_out", [True, False])
def test_passages_that_are_found_later_are_listed(
    appearance: Appearance, qtbot: QtBot, is_laid_out: bool
) -> None:
    user = UserMessage("Hello", appearance)
    qtbot.addWidget(user)
    if is_laid_out:
        assert user.fold.isHidden()
    user.show_passages(
        (
            PassagePart(1, "a", "", "x"),
            PassagePart(2, "b", "p. 2", "y", 0.5, "", "", 3),
            PassagePart(3, "c", "", "z", 0.25, "", "", 4, 1),
        )
    )
    assert user.fold.button.text() == "Read 3 passages of the documents"
    assert user.fold.view.toPlainText().splitlines() == [
        "[1] a",
        "[2] b, p. 2 — rank 3 by words",
        "[3] c — rank 4 by words, rank 1 by meaning, score 0.2500",
    ]


def test_it_is_said_when_nothing_of_the_documents_is_read(
    run: Run, open_documents: OpenDocuments, tmp_path: Path
) -> None:
    collections = Collections(tmp_path / "data" / "documents")
    empty = collections.create("Empty").id
    collections.close()

    async def work() -> None:
        window, engine = await open_documents()
        window.chat.state.attach_collection(empty, True)
        await ask(window, "Who waits?")
        assert prompts_of(engine) == ["Who waits?"]
        notices = [one.text for one in window.page.conversation.messages if isinstance(one, Notice)]
        assert notices == ["No passage of the documents was read for this message."]
        await window.documents.remove(empty)
        await ask(window, "And now?")
        notices = [one.text for one in window.page.conversation.messages if isinstance(one, Notice)]
        (notice,) = notices
        assert "were removed" in notice

    run(work)
