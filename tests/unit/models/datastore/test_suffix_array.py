"""What followed the same words: found as by looking everywhere, at any length, after any cut."""

from __future__ import annotations

import random
from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from medusa_core.models.datastore.earlier_answers import AnswerTexts
from medusa_core.models.datastore.follower_stats import FollowerStats
from medusa_core.models.datastore.store import AnswerText
from medusa_core.models.datastore.suffix_array import DEPTH, END, NO_MATCHES, Found, SuffixArray

TOKENS = st.lists(st.sampled_from([0, 1, 2, 262_143]), min_size=1, max_size=60)


def array_of(*texts: list[int]) -> SuffixArray:
    """Return an array of texts; all but the first begin with another one's end."""
    found = SuffixArray()
    found.extend(texts[0])
    for text in texts[1:]:
        found.add_text(text, 0)
    return found


def common(text: list[int], place: int, tail: list[int]) -> int:
    """Return the number of last tokens of `tail` before a position, by comparison; a beginning
    counts.
    """
    text, tail, length = [END] * DEPTH + text[:place], [END] * DEPTH + tail, 0
    while length < DEPTH and text[-1 - length] == tail[-1 - length]:
        length += 1
    return length


def tail_of(token_ids: list[int]) -> array[int]:
    return array("i", [END] * DEPTH + token_ids)


@given(st.lists(TOKENS, min_size=1, max_size=4), TOKENS)
def test_the_longest_contexts_equal_those_of_a_full_search(
    texts: list[list[int]], tail: list[int]
) -> None:
    searched = array_of(*texts)
    whole = [token for text in texts for token in (END, *text)][1:]
    places = [place for place, token in enumerate(whole) if token != END]
    found = searched.search(tail_of(tail))
    longest = max(common(whole, place, tail) for place in places)
    if longest:
        assert max(found.lengths) == longest
    else:
        assert found == NO_MATCHES
    assert found.lengths == [common(whole, place, tail) for place in found.places]
    assert found.token_ids == [whole[place] for place in found.places]
    assert all(2 * length >= longest for length in found.lengths)
    assert len(set(found.places)) == len(found.places) <= 8


@given(TOKENS, st.lists(st.integers(1, 20), max_size=8), st.integers(0, 60))
def test_texts_that_grow_and_are_truncated_equal_texts_built_at_once(
    token_ids: list[int], parts: list[int], length: int
) -> None:
    grown, at = SuffixArray(), 0
    for part in [*parts, len(token_ids)]:  # one by one, many at once, or all sorted anew
        grown.extend(token_ids[at : at + part])
        grown.search(grown.tail)
        at += part
    for cut in (len(token_ids), length):
        grown.truncate(cut)
        kept = token_ids[:cut]
        assert len(grown) == len(kept)
        assert grown.tokens(0, len(kept)).tolist() == kept
        for tail in (kept, kept[: cut // 2], [2, 1]):
            found, wanted = (one.search(tail_of(tail)) for one in (grown, array_of(kept)))
            assert found == wanted


def test_continuations_of_a_token_equal_those_of_a_full_search() -> None:
    rng = random.Random(5)
    text = [rng.randrange(3) for _ in range(400)]
    searched, num_found = array_of(text), 0
    for _ in range(100):
        begin = rng.randrange(360)
        tail = text[begin : begin + rng.randrange(4, 40)]
        found = searched.search(tail_of(tail))
        for token_id in range(3):
            after = searched.advance(found, token_id)
            num_found += len(after.places)
            assert after.lengths == [
                min(DEPTH, common(text, place, [*tail, token_id])) for place in after.places
            ]
            assert after.token_ids == [text[place] for place in after.places]
    assert num_found > 100
    assert array_of([1, 2], [3]).advance(Found([1], [1], [2]), 2) == NO_MATCHES, "a text ends there"


def test_context_only_tokens_are_never_drafted() -> None:
    searched = SuffixArray()
    searched.add_text([9, 8, 7, 1, 2], 3)
    assert searched.search(tail_of([9, 8])) == NO_MATCHES
    assert searched.search(tail_of([8, 7])).token_ids == [1]


def test_answers_can_be_removed_and_others_are_still_found() -> None:
    texts = AnswerTexts()
    for number in range(300):
        ids = array("i", range(1000 * number, 1000 * number + 60))
        texts.add([AnswerText(number, 0, ids)])
    texts.remove(set(range(0, 300, 2)))
    assert texts.numbers == set(range(1, 300, 2))
    for number in range(300):
        found = texts.array.search(tail_of(list(range(1000 * number + 20, 1000 * number + 30))))
        if number % 2 == 0:
            assert found == NO_MATCHES
        else:
            assert found.token_ids == [1000 * number + 30]
            assert texts.answer_at(found.places[0]) == number
    assert texts.array.nbytes < 9 * len(texts.array)


# How far it is trusted ----------------------------------------------------------------------------


def test_a_source_that_was_right_gets_higher_probabilities() -> None:
    trust, other = FollowerStats(), FollowerStats()
    found, longer = Found([7], [4], [5]), Found([7], [DEPTH], [5])
    for _ in range(50):
        trust.learn(found, 5)
        other.learn(found, 6)
    assert trust.probabilities(found)[5] > 0.9 > 0.2 > other.probabilities(found)[5]
    assert trust.probabilities(longer) == other.probabilities(
        longer
    )  # of other contexts nothing is known
    assert trust.probabilities(longer)[5] > 0.9


def test_frequent_continuations_of_longer_contexts_get_higher_probabilities() -> None:
    trust = FollowerStats()
    alike = trust.probabilities(Found([1, 2, 3], [2, 2, 2], [3, 3, 4]))
    assert alike[3] == pytest.approx(2 * alike[4])
    behind_more = trust.probabilities(Found([1, 2], [4, 2], [3, 4]))
    assert behind_more[3] > 2 * behind_more[4]
    assert sum(alike.values()) <= 1 >= sum(behind_more.values())
    twice, once = Found([1, 2], [2, 2], [3, 3]), Found([1], [2], [3])
    assert trust.probabilities(twice)[3] > trust.probabilities(once)[3]
