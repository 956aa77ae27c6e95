"""What is kept of an answer's reasoning: apart from what was said, in old files as well."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from medusa_core.chats.history.exchange.export import FileKind, export
from medusa_core.chats.history.exchange.reading import ConversationFile
from medusa_core.chats.history.history import History
from medusa_core.chats.history.mending import mend
from medusa_core.chats.history.packing import pack_steps, spans_from_json
from medusa_core.chats.history.records import AnswerState
from medusa_core.chats.history.schema import MIGRATIONS
from medusa_core.chats.history.stored_chats import open_conversation
from medusa_core.chats.reasoning import AnswerSpan
from medusa_core.messages import ReasoningFormat, StepDone
from medusa_core.system.storage.database import open_database
from tests.support.history.samples import Clock, answer, done, prompt, steps

TAGS = ReasoningFormat("[MIND]", "[/MIND]", tokens=((128_255, "[MIND]"),))
TEXT = "Hm, tulips.[/MIND]Roses."
SPANS = (AnswerSpan(0, 11, True), AnswerSpan(18, 24, False))
OLD = {
    "leading": ("<think>hm</think>Yes.", "Yes."),
    "began inside": ("Let me see.\n</think>\n\nYes.", "Yes."),
    "in code": (
        "So:\n\n```\n<think>\na\n</think>\nb\n```",
        "So:\n\n```\n<think>\na\n</think>\nb\n```",
    ),
    "in code, alone": ("So:\n\n```\n</think>\n```", "So:\n\n```\n</think>\n```"),
    "told not to think": ("Tags:\n</think>\nend.", "Tags:\n</think>\nend."),
    "spelled": ("Tags:\n</think>\nend it.", "Tags:\n</think>\nend it."),
}


def history_with(path: Path, text: str = TEXT) -> History:
    history = History(path, Clock())
    history.begin("tea", "About tea")
    history.add_prompt(prompt("tea", "q", "Which?"))
    history.begin_answer(answer("tea", "a", "q"))
    history.set_reasoning("a", TAGS, begins_inside=True)
    history.append_steps("a", tuple(steps(text)))
    return history


def test_reasoning_is_not_searched_or_spoken_and_not_lost(tmp_path: Path) -> None:
    history = history_with(tmp_path / "history.db")
    history.finish_answer("a", TEXT, done(TEXT), AnswerState.DONE, SPANS)
    assert [hit.snippet for hit in history.search("roses")] == ["Roses."]
    assert history.search("tulips") == ()
    history.close()
    history = History(tmp_path / "history.db", Clock())
    (turn,) = open_conversation(history, "tea").turns
    assert (turn.answer.text, turn.answer.content.answer) == (TEXT, "Roses.")
    assert (turn.answer.content.reasoning, turn.answer.content.begins_inside) == (TAGS, True)
    assert turn.answer.messages(keeps_reasoning=False)[0].token_ids == ()
    export(history, tmp_path / "out.md", FileKind.MARKDOWN)
    text = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert "> *Thought*\n>\n> Hm, tulips.\n\nRoses.\n" in text
    export(history, tmp_path / "out.html", FileKind.HTML)
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "<summary>Thought</summary><blockquote><p>Hm, tulips.</p>" in page
    assert "MIND" not in text + page
    export(history, tmp_path / "out.json", FileKind.JSON)
    (one,) = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))["conversations"]
    assert one["messages"][1]["answer"]["spans"] == [[0, 11, 1], [18, 24, 0]]
    assert one["messages"][1]["answer"]["begins_inside"] is True
    history.close()


def test_an_unfinished_answer_is_parsed_by_its_models_format(tmp_path: Path) -> None:
    history = history_with(tmp_path / "history.db", TEXT[:12])
    (_, message) = history.messages("tea")
    assert message.spans == (AnswerSpan(0, 12, True),)
    history.close()
    history = History(tmp_path / "history.db", Clock())
    (turn,) = open_conversation(history, "tea").turns
    assert (turn.answer.is_cut, turn.answer.content.answer) == (True, "")
    assert history.search("tulips") == ()
    history.close()


def test_the_index_is_rebuilt_without_reasoning(tmp_path: Path) -> None:
    history = history_with(tmp_path / "history.db")
    history.finish_answer("a", TEXT, done(TEXT), AnswerState.DONE, SPANS)
    history.close()
    with closing(sqlite3.connect(tmp_path / "history.db")) as db:
        mend(db, False)
        found = db.execute("SELECT c0 FROM message_words_content ORDER BY id").fetchall()
        db.commit()
    assert [words for (words,) in found] == ["which?\nnotes.txt", "roses."]


def written(text: str, *, by_tokens: bool) -> list[StepDone]:
    """Steps of an answer whose tags are tokens with text, or all of it one token."""
    tags = text.replace("</think>", "\0</think>\0").split("\0")
    (template,) = steps("x")
    made, num_bytes = [], 0
    for number, piece in enumerate(filter(None, tags) if by_tokens else [text]):
        num_bytes += len(piece)
        one = template._replace(step=number, pieces=(piece.encode(), b""))
        made.append(one._replace(num_visible_bytes=num_bytes))
    return made


@pytest.mark.parametrize("name", ["leading", "began inside", "in code", "spelled"])
def test_reasoning_of_version_1_files_is_recognised(tmp_path: Path, name: str) -> None:
    text, said = OLD[name]
    history = History(tmp_path / "history.db", Clock())
    history.begin("tea", "About tea")
    history.add_prompt(prompt("tea", "q", "Which?"))
    history.begin_answer(answer("tea", "a", "q"))
    history.append_steps("a", written(text, by_tokens=name != "spelled"))
    history.finish_answer("a", text, done(text), AnswerState.DONE)
    path = tmp_path / "out.json"
    export(history, path, FileKind.JSON)
    history.close()
    raw = path.read_text(encoding="utf-8")
    assert "spans" not in raw, "as version 1 wrote it"
    path.write_text(raw.replace('"version": 2', '"version": 1'), encoding="utf-8")
    history = History(tmp_path / "new.db", Clock())
    with ConversationFile(path) as found:
        history.import_all(found)
    (info,) = history.conversations()
    (turn,) = open_conversation(history, info.id).turns
    assert (turn.answer.text, turn.answer.content.answer) == (text, said)
    assert turn.answer.content.begins_inside is (name == "began inside")
    history.close()


@pytest.mark.parametrize("name", OLD)
def test_reasoning_of_version_2_files_is_recognised(tmp_path: Path, name: str) -> None:
    text, said = OLD[name]
    path = tmp_path / "history.db"
    open_database(path, MIGRATIONS[:2]).close()
    made = written(text, by_tokens=name != "spelled")
    settings = '{"thinks": false}' if name == "told not to think" else "{}"
    with closing(sqlite3.connect(path)) as db:
        db.execute(
            "INSERT INTO conversations (id, title, created_s, changed_s, place)"
            " VALUES ('tea', 'Tea', 1, 1, 1)"
        )
        for row in (("q", None, "user", "Which?"), ("a", 1, "assistant", text)):
            db.execute(
                "INSERT INTO messages (id, conversation, parent, role, text, created_s)"
                " VALUES (?, 1, ?, ?, ?, 1)",
                row,
            )
            db.execute(
                "INSERT INTO message_words (rowid, words) VALUES (last_insert_rowid(), ?)",
                (row[3].lower(),),
            )
        db.execute("INSERT INTO answers VALUES (2, 'm', 'm', 'done', ?, NULL)", (settings,))
        db.execute("INSERT INTO steps (message, packed) VALUES (2, ?)", (pack_steps(made),))
        db.commit()
    history = History(path, Clock())
    assert (tmp_path / "history.db.backup-2").exists()
    (turn,) = open_conversation(history, "tea").turns
    assert (turn.answer.text, turn.answer.content.answer) == (text, said)
    assert turn.answer.content.begins_inside is (name == "began inside")
    assert (history.search("hm") == ()) is ("hm" not in said)
    history.close()


@pytest.mark.parametrize("raw", [[[0, 5, 1], [3, 6, 0]], [[0, 30, 0]], [[-1, 2, 0]], [[0, 1]], 5])
def test_spans_outside_of_their_text_are_refused(raw: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        spans_from_json(raw, 20)


def test_damaged_spans_affect_nothing_else(tmp_path: Path) -> None:
    history = history_with(tmp_path / "history.db")
    history.finish_answer("a", TEXT, done(TEXT), AnswerState.DONE, SPANS)
    history.close()
    with closing(sqlite3.connect(tmp_path / "history.db")) as db:
        db.execute("UPDATE answers SET spans = '[[0, 999, 0]]', reasoning = '{\"start\": 5}'")
        db.commit()
    history = History(tmp_path / "history.db", Clock())
    (turn,) = open_conversation(history, "tea").turns
    assert turn.answer.text == TEXT
    history.close()
