"""Answers that repeat themselves."""

import random

import pytest

from medusa_core.chats.repetition import is_repetitive

WORDS = tuple(range(1000))


@pytest.mark.parametrize("period", [1, 3, 17, 64])
def test_a_repeated_passage_is_repetitive(period: int) -> None:
    passage = WORDS[:period]
    assert is_repetitive(WORDS + passage * -(-320 // period))
    assert is_repetitive((passage * 400)[: 320 + period // 2]), "in the middle of a passage, too"


def test_a_varying_loop_is_repetitive() -> None:
    draw = random.Random(7)
    rounds = [[*range(20), draw.choice((500, 501, 502)), *range(30, 40)] for _ in range(12)]
    assert is_repetitive([token for passage in rounds for token in passage])


def test_a_requested_repetition_is_not_repetitive() -> None:
    assert not is_repetitive(())
    assert not is_repetitive((5,) * 100), "a rule of dashes"
    assert not is_repetitive(WORDS)
    assert not is_repetitive(WORDS + WORDS[:12] * 10), "a line, ten times"
    assert not is_repetitive(WORDS[:200] * 3), "a chorus"
    numbered = [token for line in range(60) for token in (*WORDS[:7], 900 + line % 10, line)]
    assert not is_repetitive(numbered), "a numbered list of like lines"
