"""Answers that match a JSON schema of the chat's settings, and schemas that can't be used."""

from __future__ import annotations

from pytestqt.qtbot import QtBot

from app.window.main_window import MainWindow
from medusa_core.messages import Generate
from tests.support.window.driving import ask, errors
from tests.support.window.fakes import FakeEngine
from tests.support.window.fixtures import Open

SCHEMA = '{"type": "object", "properties": {"a": {"type": "integer"}}}'


def requests(engine: FakeEngine) -> list[Generate]:
    return [one for one in engine.of_kind(Generate) if isinstance(one, Generate)]


def choose(window: MainWindow, schema: str) -> None:
    window.page.settings_panel.schema.edit.setPlainText(schema)


def test_a_schema_is_sent_as_grammar(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready()
    choose(window, SCHEMA)
    answer = ask(qtbot, window, "Hello").answer
    assert '"integer"' in requests(engine)[-1].grammar
    assert answer.settings.json_schema == SCHEMA
    choose(window, "")
    ask(qtbot, window, "Hello")
    assert requests(engine)[-1].grammar == ""


def test_with_an_invalid_schema_nothing_is_sent_and_the_prompt_comes_back(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, engine = open_ready()
    choose(window, '{"type": ')
    window.chat.send("Precious words")
    qtbot.waitUntil(lambda: not window.chat.is_busy)
    assert requests(engine) == []
    assert window.page.composer.edit.toPlainText() == "Precious words"
    (card,) = errors(window)
    assert "no JSON" in card.message
