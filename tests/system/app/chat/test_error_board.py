"""Where errors are shown, and when they go."""

from pytestqt.qtbot import QtBot

from medusa_core.messages import Generate
from tests.support.window.driving import ask, errors
from tests.support.window.fakes import Script
from tests.support.window.fixtures import Open


def test_an_error_is_visible_wherever_the_conversation_is_scrolled(
    qtbot: QtBot, open_ready: Open
) -> None:
    window, _ = open_ready(Script(answer="One two three. " * 400))
    ask(qtbot, window, "Hello")
    bar = window.page.conversation.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > 400)
    bar.setValue(0)
    card = window.page.errors.show_error("It broke.", "Mend it.")
    qtbot.waitUntil(lambda: not card.visibleRegion().isEmpty())
    assert bar.value() == 0, "the text stays where it is"


def test_an_error_disappears_when_its_cause_is_gone(qtbot: QtBot, open_ready: Open) -> None:
    window, engine = open_ready(Script(prefill_error="No room."))
    window.page.errors.show_error("A file can't be saved.", "Choose another place.")
    window.page.composer.edit.setPlainText("Hello")
    window.page.composer.submit()
    qtbot.waitUntil(lambda: len(errors(window)) == 2)
    engine.script = Script()
    ask(qtbot, window, "Hello")
    assert len(engine.of_kind(Generate)) == 2
    assert [card.message for card in errors(window)] == ["A file can't be saved."]
