"""Conversations that are kept: the tree, answers while they are written, lists, trash, search."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from medusa_core.chats.attachments.attachment import Attachment
from medusa_core.chats.history.history import History
from medusa_core.chats.history.records import (
    AnswerState,
    StoredAnswer,
)
from medusa_core.errors import RequestError
from tests.support.history.samples import Clock, answer, done, filled, prompt, steps, tell


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    history = filled(tmp_path / "history.db", Clock())
    yield history
    history.close()


def again(history: History, path: Path) -> History:
    history.close()
    return History(path, Clock(1_800_000_000.0))


def test_a_tree_of_messages_is_stored_and_loaded_unchanged(
    history: History, tmp_path: Path
) -> None:
    history = again(history, tmp_path / "history.db")
    messages = history.messages("tea")
    assert [m.parent_id for m in messages] == [None, "tea-0", "tea-1", "tea-2", "tea-1", "tea-4"]
    first = messages[1]
    assert messages[0] == prompt("tea", "tea-0", "How long does green tea steep?")
    reported = first.answer
    assert reported is not None
    assert reported.steps == tuple(steps("Two minutes, not more."))
    assert reported == StoredAnswer(
        "Pebble",
        "/models/pebble",
        AnswerState.DONE,
        answer("", "", "").answer.settings,  # type: ignore[union-attr]
        done("Two minutes, not more."),
        reported.packed_steps,
    )
    assert history.conversation("tea").leaf_id == "tea-5"
    history.set_leaf("tea", "tea-3")
    assert history.conversation("tea").leaf_id == "tea-3"
    history.close()


def test_an_interrupted_answer_is_marked_as_cut_and_keeps_its_text(
    history: History, tmp_path: Path
) -> None:
    text = "Bäume wachsen 東"
    history.begin("cut", "")
    history.add_prompt(prompt("cut", "a", "?"))
    history.begin_answer(answer("cut", "b", "a"))
    for step in steps(text):
        history.append_steps("b", (step,))
    history = again(history, tmp_path / "history.db")
    last = history.messages("cut")[-1]
    assert last.text == text
    assert last.answer is not None
    assert last.answer.state is AnswerState.CUT
    assert last.answer.steps == tuple(steps(text))
    assert history.search("wachsen")[0].message_id == "b"
    history.close()


def test_a_duplicate_has_all_branches_figures_and_traces_and_is_independent(
    history: History,
) -> None:
    folder = history.add_folder("Kitchen")
    history.move("tea", folder.id)
    history.pin("tea")
    history.set_settings("tea", '{"temperature": 0.5}')
    history.set_leaf("tea", "tea-3")
    history.put_trace("tea-1", b"steps of green tea")
    history.duplicate("tea", "copy", "Tea again")
    info = history.conversation("copy")
    assert history.conversations()[0] == info
    assert (info.title, info.has_own_title, info.is_pinned) == ("Tea again", True, False)
    assert (info.folder_id, info.num_messages) == (folder.id, 6)
    assert history.settings("copy") == '{"temperature": 0.5}'
    first, second = history.messages("tea"), history.messages("copy")
    names = {one.id: other.id for one, other in zip(first, second, strict=True)}
    assert not set(names) & set(names.values())
    for one, other in zip(first, second, strict=True):
        parent_id = None if one.parent_id is None else names[one.parent_id]
        assert replace(one, id=names[one.id], conversation_id="copy", parent_id=parent_id) == other
    assert info.leaf_id == names["tea-3"]
    assert history.trace(names["tea-1"]) == b"steps of green tea"
    tell(history, "copy", "And mint tea?", "As you like.", names["tea-3"])
    assert len(history.messages("tea")) == 6
    history.trash(("tea",))
    history.empty_trash(("tea",))
    assert len(history.messages("copy")) == 8
    assert {hit.conversation_id for hit in history.search("green")} == {"copy"}
    assert not history.problems()


def test_an_unfinished_answer_is_cut_in_a_duplicate_and_continues_in_the_original(
    history: History,
) -> None:
    history.begin("long", "Long")
    history.add_prompt(prompt("long", "a", "?"))
    history.begin_answer(answer("long", "b", "a"))
    all_steps = tuple(steps("So far. And on."))
    history.append_steps("b", all_steps[:4])
    history.duplicate("long", "copy", "Long (copy)")
    history.append_steps("b", all_steps[4:])
    copied = history.messages("copy")[-1]
    assert copied.text == "So far. "
    assert copied.answer is not None
    assert copied.answer.state is AnswerState.CUT
    original = history.messages("long")[-1]
    assert original.text == "So far. And on."
    assert original.answer is not None
    assert original.answer.state is AnswerState.STREAMING


def test_a_deleted_conversation_isnt_duplicated(history: History) -> None:
    with pytest.raises(RequestError):
        history.duplicate("nowhere", "copy", "Copy")
    assert len(history.conversations()) == 2


def test_order_holds_when_the_clock_is_moved_back(tmp_path: Path) -> None:
    clock = Clock(2_000_000_000.0)
    history = filled(tmp_path / "history.db", clock)
    clock.now_s = 1_000_000_000.0
    history.begin("new", "New")
    assert [info.id for info in history.conversations()] == ["new", "ships", "tea"]
    tell(history, "tea", "Back again?", "Yes.", "tea-5")
    assert [info.id for info in history.conversations()] == ["tea", "new", "ships"]
    assert [m.id for m in history.messages("tea")][-2:] == ["tea-6", "tea-7"]
    assert history.conversation("tea").changed_s < 1_000_000_100.0
    history.close()


def test_folders_pins_titles_drafts_and_settings_are_kept(history: History, tmp_path: Path) -> None:
    folder = history.add_folder("Kitchen")
    history.move("tea", folder.id)
    history.pin("ships")
    history.rename("tea", "Mine")
    history.rename("tea", "Made by a model", by_user=False)
    history.set_draft("", "not sent")
    code = Attachment("b.py", "text/x-python", "b = 1", 5)
    files = (code, Attachment("a.txt", "text/plain", "", 0))
    history.set_draft_files("tea", files)
    history.set_settings("tea", '{"a": 1}')
    history = again(history, tmp_path / "history.db")
    tea = history.conversation("tea")
    assert (tea.title, tea.has_own_title, tea.folder_id) == ("Mine", True, folder.id)
    assert history.conversation("ships").is_pinned
    assert [info.id for info in history.conversations(folder_id=folder.id)] == ["tea"]
    assert [info.id for info in history.conversations(folder_id=None)] == ["ships"]
    assert (history.draft(), history.settings("tea")) == ("not sent", '{"a": 1}')
    assert (history.draft_files("tea"), history.draft_files()) == (files, ())
    history.set_draft("", "")
    history.set_draft_files("tea", ())
    assert (history.draft(), history.draft_files("tea")) == ("", ())
    history.close()


def test_traces_are_bounded_and_the_oldest_are_dropped(history: History) -> None:
    for name in ("tea-1", "tea-3", "tea-5"):
        history.put_trace(name, name.encode() * 10, most_bytes=110)
    assert history.trace("tea-1") is None
    assert history.trace("tea-3") == b"tea-3" * 10
    assert history.trace("tea-5") == b"tea-5" * 10


def found(history: History, text: str) -> list[str]:
    return [hit.message_id or hit.conversation_id for hit in history.search(text)]


def test_search_finds_prefixes_of_words_in_any_case_and_script(history: History) -> None:
    assert found(history, "MINU") == ["tea-3", "tea-1"]
    assert found(history, "jorg creme") == found(history, "Jörg CRÈME") == ["tea-4"]
    assert found(history, "京の天") == ["tea-5"]
    assert found(history, "house keep") == ["ships-1"]  # inside of a word
    assert found(history, "tea")[0] == "tea"
    hit = history.search("steep")[0]
    assert [hit.snippet[a:b] for a, b in hit.spans] == ["steep"]


def test_search_accepts_any_text(history: History) -> None:
    odd = ('"', "tea OR", "NEAR(", "words:tea", "*", "a*b", "^x", "-", "'; DROP", "\0", "\ud800")
    for text in (*odd, "🙂"):
        history.search(text)
        assert found(history, "tea"), text


def test_trashed_conversations_can_be_restored_and_arent_searched(history: History) -> None:
    history.trash(["tea"])
    assert [info.id for info in history.conversations()] == ["ships"]
    assert found(history, "minutes") == []
    history.restore(["tea"])
    assert found(history, "minutes") == ["tea-3", "tea-1"]


def test_text_of_an_emptied_trash_is_in_no_file(history: History, tmp_path: Path) -> None:
    path = tmp_path / "history.db"
    history.put_trace("ships-1", b"trace of the lighthouse")
    history.set_draft("ships", "draft of the lighthouse")
    lighthouse = Attachment("lighthouse.txt", "text/plain", "lighthouse", 10)
    history.set_draft_files("ships", (lighthouse,))
    (tmp_path / "history.db.backup-1").write_bytes(path.read_bytes())
    (tmp_path / "history.db.damaged-1").write_bytes(path.read_bytes())
    reported: list[tuple[str, ...]] = []
    history.on_emptied(reported.append)
    history.trash(["ships"])
    history.empty_trash()
    assert reported == [("ships",)]
    # What is damaged isn't deleted without a question.
    assert [file.name for file in history.set_aside()] == ["history.db.damaged-1"]
    history.remove_set_aside()
    raw = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"lighthouse" not in raw.lower()
    assert b"minutes" in raw
    assert found(history, "minutes") == ["tea-3", "tea-1"]


def test_a_second_program_doesnt_end_an_answer_that_the_first_one_writes(
    history: History, tmp_path: Path
) -> None:
    history.begin_answer(answer("tea", "open", "tea-4"))
    history.append_steps("open", tuple(steps("So far")))
    second = History(tmp_path / "history.db", Clock())
    reported = second.messages("tea")[-1].answer
    assert reported is not None
    assert reported.state is AnswerState.STREAMING
    second.begin("other", "Of the second")
    second.close()
    history.finish_answer("open", "So far so good", None, AnswerState.CUT)
    assert history.messages("tea")[-1].text == "So far so good"
    assert history.conversation("other").title == "Of the second"


def test_missing_conversations_are_distinguished_from_disk_errors(history: History) -> None:
    with pytest.raises(RequestError):
        history.begin("tea", "Again")
    with pytest.raises(RequestError):
        history.add_prompt(prompt("tea", "tea-0", "Again"))
    with pytest.raises(RequestError):
        history.append_steps("gone", tuple(steps("text")))
    with pytest.raises(RequestError):
        history.set_leaf("tea", "ships-0")
    assert history.conversation("tea").num_messages == 6
