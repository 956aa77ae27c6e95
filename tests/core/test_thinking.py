"""Where an answer's thought ends and what is said begins."""

import pytest

from medusa_core.conversation import Conversation
from medusa_core.messages import ChatMessage, GenerateSettings, Role
from medusa_core.thinking import NOTHING_THOUGHT, find_thinking, without_thinking


@pytest.mark.parametrize(
    ("text", "thought", "said", "is_open"),
    [
        ("<think>a b</think>\n\nc", "a b", "c", False),
        ("\n<think>\na\n</think>c", "\na\n", "c", False),
        ("a\nb\n</think>\n\nc", "a\nb\n", "c", False),
        ("<think>a </thi", "a </thi", "", True),
        ("<thi", "", "", True),
        ("<think></think>", "", "", False),
    ],
)
def test_a_thought_is_found(text: str, thought: str, said: str, is_open: bool) -> None:
    found = find_thinking(text)
    assert text[found.start : found.end] == thought
    assert without_thinking(text) == said
    assert found.is_open is is_open


@pytest.mark.parametrize(
    "text", ["", " ", "a <think>b</think>", "Write </think> to end it.", "<b>", "<thinker>a"]
)
def test_an_answer_without_thought_is_said_as_it_stands(text: str) -> None:
    assert find_thinking(text) == NOTHING_THOUGHT
    assert without_thinking(text) == text


def test_later_turns_dont_read_what_was_thought() -> None:
    talk = Conversation()
    turn = talk.ask("one", GenerateSettings())
    turn.answer.text = "<think>hm</think>\n\nfirst"
    assert talk.remembered()[-1] == ChatMessage(Role.ASSISTANT, "first")
    assert talk.whole()[-1].content == turn.answer.text
    stuck = talk.ask("two", GenerateSettings())
    stuck.answer.text = "<think>never ends"
    talk.ask("three", GenerateSettings())
    assert talk.messages() == (
        ChatMessage(Role.USER, "one"),
        ChatMessage(Role.ASSISTANT, "first"),
        ChatMessage(Role.USER, "three"),
    )
