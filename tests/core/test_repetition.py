"""Answers that repeat themselves."""

import pytest

from medusa_core.chats.repetition import repeats

WORDS = tuple(range(1000))


@pytest.mark.parametrize("period", [1, 3, 17, 64])
def test_a_text_that_ends_with_a_piece_over_and_over_repeats_itself(period: int) -> None:
    piece = WORDS[:period]
    times = max(4, -(-48 // period))
    assert repeats(WORDS + piece * times)
    assert repeats(piece * times + piece[: period // 2]), "in the middle of a piece, too"
    assert not repeats((*piece * times, 2000)), "it has found a way out"
    assert not repeats(WORDS + piece * (times - 1) if period > 1 else WORDS + piece * 40)


def test_short_and_varied_texts_do_not() -> None:
    assert not repeats(())
    assert not repeats((5,) * 20), "a line of dashes is no loop"
    assert not repeats(WORDS)
    assert not repeats(WORDS[:65] * 9), "a stanza may be that long"
