"""Results are quoted in the prompt for a model that only repeats its calls."""

import pytest

from medusa_core.messages import ChatMessage, ImagePart, Role, TextPart, ToolCall
from medusa_core.models.text.tool_calls.quoted_results import repeats_calls, with_quoted_results
from medusa_core.tools.results import REPEATED, ResultRoom

ASK = ChatMessage(Role.USER, "What time is it?")
PICTURE = ImagePart("image/png", b"\x89PNG")
EARLIER = (ChatMessage(Role.USER, "Hello"), ChatMessage(Role.ASSISTANT, "Hello."))


ROOM = ResultRoom(1000, 1000)


def quoted(messages: tuple[ChatMessage, ...]) -> tuple[ChatMessage, ...] | None:
    return with_quoted_results(messages, ROOM, may_call=False) if repeats_calls(messages) else None


def called(call_id: str, arguments: str, result: str) -> tuple[ChatMessage, ChatMessage]:
    call = ToolCall(call_id, "clock", arguments)
    return (
        ChatMessage(Role.ASSISTANT, "", (), (call,)),
        ChatMessage(Role.TOOL, result, tool_name="clock", call_id=call_id),
    )


def test_results_of_repeated_calls_are_quoted_once() -> None:
    bern, again = called("a", '{"zone": "Bern"}', "12:00"), called("c", '{ "zone":"Bern"}', "12:00")
    first = called("b", "", "11:00")
    found = quoted((*EARLIER, ASK, *first, *bern, *again))
    assert found is not None
    assert found[:2] == EARLIER
    assert found[2].role is Role.USER
    assert found[2].text == (
        'What time is it?\n\nclock {} returned:\n11:00\n\nclock {"zone": "Bern"} returned:\n12:00'
        "\n\nAnswer from these results, in full sentences."
    )
    begun = ChatMessage(Role.ASSISTANT, "It is", (1, 2))
    assert quoted((*EARLIER, ASK, *first, *bern, *again, begun)) == (*found, begun)


def test_calls_that_take_turns_are_repeated_in_the_second_turn() -> None:
    first, second = ("{}", "1"), ('{"a": 1}', "2")
    turns = [called(f"c{number}", *one) for number, one in enumerate((first, second) * 2)]
    assert quoted((ASK, *turns[0], *turns[1], *turns[2])) is None
    found = quoted((ASK, *turns[0], *turns[1], *turns[2], *turns[3]))
    assert found is not None
    assert found[0].text.count("returned") == 2


def test_a_call_that_was_not_run_again_is_a_repetition() -> None:
    found = quoted((ASK, *called("a", "{}", "1"), *called("b", "{}", REPEATED + "1")))
    assert found is not None
    assert found[0].text.count("clock {} returned:\n1\n") == 1
    assert REPEATED not in found[0].text


def test_other_parts_of_the_prompt_stay() -> None:
    ask = ChatMessage(Role.USER, (TextPart("Look. "), PICTURE, TextPart("What is this?")))
    found = quoted((ask, *called("a", "{}", "x"), *called("b", "{}", "x")))
    assert found is not None
    assert found[0].content[:3] == ask.content


def test_changing_results_are_quoted_after_three_rounds() -> None:
    """Dice and clocks may be asked twice on purpose."""
    first, second, third = (called(str(n), "{}", f"12:0{n}") for n in range(3))
    assert quoted((ASK, *first, *second)) is None
    found = quoted((ASK, *first, *second, *third))
    assert found is not None
    assert found[0].text.count(" returned:") == 3
    other = called("o", '{"zone": "Bern"}', "11:00")
    assert quoted((ASK, *first, *other, *second, *third)) is None


@pytest.mark.parametrize(
    "messages",
    [
        EARLIER,
        (ASK,),
        (),
        (ASK, *called("a", "{}", "12:00")),
        (ASK, *called("a", "{}", "12:00"), *called("b", '{"zone": "Bern"}', "12:00")),
        (
            ASK,
            *called("a", "{}", "12:00"),
            ChatMessage(Role.USER, "Again?"),
            *called("b", "{}", "1"),
        ),
        # Read, write, read again: the second reading is no repetition.
        (ASK, *called("a", "{}", "1"), *called("b", '{"set": 2}', "ok"), *called("c", "{}", "2")),
    ],
)
def test_other_conversations_stay_as_they_are(messages: tuple[ChatMessage, ...]) -> None:
    assert quoted(messages) is None


def test_results_can_be_quoted_before_anything_is_repeated() -> None:
    asked = (*EARLIER, ASK, *called("a", "{}", "12:00"))
    found = with_quoted_results(asked, ROOM, may_call=True)
    assert found[:-1] == EARLIER
    assert found[-1].text == (
        "What time is it?\n\nclock {} returned:\n12:00\n\nIf these results answer the question, "
        "answer in full sentences. Otherwise call another function."
    )
    for unchanged in ((ASK,), EARLIER, (*asked[:-1],)):
        assert with_quoted_results(unchanged, ROOM, may_call=True) == unchanged
