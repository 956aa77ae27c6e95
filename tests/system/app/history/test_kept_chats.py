"""What is said is there again at the next start, and can be found, sorted and thrown away."""

import asyncio
import json
import shutil
import sys
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pypdf import PdfReader
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QMessageBox, QPushButton
from pytestqt.qtbot import QtBot

from app.history.files import _KINDS
from app.history.grouping import Heading, rows_of
from app.history.history_controller import NOT_SAVED
from app.history.titles import title_in
from app.state.chat import Draft
from app.window.application import continue_or_explain
from app.window.commands.palette import Palette
from app.window.main_window import MainWindow
from medusa_core.api import (
    Attachment,
    ConversationFile,
    ConversationInfo,
    FileKind,
    Folder,
    History,
)
from medusa_core.chats.history.exchange.export import export
from medusa_core.chats.history.importing import ImportCounts
from medusa_core.chats.history.stored_chats import open_conversation
from medusa_core.chats.settings import ChatSettings
from medusa_core.errors import StorageError
from medusa_core.loading.choice import (
    ModelChoice,
    demo_choice,
)
from medusa_core.messages import Cancel, Generate, Role, StopReason, ThinkingSwitch
from tests.support.history.damage import harm_pack
from tests.support.window.driving import ask, errors, figure_texts, user_messages, wait_ready
from tests.support.window.fakes import LONG, Script
from tests.support.window.history_fixtures import OpenSaved, choose


def titles(window: MainWindow) -> list[str]:
    return [row.title for row in window.sidebar.model.rows if isinstance(row, ConversationInfo)]


def rows_text(row: object) -> str:
    assert isinstance(row, Heading | ConversationInfo)
    return row.text if isinstance(row, Heading) else row.title


def click(window: MainWindow, title: str) -> None:
    """Click on a row of the list."""
    rows = window.sidebar.model.rows
    place = next(n for n, row in enumerate(rows) if getattr(row, "title", "") == title)
    view = window.sidebar.list
    at = view.visualRect(window.sidebar.model.index(place)).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)


def test_a_restored_conversation_has_its_marks_figures_and_versions(
    qtbot: QtBot, open_saved: OpenSaved
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    window.chat.regenerate()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    before = window.chat.answers[-1]
    window, engine = open_saved()
    assert window.chat.answers == ()
    assert titles(window) == ["one"]
    click(window, "one")
    assert [message.text for message in user_messages(window)] == ["one", "two"]
    after = window.chat.answers[-1]
    assert after.content.text == before.content.text
    assert after.marked_ranges() == before.marked_ranges() != ()
    assert figure_texts(after) == figure_texts(before)
    assert after.row.versions.text == "2/2"
    answer = ask(qtbot, window, "three")
    assert answer.content.text
    requested = engine.of_kind(Generate)[-1].messages
    assert [message.text for message in requested][::2] == ["one", "two", "three"]
    assert requested[1].token_ids


INSIDE = ThinkingSwitch(True, True, True)
THOUGHT_HARD = "I think hard about it.</think>The answer is 4."


def test_reasoning_stays_apart_after_a_restart(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path
) -> None:
    window, _ = open_saved(Script(answer=THOUGHT_HARD, thinking=INSIDE))
    ask(qtbot, window, "one")
    window, engine = open_saved(Script(thinking=INSIDE))
    click(window, "one")
    (message,) = window.chat.answers
    assert message.searched_text == "The answer is 4."
    assert message.view.toPlainText() == "The answer is 4."
    assert message.fold is not None
    assert message.fold.view.toPlainText() == "I think hard about it."
    message.row.copy_button.click()
    assert QGuiApplication.clipboard().text() == "The answer is 4."
    ask(qtbot, window, "two")
    requested = engine.of_kind(Generate)[-1].messages
    assert [one.text for one in requested] == ["one", "The answer is 4.", "two"]
    assert requested[1].token_ids == ()
    assert window.history is not None
    history = window.history.history
    assert [hit.snippet for hit in history.search("answer")] == ["The answer is 4."]
    assert history.search("hard") == ()
    for kind in (FileKind.MARKDOWN, FileKind.HTML):
        path = tmp_path / f"out.{kind.value}"
        export(history, path, kind)
        assert "</think>" not in path.read_text()
    path = tmp_path / "out.json"
    export(history, path, FileKind.JSON)
    copied = History(tmp_path / "copy.db")
    with ConversationFile(path) as found:
        copied.import_all(found)
    (info,) = copied.conversations()
    assert open_conversation(copied, info.id).messages()[1].text == "The answer is 4."
    copied.close()


def test_an_answer_cut_within_its_reasoning_is_continued_there(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path
) -> None:
    script = Script(answer="I think hard.", thinking=INSIDE, stop_reason=StopReason.MAX_TOKENS)
    window, _ = open_saved(script)
    ask(qtbot, window, "one")
    window, engine = open_saved(Script(answer=" Yes.</think> Four.", thinking=INSIDE))
    click(window, "one")
    panel = window.page.settings_panel
    panel.thinks_box.setCurrentIndex(2)
    panel.thinks_box.activated.emit(2)
    window.chat.go_on()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    command = engine.of_kind(Generate)[-1]
    assert isinstance(command, Generate)
    assert command.messages[-1].text == "I think hard."
    assert command.settings.thinks is None, "the prompt before it must be the same"
    message = window.chat.answers[-1]
    assert message.fold is not None
    assert message.view.toPlainText() == "Four."
    ask(qtbot, window, "two")
    (old,) = [m for m in engine.of_kind(Generate)[-1].messages if m.role is Role.ASSISTANT]
    assert old.text == "Four."


def test_reasoning_cut_by_a_crash_is_not_shown_as_an_answer(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path
) -> None:
    window, engine = open_saved(Script(answer=LONG, thinking=INSIDE), 40)
    engine.gate.clear()
    window.chat.send("long")
    qtbot.waitUntil(lambda: window.page.strip.tally.num_steps >= 30)
    assert window.history is not None
    window.history.save()
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for file in tmp_path.glob("history.db*"):
        shutil.copy(file, crashed)
    again = History(crashed / "history.db")
    (info,) = again.conversations()
    conversation = open_conversation(again, info.id)
    assert conversation.turns[0].answer.text
    assert conversation.turns[0].answer.content.answer == ""
    assert conversation.turns[0].answer.content.begins_inside
    again.close()
    engine.gate.set()


def test_an_answer_is_saved_while_it_is_written(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path
) -> None:
    window, engine = open_saved(Script(answer=LONG), 40)
    engine.gate.clear()
    window.chat.send("long")
    qtbot.waitUntil(lambda: window.page.strip.tally.num_steps >= 30)
    shown = window.chat.answers[0].document.text
    assert window.history is not None
    window.history.save()
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for file in tmp_path.glob("history.db*"):
        shutil.copy(file, crashed)
    again = History(crashed / "history.db")
    (info,) = again.conversations()
    *_, answer = again.messages(info.id)
    assert answer.text.startswith(shown[:50])
    assert answer.answer is not None
    assert answer.answer.state.value == "cut"
    again.close()
    engine.gate.set()


def test_an_unsent_message_stays_with_its_conversation(qtbot: QtBot, open_saved: OpenSaved) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    window.page.composer.edit.setPlainText("half a")
    window.chat.new_chat()
    assert window.page.composer.edit.toPlainText() == ""
    window.page.composer.edit.setPlainText("for a new one")
    window, _ = open_saved()
    assert window.page.composer.edit.toPlainText() == "for a new one"
    click(window, "one")
    assert window.page.composer.edit.toPlainText() == "half a"


def test_files_attached_just_before_or_after_a_switch_are_saved(
    qtbot: QtBot, open_saved: OpenSaved
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    state = window.chat.state
    before, after, new = (Attachment(name, "text/plain", name, 1) for name in ("a", "b", "c"))
    one = state.conversation.session_id
    state.attach(before)
    window.chat.new_chat()
    state.attach(after, session_id=one)  # its reading ended late
    state.write("next")
    state.attach(new)
    click(window, "one")
    assert state.draft.attachments == (before, after)
    window, _ = open_saved()
    state = window.chat.state
    assert state.draft == Draft("next", (new,))
    click(window, "one")
    assert state.draft.attachments == (before, after)


def test_a_prompt_that_fails_unseen_returns_to_its_conversation(
    qtbot: QtBot, open_saved: OpenSaved
) -> None:
    window, engine = open_saved()
    ask(qtbot, window, "one")
    engine.script = Script(prefill_error="Too long.")
    window.chat.send("precious words")
    window.chat.new_chat()
    qtbot.waitUntil(lambda: not window.chat.state.pending_sessions)
    assert window.chat.state.draft.text == ""
    window, _ = open_saved()
    click(window, "one")
    assert window.page.composer.edit.toPlainText() == "precious words"


def test_token_cards_of_a_stored_answer_use_its_stored_steps(
    qtbot: QtBot, open_saved: OpenSaved
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    window, _ = open_saved()
    click(window, "one")
    answer = window.chat.answers[0]
    answer.token_pressed.emit(3)
    assert window.insight.tree is not None
    track = window.insight.timeline.track
    assert track is not None
    assert track.request_id == answer.request_id
    assert window.insight.timeline.index == track.step_of(3)


def test_search_finds_words_and_shows_the_hit(qtbot: QtBot, open_saved: OpenSaved) -> None:
    window, engine = open_saved()
    ask(qtbot, window, "about foxes")
    engine.script = Script(answer="A heron stands in the reeds.")
    window.chat.new_chat()
    ask(qtbot, window, "about birds")
    window.sidebar.search_edit.setText("heron")
    qtbot.waitUntil(lambda: len(window.sidebar.model.rows) == 1)
    window.chat.new_chat()
    view = window.sidebar.list
    at = view.visualRect(window.sidebar.model.index(0)).center()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert window.chat.answers[0].document.text.startswith("A heron")
    window.sidebar.search_edit.setText("nowhere")
    qtbot.waitUntil(lambda: "Nothing was found" in window.sidebar.notice_label.text())
    window.sidebar.search_edit.clear()
    qtbot.waitUntil(lambda: len(titles(window)) == 2)


def test_conversations_are_renamed_pinned_and_put_into_folders(
    qtbot: QtBot, open_saved: OpenSaved, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_saved()
    for text in ("one", "two", "three"):
        ask(qtbot, window, text)
        window.chat.new_chat()
    monkeypatch.setattr("app.history.conversation_menu.ask_for_text", lambda *_: "Work")
    choose(window, "one", "Pin")
    choose(window, "two", "New folder…")
    choose(window, "three", "Rename…")
    rows = window.sidebar.model.rows
    assert [rows_text(row) for row in rows] == ["Pinned", "one", "Work", "two", "Today", "Work"]


def test_a_duplicated_conversation_has_its_versions_and_is_independent(
    qtbot: QtBot, open_saved: OpenSaved
) -> None:
    window, engine = open_saved()
    ask(qtbot, window, "one")
    window.chat.regenerate()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    first = window.chat.conversation.session_id
    choose(window, "one", "Duplicate")
    assert titles(window) == ["one (copy)", "one"]
    assert window.chat.conversation.session_id != first
    (answer,) = window.chat.answers
    assert answer.row.versions.isVisibleTo(answer.row)
    assert answer.marked_ranges()
    ask(qtbot, window, "and then?")
    command = engine.of_kind(Generate)[-1]
    assert isinstance(command, Generate)
    assert command.session_id != first
    assert [m.role for m in command.messages] == [Role.USER, Role.ASSISTANT, Role.USER]
    click(window, "one")
    assert len(window.chat.answers) == 1
    window, _ = open_saved()
    click(window, "one (copy)")
    assert len(window.chat.answers) == 2


def test_the_trash_restores_or_deletes_for_good(
    qtbot: QtBot, open_saved: OpenSaved, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_saved()
    for text in ("keep", "restore", "delete"):
        ask(qtbot, window, text)
        window.chat.new_chat()
    choose(window, "delete", "Move to trash")
    choose(window, "restore", "Move to trash")
    assert titles(window) == ["keep"]
    window.sidebar.trash_button.click()
    assert titles(window) == ["restore", "delete"] or titles(window) == ["delete", "restore"]
    click(window, "restore")
    assert window.history is not None
    window.history._menu.restore_chosen()
    monkeypatch.setattr(QMessageBox, "exec", lambda _: QMessageBox.StandardButton.Yes)
    window.sidebar.empty_button.click()
    assert window.sidebar.notice_label.text() == "The trash is empty."
    window.sidebar.trash_button.click()
    assert sorted(titles(window)) == ["keep", "restore"]


def test_trashing_the_shown_conversation_closes_it(qtbot: QtBot, open_saved: OpenSaved) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    window.sidebar.select(window.chat.conversation.session_id)
    QTest.keyClick(window.sidebar.list, Qt.Key.Key_Delete)
    assert window.chat.answers == ()
    assert titles(window) == []


def test_a_full_disk_loses_no_text(
    qtbot: QtBot, open_saved: OpenSaved, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_saved()

    def refuse(*_: object) -> None:
        raise StorageError("The disk is full.", "Make space.")

    with monkeypatch.context() as full:
        for name in ("begin", "append_steps", "finish_answer", "checkpoint"):
            full.setattr(History, name, refuse)
        ask(qtbot, window, "one")
        (card,) = errors(window)
        assert (card.message, card.hint) == ("The disk is full.", f"Make space. {NOT_SAVED}")
    assert window.history is not None
    assert window.history.journal._waiting
    window.history.journal.flush()
    assert not window.history.journal._waiting
    window.history.refresh()
    assert titles(window) == ["one"]
    window, _ = open_saved()
    click(window, "one")
    assert window.chat.answers[0].marked_ranges()


def test_a_list_is_grouped_by_folder_and_by_date() -> None:
    now = datetime(2026, 11, 23, 12)

    def output(days: float, **more: object) -> ConversationInfo:
        at = (now - timedelta(days=days)).timestamp()
        values = {"folder_id": None, "is_pinned": False, **more}
        return ConversationInfo(
            f"{days}", f"{days}", False, created_s=at, changed_s=at, trashed_s=None,
            leaf_id=None, num_messages=2, **values,  # type: ignore[arg-type]
        )  # fmt: skip

    reported = [
        output(-1),
        output(0),
        output(1),
        output(6),
        output(20),
        output(90),
        output(2, is_pinned=True),
    ]
    folders = [Folder("f", "Work"), Folder("e", "Empty")]
    rows = rows_of([*reported, output(3, folder_id="f")], folders, now)
    assert [rows_text(row) for row in rows] == [
        *("Pinned", "2", "Work", "3", "Empty", "Today", "-1", "0", "Yesterday", "1"),
        *("Last 7 days", "6", "Last 30 days", "20", "August 2026", "90"),
    ]


def test_each_conversation_keeps_its_own_settings(qtbot: QtBot, open_saved: OpenSaved) -> None:
    window, _ = open_saved()
    settings_panel = window.page.settings_panel
    settings_panel.system_edit.setPlainText("Be brief.")
    ask(qtbot, window, "first")
    settings_panel.choose_rule("sample")  # after its last question, too
    settings_panel.choose_number("temperature", 1.3)
    window.chat.new_chat()
    assert settings_panel.settings() == ChatSettings()
    ask(qtbot, window, "second")
    window, engine = open_saved()
    click(window, "first")
    settings = window.page.settings_panel.settings()
    assert (settings.system_prompt, settings.rule) == ("Be brief.", "sample")
    ask(qtbot, window, "third")
    requested = engine.of_kind(Generate)[0]
    assert requested.messages[0].text == "Be brief."
    assert requested.settings.temperature == 1.3
    click(window, "second")
    assert window.page.settings_panel.settings() == ChatSettings()


def export_as(
    window: MainWindow,
    monkeypatch: pytest.MonkeyPatch,
    typed: Path,
    kind: FileKind | None,
    title: str = "one",
    *,
    by_menu: bool = False,
) -> None:
    """Export to a name and with a filter that are chosen in the dialog."""
    assert window.history is not None
    files = window.history.files
    name = next(name for name, k in {**_KINDS, "PDF (*.pdf)": None}.items() if k is kind)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(typed), name))

    async def export() -> None:
        if by_menu:
            choose(window, title, "Export…")
        else:
            files.ask_to_export(None, title)
        await files.tasks.wait()

    asyncio.run(export())


def test_an_exported_conversation_can_be_imported_again(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    assert window.history is not None
    files, notice = window.history.files, window.sidebar.notice_label
    for kind in (*FileKind, None):
        folder = tmp_path / str(kind)
        folder.mkdir()
        export_as(window, monkeypatch, folder / "out", kind, by_menu=True)
        (written,) = folder.glob("out.*")
        assert notice.text() == f"1 conversation written to {written.name}."
        if kind is None:
            assert written.read_bytes().startswith(b"%PDF")
        else:
            assert "Four five six" in written.read_text()
        asyncio.run(files.import_all([written]))
        if kind is FileKind.JSON:
            assert "1 were here already" in notice.text()
        else:
            (card,) = errors(window)
            card.dismissed.emit()


def test_a_file_that_cannot_be_written_is_reported(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    assert window.history is not None
    for kind in (FileKind.MARKDOWN, None):
        asyncio.run(window.history.files.export(tmp_path / "no" / "where.x", kind, None))
    assert [card.message.split(" can't")[1] for card in errors(window)]


def test_the_typed_extension_decides_the_format(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    for typed, begins in (
        ("chat.html", "<!DOCTYPE html>"),
        ("chat.HTM", "<!DOCTYPE html>"),
        ("chat.json", '{"format"'),
        ("chat.pdf", "%PDF"),
        ("chat.txt", "# one"),  # the filter says Markdown
        ("chat", "# one"),
    ):
        folder = tmp_path / "exported" / typed
        folder.mkdir(parents=True)
        export_as(window, monkeypatch, folder / typed, FileKind.MARKDOWN)
        (written,) = folder.iterdir()
        assert written.name == (typed if "." in typed else "chat.md")
        assert written.read_bytes().startswith(begins.encode())
        assert written.stat().st_mode & 0o077 == 0 or sys.platform == "win32"


def test_a_file_filter_changes_the_proposed_extension_and_overwrites_no_other_file(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    (tmp_path / "tea.html").write_text("mine", encoding="utf-8")
    export_as(window, monkeypatch, tmp_path / "tea.md", FileKind.HTML, "tea")
    assert (tmp_path / "tea.html").read_text() == "mine"
    assert (tmp_path / "tea 2.html").read_text().startswith("<!DOCTYPE html>")
    assert "tea 2.html" in window.sidebar.notice_label.text()


def test_a_pdf_holds_an_answer_as_the_chat_shows_it(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path
) -> None:
    window, engine = open_saved()
    engine.script = Script(
        answer="### A plan\n\n1. one\n2. two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"
        "```rust\nfn main() {\n    let x = 1;\n}\n```\n"
    )
    ask(qtbot, window, "Please")
    assert window.history is not None
    history = window.history.history
    history._database.write("UPDATE messages SET text = 'first\nsecond' WHERE role = 'user'")
    asyncio.run(window.history.files.export(tmp_path / "chat.pdf", None, None))
    reader = PdfReader(tmp_path / "chat.pdf")
    assert reader.metadata is not None
    assert reader.metadata.title == "Please"
    lines = [" ".join(line.split()) for line in reader.pages[0].extract_text().splitlines()]
    for line in ("A plan", "fn main() {", "let x = 1;", "}", "first", "second"):
        assert line in lines, lines
    assert not any(raw in line for line in lines for raw in ("###", "|--", "```"))
    left, mm = _left_edges(reader), 72 / 25.4
    for heading in ("Please", "You", "A plan"):  # the text begins where its headings do
        assert abs(left[heading] - left["first"]) < 0.5 * mm, left
    assert 18 * mm < left["first"] < 22 * mm


def _left_edges(reader: PdfReader) -> dict[str, float]:
    """Return the left edge of each text of a page, in points."""
    edges: dict[str, float] = {}

    def visit(text: str, matrix: list[float], place: list[float], *_: object) -> None:
        x = place[4] * matrix[0] + place[5] * matrix[2] + matrix[4]
        edges.setdefault(" ".join(text.split()), x)

    reader.pages[0].extract_text(visitor_text=visit)
    return edges


@pytest.mark.expects_errors
def test_failed_files_are_reported_and_the_others_are_imported(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    assert window.history is not None
    files, history = window.history.files, window.history.history
    asyncio.run(files.export(tmp_path / "all.json", None, None))
    history.trash([one.id for one in history.conversations()])
    history.empty_trash()
    take = history.import_in_thread
    calls: list[int] = []

    async def fail_first(found: ConversationFile) -> ImportCounts:
        calls.append(1)
        if len(calls) == 1:
            raise OverflowError("int too large to convert to float")
        return await take(found)

    monkeypatch.setattr(history, "import_in_thread", fail_first)
    asyncio.run(files.import_all([tmp_path / "all.json", tmp_path / "all.json"]))
    assert [card.message for card in errors(window)] == ["all.json can't be read."]
    assert window.sidebar.notice_label.text() == "1 imported."

    def fail(*_: object) -> None:
        raise RecursionError

    monkeypatch.setattr("app.history.files.export_gently", fail)
    asyncio.run(files.export(tmp_path / "again.json", None, None))
    assert errors(window)[-1].message == "again.json can't be written."


@pytest.mark.parametrize("packed", [b"", b"no steps"])
def test_an_export_says_that_damaged_steps_are_omitted(
    packed: bytes, qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    controller = window.history
    assert controller is not None
    (conversation,) = controller.history.conversations()
    harm_pack(controller.history, packed, conversation.id)
    path = tmp_path / "all.json"
    asyncio.run(controller.files.export(path, None, None))
    assert errors(window) == []
    notice = window.sidebar.notice_label.text()
    assert "1 conversation written to all.json." in notice
    assert "Damaged steps are left out (answers: 1); all texts are there." in notice
    assert json.loads(path.read_text(encoding="utf-8"))["conversations"]


@pytest.mark.expects_errors
def test_an_import_says_which_conversations_it_omitted_and_why(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "one")
    assert window.history is not None
    files, path = window.history.files, tmp_path / "all.json"
    asyncio.run(files.export(path, None, None))
    raw = json.loads(path.read_text(encoding="utf-8"))
    (first,) = raw["conversations"]
    raw["conversations"] = [first | {"id": "new"}, first | {"id": "odd", "messages": None}]
    path.write_text(json.dumps(raw), encoding="utf-8")
    asyncio.run(files.import_all([path]))
    assert window.sidebar.notice_label.text() == "1 imported, 1 not."
    (card,) = errors(window)
    assert card.message == "1 imported, 1 not."
    assert "can't be read: it isn't valid" in card.hint


def test_an_idle_model_writes_a_title_and_is_interrupted_by_the_user(
    qtbot: QtBot, open_saved: OpenSaved, tmp_path: Path
) -> None:
    window, engine = open_saved()
    wait_ready(qtbot, window)
    engine.script = Script(num_parameters=1_500_000_000)
    window.loaded_model.load(ModelChoice("large", tmp_path))
    wait_ready(qtbot, window)
    window.titles._idle.setInterval(0)
    engine.script = Script(answer="Title: Foxes and hens")
    ask(qtbot, window, "Tell me about foxes, please")
    qtbot.waitUntil(lambda: titles(window) == ["Foxes and hens"])
    requested = engine.of_kind(Generate)[-1]
    assert (requested.session_id, requested.settings.drafter) == ("titles", "")
    assert requested.is_background
    engine.gate.clear()
    window.chat.new_chat()
    engine.gate.set()
    ask(qtbot, window, "something else")
    engine.gate.clear()
    qtbot.waitUntil(lambda: len(engine.of_kind(Generate)) == 4)
    window.chat.send("and more")
    qtbot.waitUntil(lambda: any(c.session_id == "titles" for c in engine.of_kind(Cancel)))
    engine.gate.set()
    qtbot.waitUntil(lambda: not window.chat.is_busy)


@pytest.mark.parametrize(
    ("output", "title"),
    [
        ('"Foxes at night"', "Foxes at night"),
        ("**Title:** Foxes", "Foxes"),
        ("", ""),
        ("I think that a good title for this conversation might be something like this", ""),
    ],
)
def test_a_title_is_extracted_from_a_models_answer(output: str, title: str) -> None:
    assert title_in(output) == title


@pytest.mark.parametrize("continues", [False, True])
def test_after_a_crash_the_last_conversation_is_offered_but_not_opened(
    qtbot: QtBot, open_saved: OpenSaved, continues: bool
) -> None:
    window, _ = open_saved()
    for text in ("older", "newer"):
        window.chat.new_chat()
        ask(qtbot, window, text)
    window, _ = open_saved()
    continue_or_explain(window, has_crashed=True, continues=continues)
    assert user_messages(window) == []
    (card,) = errors(window)
    assert "isn't opened by itself" in card.hint
    buttons = {one.text(): one for one in card.findChildren(QPushButton)}
    buttons["Open the last conversation"].click()
    assert [message.text for message in user_messages(window)] == ["newer"]


@pytest.mark.parametrize(("continues", "shown"), [(False, []), (True, ["said"])])
def test_a_restart_opens_the_last_conversation_and_a_normal_start_opens_none(
    qtbot: QtBot, open_saved: OpenSaved, continues: bool, shown: list[str]
) -> None:
    window, _ = open_saved()
    ask(qtbot, window, "said")
    window, _ = open_saved()
    continue_or_explain(window, has_crashed=False, continues=continues)
    assert [message.text for message in user_messages(window)] == shown
    assert errors(window) == []


def test_the_palette_finds_conversations(qtbot: QtBot, open_saved: OpenSaved) -> None:
    window, _ = open_saved()
    for text in ("about herons", "about foxes"):
        window.chat.new_chat()
        ask(qtbot, window, text)
    assert window.history is not None
    assert window.history.entries("") == ()
    palette = window.pages.need("palette")
    assert isinstance(palette, Palette)
    palette.open_over(window)
    palette.edit.setText("heron")
    (entry,) = palette.entries
    entry.run()
    assert [message.text for message in user_messages(window)] == ["about herons"]


def test_an_answer_interrupted_in_the_last_run_can_be_continued(
    qtbot: QtBot, open_saved: OpenSaved
) -> None:
    window, engine = open_saved(Script(answer=LONG), 40)
    engine.gate.clear()
    window.chat.send("long")
    qtbot.waitUntil(lambda: window.page.strip.tally.num_steps >= 30)
    window, engine = open_saved()  # the window before is closed in the middle of its answer
    click(window, "long")
    (cut,) = window.chat.answers
    assert LONG.startswith(cut.content.text)
    assert figure_texts(cut) == ("interrupted",)
    for button in (cut.row.copy_button, cut.row.regenerate_button, cut.row.continue_button):
        assert not button.isHidden()
    (reroll,) = (a for a in cut.menu_at(5).actions() if a.text() == "Reroll from here")
    assert reroll.isEnabled()
    tokens = cut.document.token_at(5)
    cut.reroll_requested.emit(tokens)
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    requested = engine.of_kind(Generate)[-1]
    assert (requested.messages[-1].text, requested.keep_tokens) == (cut.content.text, tokens)
    assert len(requested.messages[-1].token_ids) > tokens
    window.chat.choose_answer(0, 0)
    window.chat.go_on()
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert engine.of_kind(Generate)[-1].messages == requested.messages
    assert window.chat.answers[0].row.versions.text == "3/3"


def test_an_interrupted_answer_of_another_model_says_which_one_to_load(
    qtbot: QtBot, open_saved: OpenSaved
) -> None:
    window, engine = open_saved(Script(answer=LONG), 40)
    engine.gate.clear()
    window.chat.send("long")
    qtbot.waitUntil(lambda: window.page.strip.tally.num_steps >= 30)
    window, _ = open_saved()
    window.loaded_model.load(ModelChoice("Other", Path("/other")))
    qtbot.waitUntil(lambda: window.loaded_model.choice.name == "Other")
    click(window, "long")
    (cut,) = window.chat.answers
    assert not cut.row.continue_button.isEnabled()
    assert "load it" in cut.row.continue_button.toolTip()
    assert cut.row.regenerate_button.isEnabled()


def test_the_history_names_the_model_that_wrote_an_answer(
    qtbot: QtBot, open_saved: OpenSaved
) -> None:
    window, engine = open_saved()
    engine.script = Script(load_error="It has no chat template.")
    window.loaded_model.load(ModelChoice("Refused", Path("/refused")))
    window.chat.send("who are you?")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert window.history is not None
    (info,) = window.history.history.conversations()
    *_, answer = window.history.history.messages(info.id)
    assert answer.answer is not None
    demo = demo_choice()
    assert (answer.answer.model, answer.answer.model_key) == (demo.name, str(demo.model_dir))
