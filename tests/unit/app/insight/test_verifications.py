"""Edits of the table of inputs and outputs."""

from collections.abc import Sequence
from typing import NamedTuple

from app.engine.bridge import OnEvents
from app.insight.verifications import Verifications
from medusa_core.messages import (
    Alternative,
    Verified,
    VerifiedToken,
    Verify,
)


def verify(text: Sequence[int]) -> Verified:
    tokens = tuple(VerifiedToken(i, b"", Alternative(0, b"", 0.5)) for i in text)
    return Verified("s", "r", tokens, 0.0)


class Asked(NamedTuple):
    """A request of the engine that is never answered."""

    command: Verify
    dropped: list[Verify]

    def drop(self) -> None:
        self.dropped.append(self.command)


def verifications_of(requested: list[Verify], dropped: list[Verify]) -> Verifications:
    def ask(command: Verify, on_events: OnEvents) -> Asked:
        requested.append(command)
        return Asked(command, dropped)

    return Verifications(ask, lambda _events: None, lambda: f"r{len(requested)}")


def test_edits_wait_and_shift_with_the_text_before_them() -> None:
    requested: list[Verify] = []
    verifications = verifications_of(requested, [])
    verifications.read(text="abcd")
    assert verifications.receive(verify((1, 2, 3, 4))) is None
    for token, text in ((1, "xy"), (2, "next"), (0, "first"), (1, "again"), (3, "last")):
        verifications.replace(token, text)
    assert len(requested) == 2
    assert (requested[1].before_ids, requested[1].after_ids) == ((1,), (3, 4))
    assert not verifications.is_reading
    assert verifications.receive(verify((1, 8, 9, 3, 4))) == 1
    expected = [("next", (1, 8, 9), (4,)), ("first", (), (8, 9, 3, 4)), ("again", (1,), (3, 4))]
    firsts = []
    for text, before, after in expected:
        assert verifications.go_on()
        assert (requested[-1].text, requested[-1].before_ids, requested[-1].after_ids) == (
            text,
            before,
            after,
        )
        new = verify((*before, 7, *after) if text == "again" else (1, 8, 9, 3, 4))
        firsts.append(verifications.receive(new))
    assert verifications.go_on()
    assert (requested[-1].text, requested[-1].before_ids, requested[-1].after_ids) == (
        "last",
        (1, 7, 3),
        (),
    )
    assert [*firsts, verifications.receive(verify((1, 7, 3, 5)))] == [1, 0, 0, 0], "of all in a row"
    assert not verifications.go_on()
    verifications.replace(2, "later")
    assert verifications.receive(verify((1, 7, 6, 5))) == 2, "not of those that were shown before"


def test_a_failure_or_another_text_discards_edits() -> None:
    requested: list[Verify] = []
    dropped: list[Verify] = []
    verifications = verifications_of(requested, dropped)
    for ended in ("failed", "read"):
        verifications.read(text="ab")
        verifications.receive(verify((1, 2)))
        verifications.replace(1, "x")
        verifications.replace(0, "y")
        if ended == "failed":
            verifications.give_up()
        else:
            verifications.read(text="other")
            assert verifications.is_reading
            verifications.receive(verify((5, 6)))
        assert not verifications.go_on()
        assert dropped == [requested[at] for at in ((1,) if ended == "failed" else (1, 3))]
