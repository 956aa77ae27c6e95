"""Penalties and filters against transformers' own; typical acceptance by its definition."""

import math
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor
from transformers import (
    LogitsProcessor,
    MinPLogitsWarper,
    RepetitionPenaltyLogitsProcessor,
    SequenceBiasLogitsProcessor,
    SuppressTokensLogitsProcessor,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import ChatMessage, GenerateSettings, Role
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import WalkContext
from medusa_core.speculation.rules.rule import rule_registry
from medusa_core.speculation.rules.sampling import Sampler
from medusa_core.speculation.rules.shaping import (
    Shaping,
    check_tokens,
)
from tests.support.engine.fakes import oracle_spec
from tests.support.engine.laws import decode, plainly, user_says

HISTORY = (3, 7, 7, 12, 40, 41)
CONTEXT = WalkContext(HISTORY, 3)  # the answer so far: 12, 40, 41
PATH = (40, 9)


def row(seed: int) -> Tensor:
    """Random scores of 64 tokens."""
    return torch.randn(64, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) * 3


PEERS: dict[str, tuple[dict[str, object], Callable[[], LogitsProcessor]]] = {
    "repetition": (
        {"repetition_penalty": 1.4},
        lambda: RepetitionPenaltyLogitsProcessor(1.4),
    ),
    "bias": (
        {"logit_bias": ((5, 2.5), (9, -4.0))},
        lambda: SequenceBiasLogitsProcessor([[[5], 2.5], [[9], -4.0]]),
    ),
    "bans": ({"banned": (1, 9, 30)}, lambda: SuppressTokensLogitsProcessor([1, 9, 30])),
}


@pytest.mark.parametrize("name", PEERS)
@pytest.mark.parametrize("seed", range(3))
def test_penalties_and_temperature_equal_transformers(name: str, seed: int) -> None:
    settings, peer = PEERS[name]
    ours = Shaping(replace(GenerateSettings(), **settings))(row(seed), CONTEXT, PATH)
    text = torch.tensor([[*HISTORY, *PATH]])
    torch.testing.assert_close(ours, peer()(text, row(seed).float().unsqueeze(0))[0].double())


@pytest.mark.parametrize("seed", range(3))
def test_filters_are_applied_in_transformers_order(seed: int) -> None:
    settings = GenerateSettings(temperature=0.7, top_k=20, top_p=0.9, min_p=0.03)
    text = torch.tensor([HISTORY])
    scores = row(seed).unsqueeze(0)
    for warp in (
        TemperatureLogitsWarper(0.7),
        TopKLogitsWarper(20),
        TopPLogitsWarper(0.9),
        MinPLogitsWarper(0.03),
    ):
        scores = warp(text, scores)
    torch.testing.assert_close(
        torch.softmax(Sampler(settings).filtered(row(seed)), 0), torch.softmax(scores[0], 0)
    )


def test_presence_and_frequency_count_only_the_answer_and_the_path() -> None:
    settings = GenerateSettings(presence_penalty=0.5, frequency_penalty=0.25)
    change = Shaping(settings)(row(1), CONTEXT, PATH) - row(1)
    expected = torch.zeros(64, dtype=torch.float64)
    expected[[12, 41, 9]] = -0.75
    expected[40] = -1.0  # once decided, once drafted
    torch.testing.assert_close(change, expected)


def test_a_token_is_forbidden_only_at_its_position() -> None:
    shaping = Shaping(GenerateSettings(forbidden=((5, 8), (5, 9), (3, 1))))
    for path, expected in (((), [1]), ((2,), []), ((2, 2), [8, 9]), ((2, 2, 2), [])):
        shaped = shaping(row(0), CONTEXT, path)
        assert torch.isneginf(shaped).nonzero().flatten().tolist() == expected


def test_without_settings_logits_are_unchanged() -> None:
    scores = row(0)
    assert Shaping(GenerateSettings())(scores, CONTEXT, PATH) is scores
    Shaping(GenerateSettings(presence_penalty=1.0))(scores, CONTEXT, PATH)
    assert scores.equal(row(0))


@pytest.mark.parametrize(
    "bad",
    [
        {"repetition_penalty": 0.0},
        {"repetition_penalty": float("nan")},
        {"presence_penalty": float("inf")},
        {"frequency_penalty": 1e9},
        {"logit_bias": ((3, float("nan")),)},
        {"forbidden": ((-1, 3),)},
        {"min_p": 1.5, "rule": "sample"},
        {"min_p": float("nan"), "rule": "sample"},
        {"epsilon": 0.0, "rule": "typical"},
        {"epsilon": 1.0, "rule": "typical"},
        {"delta": -0.1, "rule": "typical"},
    ],
    ids=str,
)
def test_senseless_settings_are_refused_with_a_hint(bad: dict[str, object]) -> None:
    settings = replace(GenerateSettings(), **bad)
    with pytest.raises(RequestError) as caught:
        rule_registry().get(settings.rule).build(settings)
    assert caught.value.hint


@pytest.mark.parametrize(
    "bad",
    [
        {"banned": (64,)},
        {"banned": (-1,)},
        {"logit_bias": ((99, 1.0),)},
        {"forbidden": ((0, 64),)},
        {"banned": tuple(range(64))},
    ],
    ids=str,
)
def test_tokens_of_another_model_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(RequestError):
        check_tokens(replace(GenerateSettings(), **bad), 64)


# Typical acceptance -------------------------------------------------------------------------------

TREE = TokenTree(
    TreeShape.from_paths([(0,), (1,), (0, 0), (1, 0), (1, 1), (1, 1, 0)]), (0, 5, 6, 7, 8, 9, 10)
)


def scores_of(chances: dict[int, dict[int, float]]) -> Tensor:
    """Scores of the tree's nodes: given chances, the rest spread over 200 tokens."""
    logits = torch.empty(7, 200, dtype=torch.float64)
    for node in range(7):
        given = chances.get(node, {199: 0.99})  # sure of what nobody drafted
        logits[node] = math.log((1 - sum(given.values())) / (200 - len(given)))
        for token, chance in given.items():
            logits[node, token] = math.log(chance)
    return logits


def accepted(chances: dict[int, dict[int, float]], **settings: object) -> tuple[int, ...]:
    requested = replace(GenerateSettings(rule="typical", temperature=1.0), **settings)
    rule = rule_registry().get("typical").build(requested)
    return rule.walk(TREE, scores_of(chances), WalkContext((1, 0), 1)).nodes


def test_sufficiently_likely_tokens_are_accepted_and_the_longest_path_wins() -> None:
    likely = {0: {5: 0.5, 6: 0.3}, 1: {7: 0.5}, 2: {9: 0.5}, 5: {10: 0.5}}
    assert accepted(likely) == (2, 5, 6)
    likely[5] = {10: 1e-4}
    # Two paths of two: the likelier one.
    assert accepted(likely) == (1, 3)
    likely[2] = {9: 0.9}
    assert accepted(likely) == (2, 5)
    assert accepted({}, epsilon=0.5, delta=100.0) == ()


def test_the_bonus_token_is_drawn_with_the_noise_of_its_own_position() -> None:
    scores = scores_of({0: {5: 0.5, 6: 0.3}, 2: {9: 0.5}, 5: {10: 1e-4}})
    for seed in range(5):
        requested = GenerateSettings(rule="typical", temperature=1.0, seed=seed)
        rule = rule_registry().get("typical").build(requested)
        found = rule.walk(TREE, scores, WalkContext((1, 0), 1))
        assert found.nodes == (2, 5)  # at positions 2 and 3
        assert found.bonus_id == Sampler(requested).draw(scores[5], 4)


def test_the_typical_threshold_follows_the_entropy() -> None:
    # Over a flat distribution of 200 tokens: exp(-entropy) is about 1/200.
    flat: dict[int, dict[int, float]] = {0: {5: 0.004}}
    # Of 200 tokens each has 0.005: above 0.3/200, below 1.5/200.
    assert accepted(flat, delta=0.3) == (2,)
    assert accepted(flat, delta=1.5) == ()
    sure = {0: {6: 0.9, 5: 0.08}}
    assert accepted(sure)[:1] == (2,)
    assert accepted(sure, epsilon=0.95, delta=100.0) == ()


def test_the_typical_threshold_has_the_reference_values() -> None:
    chances = {0: {5: 0.5, 6: 0.3}}
    p = torch.softmax(scores_of(chances)[0], 0)
    entropy = float(-(p * p.log()).sum())
    requested = GenerateSettings(rule="typical", temperature=1.0)
    rule = rule_registry().get("typical").build(requested)
    numbers = dict(rule.numbers(scores_of(chances)[0], WalkContext((1, 0), 1), (), 5))
    assert numbers["entropy"] == pytest.approx(entropy)
    assert numbers["threshold"] == pytest.approx(min(0.09, 0.3 * math.exp(-entropy)))
    assert numbers["probability"] == pytest.approx(0.5)


def test_delta_defaults_to_the_root_of_epsilon() -> None:
    flat: dict[int, dict[int, float]] = {0: {5: 0.004}}
    # Each of 200 tokens has 0.005, and exp(-entropy) is about 1/200: δ decides.
    assert accepted(flat, epsilon=0.81) == accepted(flat, epsilon=0.81, delta=0.9) == (2,)
    assert accepted(flat, epsilon=0.81, delta=1.1) == ()
    for epsilon in (0.05, 0.4, 0.9):
        requested = GenerateSettings(rule="typical", temperature=1.0, epsilon=epsilon)
        reported = []
        for settings in (requested, replace(requested, delta=math.sqrt(epsilon))):
            rule = rule_registry().get("typical").build(settings)
            reported.append(rule.numbers(scores_of(flat)[0], WalkContext((1, 0), 1), (), 5))
        assert reported[0] == reported[1]
        assert dict(reported[0])["threshold"] < epsilon


@pytest.mark.parametrize("rule", rule_registry().names)
@pytest.mark.parametrize("drafter", ["none", "medusa", "composite"])
def test_at_temperature_0_every_rule_is_greedy(rule: str, drafter: str, tiny: Target) -> None:
    requested = GenerateSettings(drafter=drafter, max_new_tokens=40, seed=3)
    greedy = decode(tiny, replace(requested, rule="greedy"), user_says("cold"))
    warm = replace(requested, rule=rule, temperature=1.5, top_k=9)
    cold = decode(tiny, replace(warm, temperature=0.0), user_says("cold"))
    assert cold.token_ids == greedy.token_ids
    assert cold.done.settings.rule == "greedy"  # as the window will say
    if rule_registry().get(rule).choice.draws:
        assert decode(tiny, warm, user_says("cold")).token_ids != greedy.token_ids
    # Another answer from a token on doesn't begin with the same one again.
    reported = ChatMessage(Role.ASSISTANT, greedy.done.text, greedy.token_ids)
    asked_again = (*user_says("cold"), reported)
    again = decode(tiny, replace(warm, temperature=0.0), asked_again, keep_tokens=5)
    assert again.token_ids[:5] == greedy.token_ids[:5]
    assert again.token_ids[5] != greedy.token_ids[5]


def test_without_a_drafter_typical_equals_sample(tiny: Target) -> None:
    requested = GenerateSettings(rule="typical", drafter="none", temperature=1.1, max_new_tokens=40)
    sampled = decode(tiny, replace(requested, rule="sample"), user_says("the same"))
    assert decode(tiny, requested, user_says("the same")).token_ids == sampled.token_ids


def test_typical_declares_that_it_is_not_exact(tiny: Target) -> None:
    spec = rule_registry().get("typical")
    assert not spec.choice.is_exact
    requested = GenerateSettings(
        drafter="medusa", rule="typical", temperature=1.3, max_new_tokens=60
    )
    plain = decode(tiny, plainly(requested), user_says("differs"))
    other = decode(tiny, plainly(replace(requested, seed=9)), user_says("differs"))
    truth = [*other.prompt_ids, *other.token_ids]
    run = decode(tiny, requested, user_says("differs"), drafter=oracle_spec(truth, 1))
    assert run.token_ids != plain.token_ids


def test_banned_tokens_are_never_accepted_as_typical() -> None:
    likely = {0: {5: 0.5, 6: 0.3}}
    assert accepted(likely, banned=(5,)) == (2,)
    assert accepted(likely, banned=(5, 6)) == ()
