"""Which passages of a conversation the model still reads, and how much room is left."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from app.chat.calls import AnswerRun
from app.chat.passage_retrieval import PassageRetrieval
from medusa_core.chats.conversation import Conversation, Turn
from medusa_core.messages import (
    ChatMessage,
    GenerateSettings,
    Overflow,
    PassagePart,
    Role,
    with_passages,
)

CONTEXT = 4_096
ASKED = GenerateSettings()


class Recorder:
    """Documents that record what they are asked for."""

    is_available = True

    def retrieve(self, *arguments: Any) -> None:
        self.ids, self.questions, self.known, self.room, self.first, _ = arguments


def asked(
    recorder: Recorder,
    turns: Sequence[tuple[str, int]],
    settings: GenerateSettings,
    context_tokens: int = CONTEXT,
    system: tuple[ChatMessage, ...] = (),
    answer: str = "Yes.",
) -> Turn:
    """Ask several prompts, each with a passage of a length, and begin the retrieval of the last."""
    status = SimpleNamespace(loaded=SimpleNamespace(context_tokens=context_tokens))
    loaded: Any = SimpleNamespace(status=status)
    documents: Any = recorder
    retrieval = PassageRetrieval(documents, loaded)
    conversation = Conversation()
    conversation.collections = ("own", "both")
    retrieval.inherited = lambda _id: ("folder", "both")
    for number, (text, length) in enumerate(turns, 1):
        turn = conversation.ask(text, settings)
        if number < len(turns):
            passage = PassagePart(number, "a", "", "x" * length, key=str(number))
            turn.prompt.content = with_passages(turn.prompt.content, (passage,))
            turn.answer.content.finish(answer)
    assert retrieval.is_needed(conversation, turn)
    retrieval.begin(AnswerRun(conversation, turn, (), system), lambda _result: None)
    # The program may end before an answer has begun.
    assert retrieval.is_needed(conversation, conversation.retry(settings))
    turn.answer.content.finish("An answer")
    assert not retrieval.is_needed(conversation, conversation.retry(settings))
    return turn


def test_all_passages_are_known_while_nothing_is_left_out() -> None:
    recorder = Recorder()
    asked(recorder, [("One", 3_000), ("Two", 3_000), ("Three", 0)], ASKED)
    assert recorder.ids == ("folder", "both", "own")
    assert recorder.questions == ["One", "Two", "Three"]
    assert [one.number for one in recorder.known] == [1, 2]
    assert recorder.first == 3
    assert recorder.room.whole < CONTEXT / 3


@pytest.mark.parametrize("overflow", [Overflow.ROLLING, Overflow.MIDDLE])
def test_passages_of_turns_that_may_be_left_out_are_read_again(overflow: Overflow) -> None:
    recorder = Recorder()
    turns = [("One", 60_000), ("Two", 1_000), ("Three", 0)]
    asked(recorder, turns, replace(ASKED, overflow=overflow))
    assert [one.number for one in recorder.known] == [2]
    assert recorder.first == 3
    assert recorder.room.found == CONTEXT / 4
    asked(recorder, turns, ASKED)
    assert [one.number for one in recorder.known] == [1, 2]
    assert recorder.room.found == 0


def test_a_text_of_a_third_of_the_context_isn_t_repeated_by_each_turn() -> None:
    recorder = Recorder()
    settings = replace(ASKED, overflow=Overflow.ROLLING)
    asked(recorder, [("One", CONTEXT), ("Two", 10), ("Three", 10), ("Four", 0)], settings)
    assert [one.number for one in recorder.known] == [1, 2, 3]


def test_an_endpoint_that_does_not_tell_its_context_gets_passages() -> None:
    recorder = Recorder()
    asked(recorder, [("One", 0)], ASKED, context_tokens=0)
    assert recorder.room.found > 500


def test_passages_of_a_prompt_that_was_stopped_at_once_are_read_again() -> None:
    recorder = Recorder()
    asked(recorder, [("One", 100), ("Two", 0)], ASKED, answer="")
    assert recorder.known == []
    assert recorder.first == 2


def test_the_system_prompt_takes_room() -> None:
    recorder = Recorder()
    asked(recorder, [("One", 0)], ASKED, system=(ChatMessage(Role.SYSTEM, "x" * 8_000),))
    assert recorder.room.found < CONTEXT / 8
