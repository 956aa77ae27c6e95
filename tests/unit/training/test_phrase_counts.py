"""How a phrase table is counted in a model's own answers."""

import argparse
import json
import random
from collections import Counter, defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from medusa_core.cli.train import add_train_arguments
from medusa_core.engine.direct import generate
from medusa_core.errors import TrainingError
from medusa_core.loading.load import load_target
from medusa_core.messages import ChatMessage, GenerateSettings, LoadOptions, Role
from medusa_core.models.datastore.phrases import (
    FILE,
    next_key,
    read_phrases,
)
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.training import phrase_counts
from medusa_core.training.phrase_counts import (
    OwnText,
    PhraseRecipe,
    _next_keys,
    count_phrases,
    make_phrases,
    own_texts,
    rank_shares,
)
from tests.support.engine.laws import user_says
from tests.support.models.tiny import TinySpec, write_tiny

SHORT = TinySpec(context_tokens=64)  # answers end where the context does
NUMBERS = PhraseRecipe(longest=3, least_count=2, least_chance=0.0, least_news=0.0)


def test_few_continuations_of_a_shorter_context_may_be_mixed_in() -> None:
    texts = texts_of(5)
    whole, few = (count_phrases(texts, replace(NUMBERS, most_mixed=n)) for n in (0, 6))
    assert (whole.chances == few.chances).all()  # there are six tokens
    # Of what followed 1 alone, 2 is likeliest, then 3; behind 4, 1 came 5.
    reported = [OwnText(ids, 0) for ids in 6 * [(1, 2)] + 3 * [(1, 3)] + 2 * [(4, 1, 5)]]
    both = [one.token_id for one in count_phrases(reported, NUMBERS).followers((1, 4))]
    best = replace(NUMBERS, most_mixed=1)
    assert both == [5, 2, 3]
    assert [one.token_id for one in count_phrases(reported, best).followers((1, 4))] == [5, 2]


def texts_of(seed: int, num_tokens: int = 6, number: int = 12) -> list[OwnText]:
    rng = random.Random(seed)
    return [
        OwnText(tuple(rng.randrange(num_tokens) for _ in range(rng.randrange(4, 40))), 3)
        for _ in range(number)
    ]


def expected(texts: list[OwnText], context: tuple[int, ...]) -> dict[int, float]:
    """Return Witten and Bell's probabilities after a context, counted one by one."""
    if not context:
        return {}
    followed: Counter[int] = Counter()
    for token_ids, start in texts:
        for place in range(max(start, len(context)), len(token_ids)):
            if token_ids[place - len(context) : place] == context:
                followed[token_ids[place]] += 1
    total = followed.total()
    share = total / (total + len(followed))
    chances: dict[int, float] = defaultdict(float)
    for token_id, chance in expected(texts, context[1:]).items():
        chances[token_id] += (1 - share) * chance
    for token_id, count in followed.items():
        if count >= NUMBERS.least_count:
            chances[token_id] += share * count / total
    return chances


def longest_output(texts: list[OwnText], context: tuple[int, ...]) -> tuple[int, ...]:
    """Return the longest suffix of a context with enough continuations."""
    while context:
        followed = Counter(
            text.token_ids[place]
            for text in texts
            for place in range(max(text.start, len(context)), len(text.token_ids))
            if text.token_ids[place - len(context) : place] == context
        )
        if followed and max(followed.values()) >= NUMBERS.least_count:
            break
        context = context[1:]
    return context


def test_probabilities_follow_witten_and_bell() -> None:
    texts = texts_of(3)
    phrases = count_phrases(texts, NUMBERS)
    for context in product(range(6), repeat=3):
        found = [follower.chance for follower in phrases.followers(reversed(context))]
        chances = expected(texts, longest_output(texts, context))
        assert len(found) == 4
        assert found == pytest.approx(sorted(chances.values(), reverse=True)[:4], abs=0.003)


def test_single_occurrences_are_no_phrases_and_redundant_contexts_are_omitted() -> None:
    once = [OwnText((1, 2, 3, 4), 1)]
    with pytest.raises(TrainingError, match="Nothing is said twice"):
        count_phrases(once, NUMBERS)
    texts = [OwnText((k % 2, 7, 8), 1) for k in range(40)]
    for least_news, num_contexts in ((0.0, 5), (0.15, 3)):
        phrases = count_phrases(texts, replace(NUMBERS, least_news=least_news))
        assert [f.token_id for f in phrases.followers([7])] == [8]
        assert len(phrases) == num_contexts  # whatever comes before 7, 8 comes behind it
    few = count_phrases(texts_of(5), replace(NUMBERS, most_followers=2, least_chance=0.2))
    assert set(np.diff(few.starts)) <= {1, 2}
    assert few.chances.min() >= 0.19


def test_the_prompt_is_context_but_not_counted() -> None:
    texts = [OwnText((4, 5, 6, 9), 3)] * 3
    phrases = count_phrases(texts, NUMBERS)
    assert [f.token_id for f in phrases.followers([6, 5, 4])] == [9]
    assert phrases.followers([5, 4]) == []


def test_keys_are_computed_equally_one_by_one_and_vectorized() -> None:
    rng = np.random.default_rng(4)
    keys = rng.integers(0, 1 << 32, 500, dtype=np.uint32)
    tokens = rng.integers(0, 200_000, 500, dtype=np.uint32)
    pairs = zip(keys.tolist(), tokens.tolist(), strict=True)
    assert _next_keys(keys, tokens).tolist() == [next_key(*pair) for pair in pairs]


def test_a_rank_counts_if_those_before_it_were_right() -> None:
    phrases = count_phrases([OwnText((0, 1, 2, 3), 1)] * 2, NUMBERS)
    shares = rank_shares(phrases, [OwnText((0, 1, 2, 9, 1), 1)])
    # Behind 0 and 1 it is right, 9 and what comes behind it are not foreseen.
    assert shares[0] == (0.5, 0, 0, 0)
    assert shares[1] == (0.5, 0, 0, 0)
    assert shares[2] == (0.0, 0, 0, 0)


def train(*options: str) -> int:
    parser = argparse.ArgumentParser()
    add_train_arguments(parser)
    args = parser.parse_args(options)
    code: int = args.run(args)
    return code


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers share the cores: a second thread of a tiny model waits longer than it computes."""
    monkeypatch.setattr("os.cpu_count", lambda: 1)


@pytest.fixture
def prompts_file(tmp_path: Path) -> Path:
    path = tmp_path / "asked.jsonl"
    rows = [
        {"id": f"x/{k}", "suite": "x", "category": "x", "turns": [f"number {k}"]} for k in range(12)
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_the_command_writes_a_table_beside_a_model_that_then_drafts_with_it(
    tmp_path: Path, prompts_file: Path
) -> None:
    model = write_tiny(tmp_path / "model", SHORT)
    options = ("--model", str(model), "--prompts", str(prompts_file), "--answers", "11")
    assert train("phrases", *options, "--out", str(model)) == 0
    assert read_phrases(model, 320) is not None
    target = load_target(model, options=LoadOptions("float64"))
    settings = GenerateSettings(drafter="phrases", max_new_tokens=60)
    done = generate(target, user_says("number 3"), settings)
    plain = generate(target, user_says("number 3"), replace(settings, drafter="none"))
    assert done.token_ids == plain.token_ids
    assert done.num_steps < plain.num_steps


def test_too_few_answers_are_refused(tmp_path: Path, prompts_file: Path) -> None:
    model = write_tiny(tmp_path / "model", SHORT)
    options = ("--model", str(model), "--prompts", str(prompts_file), "--answers", "2")
    with pytest.raises(TrainingError, match="in 2 answers") as refused:
        train("phrases", *options, "--out", str(tmp_path))
    assert "more prompts" in refused.value.hint
    assert not (tmp_path / FILE).exists()


def test_a_message_that_does_not_fit_is_skipped(tmp_path: Path) -> None:
    target = load_target(write_tiny(tmp_path), options=LoadOptions("float64"))
    requested = [[ChatMessage(Role.USER, text)] for text in ("hi", "x" * 2000, "yes")]
    texts = list(
        own_texts(target, requested, replace(NUMBERS, max_new_tokens=5), RowPolicy(target))
    )
    assert [text.start for text in texts] == [3, 3]


def test_held_out_prompts_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked_for: list[tuple[float, list[str]]] = []

    def answer(
        _: object,
        requested: list[list[ChatMessage]],
        __: object,
        ___: object,
        temperature: float = 0,
    ) -> list[OwnText]:
        asked_for.append((temperature, [messages[-1].text for messages in requested]))
        return [OwnText((1, 2, 3), 1)] * len(requested)

    monkeypatch.setattr(phrase_counts, "own_texts", answer)
    target = load_target(write_tiny(tmp_path), options=LoadOptions("float64"))
    requested = [user_says(str(k)) for k in range(30)]
    phrases = make_phrases(target, requested, replace(NUMBERS, temperatures=(0.7, 1.0)))
    words = [str(k) for k in range(30)]
    assert asked_for == [(0, words[3:]), *((t, words[:3]) for t in (0.0, 0.7, 1.0))]
    assert set(phrases.accuracies) == {0.0, 0.5, 1.0}


def test_sampled_answers_to_the_same_question_differ(tmp_path: Path) -> None:
    target = load_target(write_tiny(tmp_path), options=LoadOptions("float64"))
    numbers, row_policy = replace(NUMBERS, max_new_tokens=12), RowPolicy(target)
    for temperature, num_different in ((0.0, 1), (1.0, 3)):
        texts = own_texts(target, [user_says("hi")] * 3, numbers, row_policy, temperature)
        assert len(set(texts)) == num_different
