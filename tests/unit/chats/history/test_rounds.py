"""Answers of several rounds, and images, in the history: from their request to another program."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.chats.conversation import Answer, Conversation
from medusa_core.chats.history.exchange.export import FileKind, export
from medusa_core.chats.history.exchange.reading import ConversationFile
from medusa_core.chats.history.history import History
from medusa_core.chats.history.mending import mend
from medusa_core.chats.history.records import AnswerState
from medusa_core.chats.history.schema import MIGRATIONS
from medusa_core.chats.history.stored_chats import (
    open_conversation,
    state_of,
    stored_answer,
    stored_prompt,
    stored_prompts,
)
from medusa_core.chats.reasoning import AnswerSpan
from medusa_core.chats.rounds import Approval, CallState, RoundCall, ToolResult
from medusa_core.errors import RequestError
from medusa_core.messages import (
    ChatMessage,
    GenerateSettings,
    ImagePart,
    Role,
    TextPart,
    ToolCall,
    as_content,
)
from medusa_core.system.storage.database import open_database
from medusa_core.system.storage.database_backup import backup_of
from tests.support.history.samples import Clock, answer, done, filled, prompt, steps

CALL = ToolCall("call12345", "clock", '{"zone": "Bern"}')
WRITTEN = 'Let me see.<tool_call>{"name": "clock"}</tool_call>'
SPANS = (AnswerSpan(0, 11, False),)
NOON = RoundCall(
    CALL, CallState.DONE, Approval.ONCE, ToolResult(as_content("12:00"), duration_s=0.5)
)
PICTURE = ImagePart("image/png", b"\x89PNG picture")


def ask(history: History, path: str = "tea") -> None:
    """Write a prompt and the first round of its answer, which calls a tool."""
    history.begin(path, "Time")
    history.add_prompt(prompt(path, "q", "What time is it?"))
    history.begin_answer(answer(path, "r0", "q"))
    history.append_steps("r0", tuple(steps(WRITTEN)))
    history.finish_answer("r0", WRITTEN, done(WRITTEN), AnswerState.DONE, SPANS, (RoundCall(CALL),))


def answer_in_rounds(history: History) -> None:
    """Write an answer that calls a tool and then says the result."""
    ask(history)
    history.save_call("r0", 0, NOON)
    history.begin_answer(answer("tea", "r1", "r0"))
    history.append_steps("r1", tuple(steps("It is noon.")))
    history.finish_answer("r1", "It is noon.", done("It is noon."), AnswerState.DONE)


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history.db", Clock())


def the_answer(history: History) -> Answer:
    (turn,) = open_conversation(history, "tea").turns
    return turn.answer


def test_rounds_are_one_answer_with_calls_and_results(history: History) -> None:
    answer_in_rounds(history)
    found = the_answer(history)
    assert [one.id for one in found.rounds] == ["r0", "r1"]
    assert found.rounds[0].calls == (NOON,)
    assert (found.id, found.content.answer) == ("r1", "It is noon.")
    assert found.shown_text == "Let me see.\n\nIt is noon."
    assert found.messages(keeps_reasoning=False) == (
        ChatMessage(Role.ASSISTANT, "Let me see.", (1, 2, 3), (CALL,)),
        ChatMessage(Role.TOOL, "12:00", tool_name="clock", call_id="call12345"),
        ChatMessage(Role.ASSISTANT, "It is noon.", (1, 2, 3)),
    )
    assert open_conversation(history, "tea").go_to("r0")
    assert {hit.message_id for hit in history.search("noon")} == {"r1"}
    assert [hit.message_id for hit in history.search("let me see")] == ["r0"]
    assert history.search("tool_call") == ()
    history.close()


def test_a_later_prompt_and_another_version_keep_their_rounds(history: History) -> None:
    answer_in_rounds(history)
    history.add_prompt(prompt("tea", "q2", "Thanks", "r1"))
    history.begin_answer(answer("tea", "r2", "q2"))
    history.finish_answer("r2", "Bye", done("Bye"), AnswerState.DONE)
    history.begin_answer(answer("tea", "r1b", "r0"))  # the last round, generated again
    history.finish_answer("r1b", "Noon.", done("Noon."), AnswerState.DONE)
    first, second = stored_prompts(history, "tea")
    assert [[one.id for one in found.rounds] for found in first.answers] == [
        ["r0", "r1"],
        ["r0", "r1b"],
    ]
    assert first.answers[0].rounds[0] is first.answers[1].rounds[0]
    assert second.parent_id == "r1"
    conversation = open_conversation(history, "tea")
    assert [turn.answer.id for turn in conversation.turns] == ["r1b"]
    assert conversation.go_to("r2")
    assert [turn.answer.id for turn in conversation.turns] == ["r1", "r2"]
    history.close()


def test_an_answer_that_a_prompt_follows_stays_when_its_rounds_go_on(history: History) -> None:
    ask(history)
    history.add_prompt(prompt("tea", "q2", "Never mind", "r0"))
    history.begin_answer(answer("tea", "a2", "q2"))
    history.finish_answer("a2", "As you like", done("As you like"), AnswerState.DONE)
    history.begin_answer(answer("tea", "r1", "r0"))
    history.finish_answer("r1", "Noon.", done("Noon."), AnswerState.DONE)
    first, _ = stored_prompts(history, "tea")
    assert [found.id for found in first.answers] == ["r0", "r1"]
    history.close()


def test_a_conversation_writes_and_reads_the_same_rounds(history: History) -> None:
    ids = iter(f"id{number}" for number in range(9))
    talk = Conversation(lambda: next(ids), "tea")
    turn = talk.ask("Time?", GenerateSettings(), images=(PICTURE,))
    history.begin("tea", "Time")
    history.add_prompt(stored_prompt(talk, turn.prompt))
    history.begin_answer(stored_answer(talk, turn))
    turn.answer.last.calls = (NOON,)
    turn.answer.end(done(WRITTEN))
    history.finish_answer(
        turn.answer.id, WRITTEN, turn.answer.done, state_of(turn.answer), SPANS, (NOON,)
    )
    talk.next_round(turn)
    assert turn.answer.is_running
    assert [one.role for one in talk.messages()] == [Role.USER, Role.ASSISTANT, Role.TOOL]
    assert talk.messages()[0].content == (PICTURE, TextPart("Time?"))
    history.begin_answer(stored_answer(talk, turn))
    turn.answer.end(done("Noon."))
    history.finish_answer(
        turn.answer.id, "Noon.", turn.answer.done, state_of(turn.answer), (AnswerSpan(0, 5, False),)
    )
    again = open_conversation(history, "tea")
    assert again.remembered()[0].content == (PICTURE, TextPart("Time?"))
    assert again.remembered()[2:] == talk.remembered()[2:]
    assert again.remembered()[1] == talk.remembered()[1].with_text("Let me see.")
    history.close()


def test_a_later_round_that_failed_leaves_the_earlier_ones(history: History) -> None:
    answer_in_rounds(history)
    talk = open_conversation(history, "tea")
    (turn,) = talk.turns
    assert talk.next_round(turn) is turn.answer.last
    history.begin_answer(stored_answer(talk, turn))
    turn.answer.end()
    talk.remove_last_round(turn)
    history.finish_answer(turn.answer.id, "", None, state_of(turn.answer))
    history.set_leaf("tea", talk.leaf_id)
    assert talk.turns[0].answer is talk.turns[0].prompt.answers[0]
    for shown in (talk, open_conversation(history, "tea")):
        assert [one.id for one in shown.turns[0].answer.rounds] == ["r0", "r1"]
        assert not shown.turns[0].answer.is_running
        assert shown.ask("And now?", GenerateSettings()).prompt.parent_id == "r1"
    history.close()


def test_a_round_that_begins_after_a_following_prompt_makes_another_answer() -> None:
    talk = Conversation(session_id="tea")
    turn = talk.ask("Time?", GenerateSettings())
    turn.answer.end(done("Let me see."))
    first = turn.answer
    talk.ask("Never mind", GenerateSettings())
    talk.next_round(turn)
    assert turn.prompt.answers == [first, turn.answer]
    assert turn.answer.rounds[0] is first.last
    assert [len(one.rounds) for one in turn.prompt.answers] == [1, 2]

    assert talk.turns == [turn], "the following prompt belongs to the other answer"
    turn.answer.end()
    talk.remove_last_round(turn)
    assert turn.prompt.answers == [first]
    assert [one.prompt.text for one in talk.turns] == ["Time?", "Never mind"]


def test_a_rerolled_last_round_that_failed_leaves_no_answer_without_it(history: History) -> None:
    answer_in_rounds(history)
    talk = open_conversation(history, "tea")
    old = talk.turns[0].answer
    turn = talk.reroll(0, GenerateSettings())
    turn.answer.end()
    talk.remove_last_round(turn)
    assert turn.prompt.answers == [old]
    assert [one.answer for one in talk.turns] == [old]
    history.close()


def test_an_answer_whose_next_round_is_written_is_not_merged_as_another(history: History) -> None:
    ask(history)
    history.save_call("r0", 0, NOON)
    talk = open_conversation(history, "tea")
    (turn,) = talk.turns
    talk.next_round(turn)
    history.begin_answer(stored_answer(talk, turn))
    ended = stored_prompts(history, "tea", only_ended=True)
    assert not talk.merge(ended, follows=False)
    assert turn.prompt.answers == [turn.answer]
    history.finish_answer(turn.answer.id, "Noon.", done("Noon."), AnswerState.DONE)
    (there,) = stored_prompts(history, "tea", only_ended=True)
    assert [len(one.rounds) for one in there.answers] == [2]
    history.close()


def test_a_rerolled_last_round_keeps_the_earlier_ones(history: History) -> None:
    answer_in_rounds(history)
    talk = open_conversation(history, "tea")
    old = talk.turns[0].answer
    turn = talk.reroll(1, GenerateSettings(thinks=True))
    assert turn.answer.rounds[:-1] == old.rounds[:-1]
    assert turn.answer.keep_tokens == 1
    assert [one.role for one in talk.messages()] == [
        Role.USER,
        Role.ASSISTANT,
        Role.TOOL,
        Role.ASSISTANT,
    ]
    assert talk.messages()[-1].token_ids == (1, 2, 3)
    assert stored_answer(talk, turn).parent_id == "r0"
    history.close()


@pytest.mark.parametrize(
    ("state", "after"),
    [
        (CallState.REQUESTED, CallState.REQUESTED),
        (CallState.APPROVED, CallState.REQUESTED),
        (CallState.RUNNING, CallState.INTERRUPTED),
        (CallState.DENIED, CallState.DENIED),
    ],
)
def test_a_call_of_a_killed_program_never_runs_by_itself(
    tmp_path: Path, state: CallState, after: CallState
) -> None:
    history = History(tmp_path / "history.db", Clock())
    ask(history)
    history.save_call("r0", 0, RoundCall(CALL, state, Approval.CONVERSATION))
    copy = tmp_path / "killed.db"
    with closing(sqlite3.connect(tmp_path / "history.db")) as db:
        db.execute("VACUUM INTO ?", (str(copy),))
    history.close()
    opened = History(copy, Clock())
    (call,) = the_answer(opened).rounds[0].calls
    assert call.state is after
    assert (call.approval is Approval.NONE) == (state is CallState.APPROVED)
    assert call.message.text
    opened.close()


@pytest.mark.parametrize("state", [CallState.APPROVED, CallState.RUNNING])
def test_a_call_under_way_does_not_run_in_a_copy(history: History, state: CallState) -> None:
    ask(history)
    history.save_call("r0", 0, RoundCall(CALL, state, Approval.ONCE))
    history.duplicate("tea", "copy", "Copy")
    (call,) = history.messages("copy")[1].calls
    is_running = state is CallState.RUNNING
    assert call.state is (CallState.INTERRUPTED if is_running else CallState.REQUESTED)
    assert history.messages("tea")[1].calls[0].state is state
    history.close()


def test_a_call_of_a_deleted_answer_cannot_be_saved(history: History) -> None:
    ask(history)
    history.trash(["tea"])
    history.empty_trash()
    with pytest.raises(RequestError):
        history.save_call("r0", 0, NOON)
    history.close()


def test_images_are_stored_once_and_deleted_with_their_last_message(history: History) -> None:
    shown = replace(NOON, result=ToolResult((TextPart("See "), PICTURE, TextPart("!"))))
    for name in ("tea", "soup"):
        history.begin(name, name)
        message = prompt(name, f"{name}-q", "Look")
        history.add_prompt(replace(message, content=(PICTURE, *message.content)))
    history.begin_answer(answer("tea", "r0", "tea-q"))
    history.finish_answer("r0", "", None, AnswerState.CUT, (), (RoundCall(CALL),))
    history.save_call("r0", 0, shown)
    history.save_call("r0", 0, shown)
    (_, message) = history.messages("tea")
    assert message.calls == (shown,)
    history.duplicate("tea", "copy", "Copy")
    assert history.messages("copy")[1].calls == (shown,)
    count = "SELECT (SELECT count(*) FROM blobs), (SELECT count(*) FROM images)"
    assert history._database.rows(count) == [(1, 5)]
    history.trash(["tea", "copy"])
    history.empty_trash()
    assert history.messages("soup")[0].content == (PICTURE, TextPart("Look"))
    history.trash(["soup"])
    history.empty_trash()
    assert history._database.rows(count) == [(0, 0)]
    history.close()


def test_an_export_is_imported_with_rounds_and_images(tmp_path: Path, history: History) -> None:
    answer_in_rounds(history)
    failed = ToolResult((TextPart("no "), PICTURE), is_error=True, duration_s=2.0)
    history.save_call("r0", 0, RoundCall(CALL, CallState.FAILED, Approval.ALWAYS, failed))
    path = tmp_path / "out.json"
    export(history, path, FileKind.JSON)
    raw = json.loads(path.read_text(encoding="utf-8"))
    assert raw["version"] == 4
    other = History(tmp_path / "other.db", Clock())
    with ConversationFile(path) as file:
        other.import_all(file)
    kept = [(m.id, m.parent_id, m.content, m.calls) for m in history.messages("tea")]
    assert [(m.id, m.parent_id, m.content, m.calls) for m in other.messages("tea")] == kept
    assert [one.id for one in the_answer(other).rounds] == ["r0", "r1"]
    # A call that was under way where the file was written doesn't run here.
    raw["conversations"][0]["messages"][1]["calls"][0]["state"] = "running"
    raw["conversations"][0]["id"] = "again"
    path.write_text(json.dumps(raw), encoding="utf-8")
    with ConversationFile(path) as file:
        other.import_all(file)
    assert other.messages("again")[1].calls[0].state is CallState.INTERRUPTED
    for state in ("requested", "approved"):  # nor does one that was approved there
        raw["conversations"][0]["messages"][1]["calls"][0]["state"] = state
        raw["conversations"][0]["id"] = state
        path.write_text(json.dumps(raw), encoding="utf-8")
        with ConversationFile(path) as file:
            other.import_all(file)
        (call,) = other.messages(state)[1].calls
        assert (call.state, call.approval) == (CallState.REQUESTED, Approval.NONE)
    history.close()
    other.close()


def test_a_salvaged_history_has_the_calls_and_images_of_its_backup(tmp_path: Path) -> None:
    history = History(tmp_path / "history.db", Clock())
    answer_in_rounds(history)
    history.save_call("r0", 0, replace(NOON, result=ToolResult((PICTURE,))))
    history.close()
    backup = backup_of(tmp_path / "history.db")
    with closing(sqlite3.connect(tmp_path / "history.db")) as db:
        db.execute("DELETE FROM images")
        db.execute("DELETE FROM calls")
        db.execute("UPDATE blobs SET number = 77, data = x'00'")
        db.commit()
        db.execute("ATTACH ? AS backup", (str(backup),))
        mend(db, True)
        db.commit()
    history = History(tmp_path / "history.db", Clock())
    (call,) = the_answer(history).rounds[0].calls
    assert call.result == ToolResult((PICTURE,))
    assert history.problems() == ()
    history.close()


@pytest.mark.parametrize("version", range(1, len(MIGRATIONS)))
def test_histories_of_all_earlier_versions_are_migrated_after_a_backup(
    tmp_path: Path, version: int
) -> None:
    path = tmp_path / "history.db"
    dump = Path(__file__).with_name("version_1.sql").read_text(encoding="utf-8")
    with closing(sqlite3.connect(path)) as db:
        db.executescript(dump)
    open_database(path, MIGRATIONS[:version]).close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA user_version").fetchone() == (version,)
        texts = db.execute("SELECT id, text FROM messages ORDER BY number").fetchall()
    history = History(path, Clock())
    assert (tmp_path / f"history.db.backup-{version}").exists()
    found = [m for info in history.conversations() for m in history.messages(info.id)]
    assert sorted((m.id, m.text) for m in found) == sorted(texts)
    for info in history.conversations():
        turns = open_conversation(history, info.id).turns
        assert all(len(turn.answer.rounds) == 1 for turn in turns)
    history.begin_answer(answer("tea", "new", "tea-1"))
    history.finish_answer("new", "More.", done("More."), AnswerState.DONE, None, (NOON,))
    assert history.problems() == ()
    history.close()


def test_an_older_program_refuses_the_newer_schema(tmp_path: Path) -> None:
    filled(tmp_path / "history.db", Clock()).close()
    with pytest.raises(Exception, match="newer"):
        open_database(tmp_path / "history.db", MIGRATIONS[:3])
