"""The state of the chat, without a window."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import app.state
from app.state.chat import ChatPhase, ChatState, Draft
from medusa_core.api import Attachment
from medusa_core.chats.conversation import Conversation
from tests.support.window.requests import begin

NOTES = Attachment("notes.txt", "text/plain", "one two", 7)
CODE = Attachment("code.py", "text/x-python", "pass", 4)


def test_state_needs_nothing_of_qt_but_its_core() -> None:
    for path in Path(app.state.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert {name for name in modules if name and "PySide6" in name} <= {"PySide6.QtCore"}


def test_a_conversation_is_idle_answering_or_awaits_approval() -> None:
    state = ChatState()
    phases: list[ChatPhase] = []
    state.phase_changed.connect(lambda: phases.append(state.phase))
    turn, request = begin(state)
    state.wait_for(turn, request, ChatPhase.AWAITING_APPROVAL)
    assert state.is_busy
    state.wait_for(turn, request, ChatPhase.ANSWERING)
    state.stop()
    assert request.calls == ["cancel"]
    state.end(turn)
    assert phases == [
        ChatPhase.ANSWERING,
        ChatPhase.AWAITING_APPROVAL,
        ChatPhase.ANSWERING,
        ChatPhase.IDLE,
    ]


def test_documents_of_a_new_conversation_stay_with_its_draft() -> None:
    state = ChatState()
    state.attach_collection("birds", True)
    stored = Conversation()
    stored.collections = ("tea",)
    state.stored.add(stored.session_id)
    state.show(stored)
    assert state.conversation.collections == ("tea",)
    begin(state)
    state.show(Conversation())
    assert state.conversation.collections == ("birds",)
    begin(state)  # the draft is sent
    state.show(Conversation())
    assert state.conversation.collections == ()


def test_an_answer_goes_on_while_another_conversation_is_shown() -> None:
    state = ChatState()
    first = state.conversation
    turn, request = begin(state)
    previous: list[Conversation] = []
    state.conversation_changed.connect(previous.append)
    state.show(Conversation())
    assert (state.phase, state.pending_answers) == (ChatPhase.IDLE, (turn.answer,))
    assert state.pending_sessions == {first.session_id}
    state.stop()
    assert request.calls == [], "the shown one has no answer to stop"
    # The history reads the conversation anew; the one with the answer under way is kept.
    state.show(Conversation(session_id=first.session_id))
    assert state.conversation is first
    assert state.is_busy
    assert previous[0] is first
    state.forget(first.session_id)
    assert (request.calls, state.phase, state.pending_answers) == (["drop"], ChatPhase.IDLE, ())


def test_what_is_queued_joins_what_waits_and_goes_back_into_the_draft() -> None:
    state = ChatState()
    begin(state)
    state.write("one ")
    state.attach(NOTES)
    state.queue()
    state.write("two")
    state.attach(CODE)
    state.queue()
    assert (state.queued, state.draft) == (Draft("one\n\ntwo", (NOTES, CODE)), Draft())
    state.write("three")
    assert state.unsent == Draft("one\n\ntwo\n\nthree", (NOTES, CODE))
    state.unqueue()
    assert (state.queued, state.draft) == (None, Draft("one\n\ntwo\nthree", (NOTES, CODE)))
    assert state.take_queued() is None


@pytest.mark.parametrize("written", ["", " ", "meanwhile"])
def test_an_unsent_prompt_is_put_before_the_text_typed_since(written: str) -> None:
    state = ChatState()
    state.write(written)
    state.restore(Draft("precious", (NOTES,)))
    expected = "precious\nmeanwhile" if written.strip() else "precious"
    assert state.draft == Draft(expected, (NOTES,))


def test_each_conversation_keeps_its_draft() -> None:
    state = ChatState()
    first = state.conversation
    begin(state)
    state.write("later")
    state.attach(NOTES)
    state.show(Conversation())
    assert state.draft == Draft()
    state.attach(CODE, session_id=first.session_id)  # read late
    assert state.drafts == {"": Draft(), first.session_id: Draft("later", (NOTES, CODE))}
    state.show(first)
    assert state.draft == Draft("later", (NOTES, CODE))
    state.detach(NOTES)
    assert state.draft.attachments == (CODE,)


def test_conversations_that_are_not_stored_share_a_draft() -> None:
    state = ChatState()
    first = state.conversation
    state.write("one")
    state.attach(NOTES)
    state.show(Conversation())
    state.attach(CODE, session_id=first.session_id)  # read late
    draft = Draft("one", (NOTES, CODE))
    assert state.draft == draft
    state.stored.add("kept")
    state.show(Conversation(session_id="kept"))
    assert state.drafts == {"kept": Draft(), "": draft}
    state.show(Conversation())
    assert state.drafts == {"": draft}


def test_what_could_not_be_sent_returns_to_its_conversation() -> None:
    state = ChatState()
    first = state.conversation
    begin(state)
    state.write("next")
    state.show(Conversation())
    state.write("other")
    changes: list[str] = []
    state.draft_changed.connect(lambda: changes.append("draft"))
    state.restore(Draft("precious", (NOTES,)), first.session_id)
    assert (state.draft, changes) == (Draft("other"), ["draft"])
    state.show(first)
    assert state.draft == Draft("precious\nnext", (NOTES,))


def test_a_change_is_reported_once_and_only_if_it_is_one() -> None:
    state = ChatState()
    changes: list[str] = []
    state.draft_changed.connect(lambda: changes.append("draft"))
    state.queued_changed.connect(lambda: changes.append("queued"))
    state.write("one")
    state.write("one")
    assert changes == ["draft"]
    state.take_queued()
    state.unqueue()
    assert changes == ["draft"]
    state.queue()
    assert changes == ["draft", "draft", "queued"]
