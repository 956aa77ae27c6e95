"""A conversation's cache: what is reused, what is computed, and what a seed repeats."""

import random
from dataclasses import replace

import pytest
import torch

from medusa_core.engine.session import Session
from medusa_core.engine.start import start_generation
from medusa_core.errors import EngineError, RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import (
    ChatMessage,
    Generate,
    GenerateSettings,
    GenerationDone,
    Role,
)
from medusa_core.speculation.tuning.row_policy import RowPolicy
from tests.support.engine.counting import counted
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import check_cache, decode, plain_states, take_step, user_says

SAMPLED = GenerateSettings(
    drafter="medusa", rule="sample", temperature=1.2, seed=3, max_new_tokens=24
)


def test_the_second_turn_computes_only_new_tokens(tiny: Target) -> None:
    target, runner = counted(tiny)
    session = Session(target)
    first = decode(target, SAMPLED, user_says("what is new"), session=session)
    assert first.done.num_cached_tokens == 0
    assert runner.num_prefilled == first.done.num_prompt_tokens == first.steps[0].num_rows
    runner.num_prefilled = 0
    turns = (
        *user_says("what is new"),
        ChatMessage(Role.ASSISTANT, "not this answer"),
        ChatMessage(Role.USER, "and now"),
    )
    second = decode(target, SAMPLED, turns, session=session)
    common = len(first.prompt_ids)
    assert second.prompt_ids[:common] == first.prompt_ids
    assert second.done.num_cached_tokens >= common
    computed = second.done.num_prompt_tokens - second.done.num_cached_tokens
    assert runner.num_prefilled == computed == second.steps[0].num_rows
    fresh = decode(target, SAMPLED, turns)
    assert second.token_ids == fresh.token_ids


def test_an_answer_is_reused_if_it_returns_unchanged(tiny: Target) -> None:
    # A random target often writes what is no text, or tokens that its tokenizer would merge.
    for seed in range(100):
        session = Session(tiny)
        short = replace(SAMPLED, seed=seed, max_new_tokens=4)
        first = decode(tiny, short, user_says("hello"), session=session)
        if tiny.tokenizer.encode(first.done.text) == list(first.token_ids):
            break
    else:
        pytest.fail("no answer is tokenized as it was decoded")
    turns = (
        *user_says("hello"),
        ChatMessage(Role.ASSISTANT, first.done.text),
        ChatMessage(Role.USER, "go on"),
    )
    second = decode(tiny, SAMPLED, turns, session=session)
    # All but the answer's last token, which was decided but never had a row.
    assert second.done.num_cached_tokens == len(first.prompt_ids) + len(first.token_ids) - 1


def test_regenerate_computes_one_token_of_the_prompt(tiny: Target) -> None:
    target, runner = counted(tiny)
    session = Session(target)
    decode(target, SAMPLED, user_says("again please"), session=session)
    runner.num_prefilled = 0
    again = decode(target, replace(SAMPLED, seed=8), user_says("again please"), session=session)
    assert runner.num_prefilled == 1
    assert again.done.num_cached_tokens == again.done.num_prompt_tokens - 1


@pytest.mark.parametrize("drafter", ["none", "medusa"])
def test_the_same_seed_repeats_the_text_and_another_differs(drafter: str, load: LoadTarget) -> None:
    target = load("pebble", "float32")
    settings = replace(SAMPLED, drafter=drafter)
    session = Session(target)
    texts = [
        decode(target, replace(settings, seed=seed), user_says("Tell me a story."), session=session)
        for seed in (5, 6, 5)
    ]
    assert texts[0].done.text == texts[2].done.text != texts[1].done.text


def test_an_edited_message_keeps_the_cache_up_to_the_edit(tiny: Target) -> None:
    session = Session(tiny)
    decode(tiny, SAMPLED, user_says("one two three"), session=session)
    run = decode(
        tiny,
        SAMPLED,
        user_says("one two four"),
        session=session,
        after_step=lambda session: check_cache(session, tiny, 1e-12),
    )
    assert 4 <= run.done.num_cached_tokens < run.done.num_prompt_tokens - 1
    assert run.token_ids == decode(tiny, SAMPLED, user_says("one two four")).token_ids


def test_any_order_of_prompts_in_one_session_answers_as_in_fresh_ones(tiny: Target) -> None:
    chance, alone = random.Random(1), {}
    for _ in range(5):
        session = Session(tiny)
        for _ in range(4):
            text = "".join(chance.choices("ab ", k=chance.randint(1, 4)))
            seed = chance.randrange(3)
            wanted = replace(SAMPLED, seed=seed, max_new_tokens=1 + 4 * seed)
            messages = user_says(text + "!")
            run = decode(tiny, wanted, messages, session=session)
            if (text, seed) not in alone:
                alone[text, seed] = decode(tiny, wanted, messages).token_ids
            assert run.token_ids == alone[text, seed]
        session.close()


def test_a_session_works_after_a_cancelled_answer(tiny: Target) -> None:
    prompt = "a long prompt, " * 20  # several chunks of prefill
    expected = decode(tiny, SAMPLED, user_says(prompt)).token_ids

    def cancel_after(num_pieces: int) -> None:
        session = Session(tiny)
        request = Generate("s", "r", user_says(prompt), SAMPLED)
        generation = start_generation(request, tiny, session, RowPolicy(tiny))
        for _ in range(num_pieces):
            take_step(generation)
        *_, done = generation.cancel()
        assert isinstance(done, GenerationDone)
        assert done.token_ids == tuple(session.token_ids[done.num_prompt_tokens :])
        assert take_step(generation) == ()
        run = decode(tiny, SAMPLED, user_says(prompt), session=session)
        assert run.token_ids == expected

    for num_pieces in (0, 1, 3, 7):
        cancel_after(num_pieces)


def test_a_refused_request_leaves_the_session_unchanged(tiny: Target) -> None:
    session = Session(tiny)
    decode(tiny, SAMPLED, user_says("keep me"), session=session)
    before = list(session.token_ids), session.kv.committed()
    for bad in (replace(SAMPLED, drafter="x"), replace(SAMPLED, temperature=-1.0)):
        with pytest.raises(RequestError):
            start_generation(
                Generate("s", "r", user_says("other"), bad), tiny, session, RowPolicy(tiny)
            )
    assert session.token_ids == before[0]
    assert session.kv.committed().equal(before[1])


# The cache itself ---------------------------------------------------------------------------------


def test_rows_beyond_the_capacity_are_refused(tiny: Target) -> None:
    kv = tiny.runner.new_cache(4)
    tiny.runner.extend([1, 2, 3], kv)
    with pytest.raises(EngineError, match="3 of 4"):
        tiny.runner.extend([4, 5], kv)
    assert kv.length == 3


def test_truncating_never_restores_rows(tiny: Target) -> None:
    kv = tiny.runner.new_cache(8)
    tiny.runner.extend([1, 2, 3], kv)
    kv.truncate(2)
    kv.truncate(5)
    assert kv.length == 2
    tiny.runner.extend([9], kv)
    assert torch.allclose(kv.committed(), plain_states(tiny, [1, 2, 9])[1], rtol=1e-9)
