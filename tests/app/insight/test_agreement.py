"""Outputs compared with inputs."""

from app.insight.agreement import AGREES, DIFFERS, OPEN, agreement, say
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


def test_outputs_are_compared_with_the_next_input() -> None:
    table = agreement(verified((1, 2), (2, 9), (3, 4), (4, 5)))
    assert [cell.mark for cell in table.cells] == [AGREES, DIFFERS, AGREES, OPEN]
    assert (table.num_agreeing, table.num_judged, table.bonus) == (2, 3, None)
    assert say(table).startswith("2 of 3 outputs")


def test_after_an_edit_the_first_output_that_differs_is_the_bonus() -> None:
    table = agreement(verified((1, 7), (2, 3), (8, 4), (4, 5)), edited=2)
    assert table.bonus == 1  # what stands before the edit was there already
    assert "behind “␣2” (token 2)" in say(table)
    assert "goes on with “␣3”" in say(table)
    whole = agreement(verified((1, 2), (2, 3), (3, 4)), edited=1)
    assert whole.bonus == 2  # all agree: the bonus comes behind the end


def test_one_token_is_not_compared() -> None:
    assert say(agreement(verified((1, 2)))) == "One token: the model goes on with “␣2”."


def test_nothing_verified_says_so() -> None:
    assert say(agreement(verified())) == "Nothing verified yet."
