"""Verification of given texts: the table of inputs and outputs."""

from dataclasses import replace

import pytest

from medusa_core.engine.direct import generate
from medusa_core.engine.verification import verify
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, Role, Verified, Verify
from tests.support.engine.laws import plain_scores, user_says

ASK = Verify("s", "r")
SETTINGS = GenerateSettings(drafter="medusa", max_new_tokens=24)


def verified_answer(target: Target) -> tuple[Verified, tuple[int, ...]]:
    """A conversation read again, and the tokens of its answer."""
    done = generate(target, user_says("verify this"), SETTINGS)
    answer = ChatMessage(Role.ASSISTANT, done.text, done.token_ids)
    return verify(replace(ASK, messages=(*user_says("verify this"), answer)), target), (
        done.token_ids
    )


def test_a_greedy_answer_is_a_fixed_point(tiny: Target) -> None:
    read, answer = verified_answer(tiny)
    written = [i for i in answer if i not in tiny.eos_token_ids]  # EOS isn't read again
    tokens = read.tokens[-len(written) - 1 :]
    assert [token.token_id for token in tokens[1:]] == written
    assert [token.output.token_id for token in tokens[:-1]] == written


def test_verification_says_which_tokens_a_model_wrote(tiny: Target) -> None:
    question, more = user_says("one")[0], user_says("and more?")[0]
    first = generate(tiny, (question,), SETTINGS)
    turns = (question, ChatMessage(Role.ASSISTANT, first.text, first.token_ids), more)
    second = generate(tiny, turns, SETTINGS)
    turns = (*turns, ChatMessage(Role.ASSISTANT, second.text, second.token_ids))
    read = verify(replace(ASK, messages=turns), tiny)
    ids = [token.token_id for token in read.tokens]
    spans = [tuple(ids[start:stop]) for start, stop in read.answers]
    end = min(tiny.eos_token_ids)
    # The first one's end was written behind it; the last one's isn't read.
    assert spans[0] in (first.token_ids, (*first.token_ids, end))
    assert spans[0][-1] == end
    assert spans[1] == tuple(i for i in second.token_ids if i != end)
    assert verify(replace(ASK, text="no conversation"), tiny).answers == ()


def test_predictions_are_the_targets_most_likely_tokens(tiny: Target) -> None:
    read = verify(replace(ASK, text="one two three"), tiny)
    ids = [token.token_id for token in read.tokens]
    assert ids == tiny.tokenizer.encode("one two three")
    for place, token in enumerate(read.tokens):
        scores = plain_scores(tiny, ids[: place + 1])
        assert token.output.token_id == int(scores.argmax())
        chance = float(scores.softmax(-1).max())
        assert token.output.probability == pytest.approx(chance, rel=1e-3)
        assert token.text == tiny.tokenizer.bytes_of(token.token_id)


def test_an_edit_changes_no_prediction_before_it_and_no_other_input(tiny: Target) -> None:
    read, _ = verified_answer(tiny)
    ids = tuple(token.token_id for token in read.tokens)
    at = len(ids) - 6
    again = verify(
        replace(ASK, before_ids=ids[:at], text="mountain", after_ids=ids[at + 1 :]), tiny
    )
    new = tuple(token.token_id for token in again.tokens)
    assert new[:at] == ids[:at]
    assert new[-5:] == ids[-5:]
    assert new[at:-5] == tuple(tiny.tokenizer.encode_within("mountain"))
    before = [token.output.token_id for token in read.tokens[: at - 1]]
    assert [token.output.token_id for token in again.tokens[: at - 1]] == before


def test_the_longest_text_is_verified_and_a_longer_one_refused(tiny: Target) -> None:
    limit = tiny.config.context_tokens
    ids = tuple(i % 50 + 10 for i in range(limit))
    read = verify(replace(ASK, before_ids=ids), tiny).tokens
    assert len(read) == limit
    for place in (63, 64, 200):  # scores are computed for 64 rows at a time
        scores = plain_scores(tiny, list(ids[: place + 1]))
        assert read[place].output.token_id == int(scores.argmax())
    with pytest.raises(RequestError, match=f"{limit + 1} tokens"):
        verify(replace(ASK, before_ids=(*ids, 11)), tiny)


def test_a_conversation_that_fills_the_context_is_verified(tiny: Target) -> None:
    limit, question = tiny.config.context_tokens, ChatMessage(Role.USER, "hello")

    def length_with(num_tokens: int) -> int:
        ids = tuple(tiny.tokenizer.encode_within("a, b; " * num_tokens)[:num_tokens])
        content = b"".join(map(tiny.tokenizer.bytes_of, ids)).decode()
        answer = ChatMessage(Role.ASSISTANT, content, ids)
        return len(verify(replace(ASK, messages=(question, answer)), tiny).tokens)

    around = length_with(20) - 20
    assert length_with(limit - around) == limit
    with pytest.raises(RequestError, match=f"reads {limit}"):
        length_with(limit - around + 1)


def test_empty_and_invalid_tokens_are_refused(tiny: Target) -> None:
    with pytest.raises(RequestError, match="nothing to verify"):
        verify(ASK, tiny)
    with pytest.raises(RequestError, match="none of"):
        verify(replace(ASK, before_ids=(tiny.config.vocab_size,)), tiny)
