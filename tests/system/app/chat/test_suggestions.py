"""What an empty conversation offers, by the model that is loaded."""

from dataclasses import replace

from pytestqt.qtbot import QtBot

from app.chat.suggestions import CODE, CONTINUED, DEMO, GENERAL, SMALL, suggestions_for
from tests.support.window.fixtures import Open


def test_questions_suit_the_model(open_ready: Open) -> None:
    window, _ = open_ready()
    loaded = window.keeper.status.loaded
    assert loaded is not None
    large = replace(loaded, name="Qwen3 8B", num_parameters=8_000_000_000, continues_text=False)
    assert suggestions_for(large, is_demo=False) == GENERAL
    assert suggestions_for(replace(large, name="Qwen2.5 Coder 7B"), is_demo=False) == CODE
    assert suggestions_for(replace(large, continues_text=True), is_demo=False) == CONTINUED
    assert suggestions_for(replace(large, num_parameters=135_000_000), is_demo=False) == SMALL
    assert suggestions_for(large, is_demo=True) == DEMO


def test_an_odd_number_of_questions_replaces_those_before(qtbot: QtBot, open_ready: Open) -> None:
    window, _ = open_ready()
    empty = window.page.empty
    empty.show_suggestions(SMALL)
    with qtbot.waitSignal(empty.suggestion_chosen) as chosen:
        empty.buttons[-1].click()
    assert chosen.args == [SMALL[-1]]
    assert [button.text() for button in empty.buttons] == list(SMALL)
