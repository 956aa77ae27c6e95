"""What messages look like and can do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from PySide6.QtCore import QPoint, Qt, QUrl
from PySide6.QtGui import QGuiApplication, QImage, QTextCursor
from PySide6.QtTest import QTest
from pytestqt.qtbot import QtBot

from app.chat.messages.answer_message import AnswerMessage
from app.chat.messages.code_headers import CodeHeader
from app.chat.messages.copy_button import COPIED
from app.chat.messages.message_widgets import UserMessage
from app.theme.appearance import Appearance
from app.theme.text_style import Marking
from medusa_core.chats.answer_text import AnswerText
from medusa_core.messages import TARGET, THINK_TAGS, Generate, ReasoningFormat, Role
from tests.support.window.driving import ask
from tests.support.window.fakes import Script
from tests.support.window.fixtures import Open
from tests.support.window.streamed_answers import StreamedMessage, generation_done, step


def answered(
    qtbot: QtBot, appearance: Appearance, *pieces: str, begins_inside: bool = False
) -> AnswerMessage:
    """An answer that came in these pieces, a token each."""
    message = StreamedMessage(appearance, AnswerText(THINK_TAGS, begins_inside))
    qtbot.addWidget(message)
    message.resize(700, 900)
    message.show()
    text = ""
    for number, piece in enumerate(pieces):
        text += piece
        message.append(step(number, (piece.encode(),), (TARGET,), len(text.encode())))
    message.finish(replace(generation_done(text, len(pieces)), decode_s=1.0))
    QTest.qWait(0)
    return message


def clipboard() -> str:
    return QGuiApplication.clipboard().text()


def colours(image: QImage) -> set[str]:
    return {
        image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())
    }


def test_code_has_a_line_with_its_language_and_a_button_that_copies_it(
    qtbot: QtBot, appearance: Appearance
) -> None:
    message = answered(qtbot, appearance, "Look:\n\n```pyt", "hon\nx = 1\n\ny = 2\n```\n", "and\n")
    (header,) = message.view.findChildren(CodeHeader)
    assert header.label.text() == "python"
    assert header.button.accessibleDescription() == "Copy this python code"
    code = message.view.document().find("x = 1")
    top = message.view.cursorRect(code).top()
    assert header.isVisible()
    assert header.geometry().bottom() <= top + 2, "it lies above the code"
    assert header.button.focusPolicy() & Qt.FocusPolicy.TabFocus
    header.button.setFocus()
    QTest.keyClick(header.button, Qt.Key.Key_Space)
    assert clipboard() == "x = 1\n\ny = 2"
    assert header.button.text() == COPIED


def test_copy_puts_the_markdown_on_the_clipboard(qtbot: QtBot, appearance: Appearance) -> None:
    message = answered(qtbot, appearance, "Some **bold** words")
    assert message.view.toPlainText() == "Some bold words"
    message.row.copy_button.click()
    assert clipboard() == "Some **bold** words"


def test_an_answer_never_loads_anything(
    qtbot: QtBot, appearance: Appearance, tmp_path: Path
) -> None:
    (tmp_path / "secret.png").write_bytes(b"x")
    local = QUrl.fromLocalFile(str(tmp_path / "secret.png")).toString()
    message = answered(qtbot, appearance, f"![a]({local}) and ![b](https://example.org/b.png)")
    for kind in range(1, 6):
        for address in (local, "https://example.org/b.png"):
            assert not message.view.document().resource(kind, QUrl(address))
            assert message.view.loadResource(kind, QUrl(address)) is None


def test_user_text_is_shown_as_it_is(qtbot: QtBot, appearance: Appearance) -> None:
    text = "<b>bold</b> **stars** <img src='file:///x'>"
    message = UserMessage(text, appearance)
    qtbot.addWidget(message)
    message.populate()
    assert message.view.toPlainText() == text


def test_a_quotation_has_a_bar(qtbot: QtBot, appearance: Appearance) -> None:
    plain = answered(qtbot, appearance, "words\n\nmore")
    quoted = answered(qtbot, appearance, "words\n\n> more\n\n> and")
    border = appearance.theme.border
    assert border not in colours(plain.view.viewport().grab().toImage())
    assert border in colours(quoted.view.viewport().grab().toImage())


def test_a_wide_table_fits_a_narrow_message(qtbot: QtBot, appearance: Appearance) -> None:
    row = "| " + " | ".join(f"number{i}" for i in range(8)) + " |\n"
    message = answered(qtbot, appearance, row + "|" + "---|" * 8 + "\n" + row)
    message.resize(420, 600)
    QTest.qWait(0)
    assert message.view.document().size().width() <= message.view.viewport().width() + 1


def test_a_reasoning_is_folded_and_shows_its_duration(qtbot: QtBot, appearance: Appearance) -> None:
    message = StreamedMessage(appearance)
    qtbot.addWidget(message)
    message.resize(700, 900)
    message.show()
    pieces = ("<think>", "first ", "this\n", "</think>\n\n", "The ", "answer")
    text = ""
    for number, piece in enumerate(pieces):
        text += piece
        message.append(step(number, (piece.encode(),), (TARGET,), len(text)))
        if number == 2:
            assert message.fold is not None
            assert message.fold.button.text() == "Thinking…"
            assert message.view.isHidden()
    message.finish(replace(generation_done(text, len(pieces)), decode_s=1.0))
    assert message.fold is not None
    assert message.view.toPlainText() == "The answer"
    assert message.fold.button.text().startswith("Thought")
    assert message.fold.view.isHidden()
    message.fold.button.setFocus()
    QTest.keyClick(message.fold.button, Qt.Key.Key_Space)
    assert message.fold.view.isVisible()
    assert message.fold.view.toPlainText() == "first this"
    message.row.copy_button.click()
    assert clipboard() == "The answer"
    tokens = {message.document.token_at(at) for at in range(len("The answer"))}
    assert tokens == {4, 5}, "positions still know their tokens"


def test_an_answer_that_begins_inside_its_reasoning_is_folded_when_that_ends(
    qtbot: QtBot, appearance: Appearance
) -> None:
    pieces = ("let me see\n", "</think>\n", "\nYes.")
    message = answered(qtbot, appearance, *pieces, begins_inside=True)
    assert message.view.toPlainText() == "Yes."
    assert message.fold is not None
    assert message.fold.view.toPlainText() == "let me see"


SHOWN_TAGS = (
    "Reasoning models write this form:\n\n```\n<think>\nthe thought\n</think>\nthe answer\n```\n\n"
    "That is all."
)


def test_tags_in_a_code_block_are_part_of_the_answer(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(answer=SHOWN_TAGS))
    message = ask(qtbot, window, "one")
    assert message.fold is None
    assert "the thought\n</think>\nthe answer" in message.view.toPlainText()
    message.row.copy_button.click()
    assert clipboard() == SHOWN_TAGS
    ask(qtbot, window, "two")
    requested = engine.of_kind(Generate)[-1]
    assert isinstance(requested, Generate)
    assert requested.messages[1].text == SHOWN_TAGS
    assert requested.messages[1].token_ids, "its tokens are read as they were written"


CHANNELS = ReasoningFormat(
    "<|channel|>analysis<|message|>",
    "<|end|>",
    "<|start|>assistant",
    ("<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
    tokens=((901, "<|channel|>"), (902, "<|message|>"), (903, "<|end|>"), (904, "<|start|>")),
)


def test_reasoning_is_parsed_by_its_tokens(qtbot: QtBot, appearance: Appearance) -> None:
    message = StreamedMessage(appearance, AnswerText(CHANNELS))
    qtbot.addWidget(message)
    message.show()
    numbers = {name: number for number, name in CHANNELS.tokens}
    written = (
        "<|channel|> analysis <|message|> One. <|end|> <|start|> assistant "
        "<|channel|> commentary <|message|> Wait. <|end|> <|start|> assistant "
        "<|channel|> analysis <|message|> Two. <|end|> <|start|> assistant "
        "<|channel|> final <|message|> **Four.**"
    )
    text, seen = "", []
    for number, token in enumerate(written.split()):
        piece = "" if token in numbers else token
        text += piece
        one = step(number, (piece.encode(),), (TARGET,), len(text))
        message.append(one._replace(token_ids=(numbers.get(token, 1),)))
        seen.append(message.view.toPlainText().replace("\n", ""))
    message.finish(replace(generation_done(text, len(written.split())), decode_s=1.0))
    assert message.fold is not None
    assert message.fold.view.toPlainText().split() == ["One.", "Two."]
    assert message.view.toPlainText().split() == ["Wait.", "Four."]
    assert list(dict.fromkeys(seen)) == ["", "Wait.", "Wait.Four."], "nothing flickers"
    message.row.copy_button.click()
    assert clipboard() == "Wait.\n\n**Four.**"
    place = message.view.toPlainText().index("Four")
    assert message.document.token_at(place) == len(written.split()) - 1


def test_the_model_doesnt_read_its_earlier_reasoning(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(answer="<think>hm hm</think> Yes."))
    ask(qtbot, window, "one")
    ask(qtbot, window, "two")
    requested = engine.of_kind(Generate)[-1]
    assert isinstance(requested, Generate)
    (old,) = [m for m in requested.messages if m.role is Role.ASSISTANT]
    assert (old.text, old.token_ids) == ("Yes.", ())


def test_a_user_message_can_be_copied_and_quoted(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    ask(qtbot, window, "one two")
    user = next(m for m in window.page.conversation.messages if isinstance(m, UserMessage))
    user.row.copy_button.click()
    assert clipboard() == "one two"
    assert user.row.copy_button.text() == COPIED
    user.view.selectAll()
    quote = next(a for a in user.menu().actions() if a.text().startswith("Quote"))
    window.page.composer.edit.setPlainText("Hm.")
    quote.trigger()
    assert window.page.composer.edit.toPlainText() == "Hm.\n\n> one two\n\n"


def test_a_single_click_opens_no_panel_and_a_double_click_selects_a_word(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, _ = open_ready()
    answer = ask(qtbot, window, "one")
    view = answer.view
    place = view.cursorRect(view.document().find("Four")).center()
    at = QPoint(place.x() - 3, place.y())
    bar = window.page.conversation.verticalScrollBar().value()
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    QTest.mouseDClick(view.viewport(), Qt.MouseButton.LeftButton, pos=at)
    assert view.textCursor().selectedText() == "Four"
    assert window.insight.tree is None
    assert window.page.conversation.verticalScrollBar().value() == bar
    view.moveCursor(QTextCursor.MoveOperation.Start)
    at = view.cursorRect().center() + QPoint(4, 0)
    QTest.mouseClick(
        view.viewport(), Qt.MouseButton.LeftButton, Qt.KeyboardModifier.ControlModifier, at
    )
    assert window.insight.tree is not None


def test_no_card_is_shown_without_marks(qtbot: QtBot, appearance: Appearance) -> None:
    message = answered(qtbot, appearance, "One ", "two")
    received: list[int] = []
    message.token_hovered.connect(received.append)
    appearance.mark_tokens(Marking.OFF)
    message.view.hovered.emit(1)
    assert not received
    appearance.mark_tokens(Marking.HEADS)
    message.view.hovered.emit(1)
    assert received == [0]
