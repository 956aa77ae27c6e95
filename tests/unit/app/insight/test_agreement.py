"""Outputs compared with inputs."""

from app.insight.agreement import AGREES, DIFFERS, GIVEN, OPEN, agreement, describe_agreement
from medusa_core.messages import (
    Alternative,
    Verified,
    VerifiedToken,
)


def verified(*pairs: tuple[int, int]) -> Verified:
    tokens = tuple(
        VerifiedToken(i, b" %d" % i, Alternative(out, b" %d" % out, 0.5)) for i, out in pairs
    )
    return Verified("s", "r", tokens, 0.01)


def test_predictions_are_compared_with_the_next_input() -> None:
    table = agreement(verified((1, 2), (2, 9), (3, 4), (4, 5)))
    assert [cell.mark for cell in table.cells] == [AGREES, DIFFERS, AGREES, OPEN]
    assert (table.num_agreeing, table.num_judged, table.bonus) == (2, 3, None)
    assert describe_agreement(table).startswith("2 of 3 outputs")


def test_in_a_conversation_only_answers_are_counted() -> None:
    text = verified((1, 9), (2, 9), (3, 4), (4, 9), (5, 9), (6, 9), (7, 9))
    table = agreement(text, answers=((3, 5), (6, 7)))
    marks = [cell.mark for cell in table.cells]
    assert marks == [GIVEN, GIVEN, AGREES, DIFFERS, GIVEN, DIFFERS, OPEN]
    assert (table.num_agreeing, table.num_judged) == (1, 3)
    assert describe_agreement(table).startswith("1 of the 3 answer tokens")
    edited = agreement(text, edited=1, answers=((3, 5), (6, 7)))
    assert edited.bonus == 3, "a question that the model would not ask is no difference"


def test_the_end_token_of_an_answer_is_labelled() -> None:
    table = agreement(verified((1, 2), (2, 3)), specials={2: ""})
    assert [cell.text for cell in table.cells] == ["␣1", "‹end›"]
    assert table.cells[0].output == "‹end›"


def test_after_an_edit_the_first_differing_prediction_is_the_bonus() -> None:
    table = agreement(verified((1, 7), (2, 3), (8, 4), (4, 5)), edited=2)
    assert table.bonus == 1  # what stands before the edit was there already
    assert "after “␣2” (token 2)" in describe_agreement(table)
    assert "continues with “␣3”" in describe_agreement(table)
    whole = agreement(verified((1, 2), (2, 3), (3, 4)), edited=1)
    assert whole.bonus == 2  # all agree: the bonus comes behind the end


def test_a_single_token_is_not_compared() -> None:
    assert (
        describe_agreement(agreement(verified((1, 2)))) == "One token: the model goes on with “␣2”."
    )


def test_an_unverified_text_says_so() -> None:
    assert describe_agreement(agreement(verified())) == "Nothing verified yet."
