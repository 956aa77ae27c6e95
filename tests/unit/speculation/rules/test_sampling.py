"""Sampling: filters, noise, and law 2's distribution, with speculation and without."""

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from scipy import special
from torch import Tensor

from medusa_core.engine.session import Session
from medusa_core.errors import NumericsError, RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import TARGET, DrafterChoice, GenerateSettings, TokenSource
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import (
    Proposal,
    WalkContext,
)
from medusa_core.speculation.drafters.drafter import (
    Drafter,
    DrafterSpec,
)
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.none import NoDrafter
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.rules.rule import (
    RuleSpec,
    rule_registry,
)
from medusa_core.speculation.rules.sampling import (
    LargestScores,
    Sampler,
    gumbel_noise,
    gumbel_noise_of,
)
from medusa_core.speculation.rules.shaping import Shaping
from tests.support.engine.fakes import ChanceWitness
from tests.support.engine.faults import Credulous, faulty_rule
from tests.support.engine.laws import decode, plain_scores, user_says

MESSAGES = user_says("a")
NUM_TOKENS = 3
VARIANTS = (
    GenerateSettings(drafter="medusa", rule="sample", temperature=0.7, max_new_tokens=NUM_TOKENS),
    GenerateSettings(
        drafter="medusa", rule="sample", temperature=1.5, top_k=3, max_new_tokens=NUM_TOKENS
    ),
    GenerateSettings(
        drafter="medusa", rule="sample", temperature=0.7, top_p=0.6, max_new_tokens=NUM_TOKENS
    ),
    # Everything at once; what is drafted counts for the penalties of what comes behind it.
    GenerateSettings(
        drafter="medusa",
        rule="sample",
        temperature=0.8,
        top_k=9,
        top_p=0.9,
        min_p=0.05,
        repetition_penalty=1.3,
        presence_penalty=0.4,
        frequency_penalty=0.3,
        logit_bias=((193, -2.0), (153, 1.0)),  # tokens that are likely there
        banned=(167,),
        forbidden=((1, 232),),
        max_new_tokens=NUM_TOKENS,
    ),
)
CONTEXT = WalkContext((4, 5, 6), 2)
LIKELY_NOISE = 1e-4  # the seeds are fixed: a p-value below this is a bias, not bad luck


class LikelyDrafter:
    """Drafts the target's three best tokens at two depths, so that drafts are often accepted."""

    _SHAPE = TreeShape.from_paths(
        [(a,) for a in range(3)] + [(a, b) for a in range(3) for b in range(3)]
    )

    def __init__(self, target: Target) -> None:
        self._token_ids: list[int] = []

        @cache
        def best(token_ids: tuple[int, ...]) -> list[int]:
            return plain_scores(target, token_ids).topk(3).indices.tolist()

        self._best = best

    def begin(self, token_ids: Sequence[int]) -> None:
        self._token_ids = list(token_ids)

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        prefix = tuple(self._token_ids)
        children = self._best(prefix)
        grand = [token for child in children for token in self._best((*prefix, child))]
        sources = (TARGET, *(TokenSource("likely", depth) for depth in self._SHAPE.depths[1:]))
        return Proposal(TokenTree(self._SHAPE, (root_id, *children, *grand)), sources)

    def observe(self, observation: Observation) -> None:
        self._token_ids += observation.token_ids

    def truncate(self, length: int) -> None:
        del self._token_ids[length:]


def likely_spec(target: Target) -> DrafterSpec:
    """Return one drafter for all answers of a test, so that each prefix is computed once."""
    drafter = LikelyDrafter(target)
    choice = DrafterChoice("likely", "Likely", "")
    return DrafterSpec(choice, lambda _: True, lambda _, __: drafter, preference=99)


def naive_scores(
    scores: Tensor, settings: GenerateSettings, prompt_ids: Sequence[int], answer: Sequence[int]
) -> np.ndarray:
    """Penalties, bias and bans, token by token, from their definitions."""
    values = scores.double().numpy().copy()
    for token in {*prompt_ids, *answer}:
        factor = settings.repetition_penalty
        values[token] = values[token] / factor if values[token] > 0 else values[token] * factor
    for token in answer:
        values[token] -= settings.frequency_penalty
    for token in set(answer):
        values[token] -= settings.presence_penalty
    for token, bias in settings.logit_bias:
        values[token] += bias
    values[list(settings.banned)] = -np.inf
    for place, token in settings.forbidden:
        if place == len(answer):
            values[token] = -np.inf
    return values


def naive_probabilities(values: np.ndarray, settings: GenerateSettings) -> np.ndarray:
    """Softmax after temperature, top-k, top-p and min-p, written anew with numpy."""
    values = values / settings.temperature
    weights = np.exp(values - values.max())
    order = np.argsort(-values, kind="stable")
    if settings.top_k:
        weights[order[settings.top_k :]] = 0
    weights /= weights.sum()
    if settings.top_p < 1:
        num_kept = int(np.searchsorted(np.cumsum(weights[order]), settings.top_p)) + 1
        weights[order[num_kept:]] = 0
    weights[weights < settings.min_p * weights.max()] = 0
    return weights / weights.sum()


def exact_distribution(
    target: Target, prompt_ids: tuple[int, ...], settings: GenerateSettings, least: float
) -> dict[tuple[int, ...], float]:
    """Probability of every continuation of which it is at least `least`."""
    open_ends = {(): 1.0}
    closed: dict[tuple[int, ...], float] = {}
    for _ in range(settings.max_new_tokens):
        longer: dict[tuple[int, ...], float] = {}
        for text, chance in open_ends.items():
            scores = plain_scores(target, (*prompt_ids, *text))
            values = naive_scores(scores, settings, prompt_ids, text)
            row = naive_probabilities(values, settings)
            for token in np.flatnonzero(row * chance >= least).tolist():
                ends = token in target.eos_token_ids
                (closed if ends else longer)[(*text, token)] = chance * float(row[token])
        open_ends = longer
    return closed | open_ends


def p_value(
    target: Target, settings: GenerateSettings, drafter: DrafterSpec, rule: RuleSpec, num_seeds: int
) -> float:
    """Chi-squared test of decoded texts against the target's exact probabilities."""
    session = Session(target)
    runs = [
        decode(
            target,
            replace(settings, seed=seed),
            MESSAGES,
            session=session,
            drafter=drafter,
            rule=rule,
        )
        for seed in range(num_seeds)
    ]
    counts = Counter(run.token_ids for run in runs)
    # Cells with too few expected counts go into one.
    cells = exact_distribution(target, runs[0].prompt_ids, settings, 5 / num_seeds)
    observed = [counts[text] for text in cells]
    expected = [chance * num_seeds for chance in cells.values()]
    observed.append(num_seeds - sum(observed))
    expected.append(num_seeds - sum(expected))
    if expected[-1] < 1e-6:
        assert observed.pop() == 0
        expected.pop()
    assert len(cells) >= 6
    counted, wanted = np.array(observed), np.array(expected)
    return float(special.chdtrc(len(counted) - 1, ((counted - wanted) ** 2 / wanted).sum()))


EXACT_RULES = [r for r in rule_registry().specs if r.choice.is_exact and r.name != "greedy"]


@pytest.mark.parametrize("rule", EXACT_RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize(
    "settings",
    [  # filters are compared with naive ones below
        pytest.param(VARIANTS[0], id="plain"),
        pytest.param(VARIANTS[1], id="top-k", marks=pytest.mark.slow),
        pytest.param(VARIANTS[2], id="top-p", marks=pytest.mark.slow),
        pytest.param(VARIANTS[3], id="everything"),
    ],
)
def test_law_2_accepted_drafts_keep_the_distribution(
    settings: GenerateSettings, rule: RuleSpec, tiny: Target
) -> None:
    assert p_value(tiny, settings, likely_spec(tiny), rule, 200) > LIKELY_NOISE


@pytest.mark.slow  # daily, `test_laws` compares drawn texts of every drafter with plain decoding
@pytest.mark.parametrize("rule", EXACT_RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("drafter", drafter_registry().specs, ids=lambda drafter: drafter.name)
def test_law_2_every_drafter_keeps_the_distribution(
    drafter: DrafterSpec, rule: RuleSpec, target_of: Callable[[str], Target]
) -> None:
    assert p_value(target_of(drafter.name), VARIANTS[1], drafter, rule, 150) > LIKELY_NOISE


def test_a_biased_rule_is_detected(tiny: Target) -> None:
    biased = faulty_rule(rule_registry().get("sample"), Credulous)
    assert p_value(tiny, VARIANTS[1], likely_spec(tiny), biased, 150) < LIKELY_NOISE


def test_likely_drafts_are_accepted_often(tiny: Target) -> None:
    runs = [
        decode(tiny, replace(VARIANTS[1], seed=seed), MESSAGES, drafter=likely_spec(tiny))
        for seed in range(10)
    ]
    accepted = sum(source.head > 0 for run in runs for step in run.steps for source in step.sources)
    assert accepted >= 15


# Filters and noise --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("top_k", "top_p"), [(0, 1.0), (1, 1.0), (5, 1.0), (0, 0.5), (0, 1e-9), (7, 0.8), (999, 0.99)]
)
def test_filters_equal_a_naive_filter(seed: int, top_k: int, top_p: float) -> None:
    scores = torch.randn(50, generator=torch.Generator().manual_seed(seed)) * 2
    settings = GenerateSettings(rule="sample", temperature=0.7, top_k=top_k, top_p=top_p)
    ours = torch.softmax(Sampler(settings).filtered(scores), dim=0).numpy()
    np.testing.assert_allclose(
        ours, naive_probabilities(scores.double().numpy(), settings), atol=1e-12
    )


def sorted_nucleus(scores: torch.Tensor, top_p: float) -> set[int]:
    """The smallest set of best tokens that reaches `top_p`, by sorting all of them."""
    ordered, order = torch.softmax(scores, dim=-1).sort(descending=True, stable=True)
    return set(order[ordered.cumsum(0) - ordered < top_p].tolist())


@pytest.mark.parametrize("top_p", [1e-9, 0.3, 0.9, 0.999])
@pytest.mark.parametrize("deviation", [0.01, 1.0, 4.0])
@pytest.mark.parametrize("digits", [0, 1, 6])
def test_only_part_of_a_large_vocabulary_is_sorted_with_the_same_result(
    top_p: float, deviation: float, digits: int
) -> None:
    """Rounded scores are often equal: then the first ones are kept."""
    dice = torch.Generator().manual_seed(digits)
    scores = (deviation * torch.randn(30_000, generator=dice)).double().round(decimals=digits)
    kept = Sampler(GenerateSettings(temperature=1.0, top_p=top_p)).filtered(scores)
    assert set(kept.isfinite().nonzero().flatten().tolist()) == sorted_nucleus(scores, top_p)


@pytest.mark.parametrize("deviation", [0.01, 1.0, 4.0])
def test_tokens_removed_from_a_large_vocabulary_are_never_drawn(deviation: float) -> None:
    sampler = Sampler(GenerateSettings(temperature=0.9, seed=5))
    for position in range(40):
        dice = torch.Generator().manual_seed(position)
        scores = (deviation * torch.randn(30_000, generator=dice)).float()
        noisy = scores.double() / 0.9 + gumbel_noise(5, position, 30_000)
        assert sampler.draw(scores, position) == int(noisy.argmax())


FILTERS = (
    {"top_p": 0.95},
    {"top_p": 0.3, "min_p": 0.1},
    {"top_k": 40},
    {"top_k": 40, "top_p": 0.9, "min_p": 0.05},
    {"min_p": 0.05},
)


@pytest.mark.parametrize("deviation", [0.01, 1.0, 4.0])
@pytest.mark.parametrize("digits", [0, 1, 6])
@pytest.mark.parametrize("given", FILTERS)
def test_of_float32_logits_the_same_token_is_drawn_as_of_all_in_float64(
    given: dict[str, float], digits: int, deviation: float
) -> None:
    """Float32 logits are filtered without converting all of them; rounded ones are often equal."""
    settings = replace(GenerateSettings(temperature=0.7, seed=5), **given)
    for position in range(6):
        dice = torch.Generator().manual_seed(position)
        scores = (deviation * torch.randn(30_000, generator=dice)).round(decimals=digits)
        scores[7::4001] += 4 * deviation  # as a model's logits, of which few are likely
        sampler = Sampler(settings)
        noisy = sampler.filtered(scores.double()) + gumbel_noise(5, position, 30_000)
        assert sampler.draw(scores, position) == int(noisy.argmax())


def test_a_penalty_counts_the_tokens_of_a_growing_text() -> None:
    settings, row = GenerateSettings(repetition_penalty=2.0), torch.ones(12)
    history, shaping = [4, 5], Shaping(settings)
    for path in ((), (9,), (9, 4), (), (7,)):
        context = WalkContext(history, 1)
        penalised = {*history, *path}
        shaped = shaping(row, context, path)
        assert {token for token in range(12) if shaped[token] == 0.5} == penalised
        history += path


@pytest.mark.parametrize("deviation", [0.01, 1, 4])
def test_the_largest_logits_give_the_same_token_as_the_whole_row(deviation: float) -> None:
    generator = torch.Generator().manual_seed(3)
    logits = (torch.randn(6, 3000, generator=generator) * deviation).bfloat16()  # with ties
    logits[1, 40:44] = logits[1].max() + 1
    logits[2] = logits[2, :1]
    filters = [
        {},
        {"top_k": 40},
        {"top_p": 0.9},
        {"min_p": 0.05},
        {"top_k": 2000},
        {"top_p": 0.9999},
    ]
    filters += [{"top_k": 30, "top_p": 0.8, "min_p": 0.01}, {"top_k": 512}]
    for given in filters:
        for temperature in (0.3, 0.7, 1.5):
            settings = GenerateSettings(rule="sample", seed=5, temperature=temperature, **given)
            sampler, largest = Sampler(settings), LargestScores(logits, temperature)
            for row, position in itertools.product(range(len(logits)), range(3)):
                wanted = Sampler(settings).draw(logits[row], position)
                assert sampler.draw_of_largest(largest, row, position) == wanted, (given, row)


def test_nan_among_the_largest_logits_is_refused() -> None:
    logits = torch.zeros(1, 3000)
    logits[0, 7] = torch.nan
    with pytest.raises(NumericsError):
        Sampler(GenerateSettings()).draw_of_largest(LargestScores(logits, 1.0), 0, 0)


def test_top_k_of_one_and_a_tiny_nucleus_are_greedy() -> None:
    scores = torch.randn(50)
    for settings in (GenerateSettings(top_k=1), GenerateSettings(top_p=1e-6)):
        draws = {Sampler(replace(settings, seed=s)).draw(scores, s) for s in range(50)}
        assert draws == {int(scores.argmax())}


def test_noise_depends_only_on_seed_and_position() -> None:
    noise = gumbel_noise(3, 40, 100)
    assert torch.equal(noise, gumbel_noise(3, 40, 100))
    assert torch.equal(gumbel_noise(3, 40, 60), noise[:60])
    for other in (gumbel_noise(4, 40, 100), gumbel_noise(3, 41, 100), gumbel_noise(40, 3, 100)):
        assert not torch.equal(noise, other)
        assert abs(np.corrcoef(noise, other)[0, 1]) < 0.4
    assert torch.isfinite(gumbel_noise(-1, 0, 10_000)).all()
    assert torch.equal(gumbel_noise(-1, 5, 10), gumbel_noise(2**64 - 1, 5, 10))


def test_the_noise_of_one_token_is_computed_alone() -> None:
    noise = gumbel_noise(5, 77, 64)
    assert [gumbel_noise_of(5, 77, token_id) for token_id in range(64)] == noise.tolist()


def test_noise_is_standard_gumbel() -> None:
    sample = torch.cat([gumbel_noise(1, position, 500) for position in range(20)]).sort().values
    # Kolmogorov's test against the distribution function.
    steps = torch.arange(len(sample) + 1) / len(sample)
    share = torch.exp(-torch.exp(-sample))
    distance = float(torch.maximum(share - steps[:-1], steps[1:] - share).max())
    assert special.kolmogorov(len(sample) ** 0.5 * distance) > LIKELY_NOISE


def test_neighbouring_positions_have_independent_noise() -> None:
    # A counter that runs on would repeat the tail of one position at the start of the next.
    rows = [set(gumbel_noise(9, position, 400).tolist()) for position in range(4)]
    assert len(set.union(*rows)) == 1600


@pytest.mark.parametrize(
    "bad",
    [
        {"temperature": 0.0},
        {"temperature": -1.0},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"top_p": 0.0},
        {"top_p": 1.01},
        {"top_p": float("nan")},
        {"top_k": -1},
    ],
    ids=str,
)
def test_senseless_settings_are_refused_with_a_hint(bad: dict[str, float]) -> None:
    with pytest.raises(RequestError) as caught:
        Sampler(replace(GenerateSettings(rule="sample"), **bad))
    assert caught.value.hint


@pytest.mark.parametrize("rule", rule_registry().specs, ids=lambda rule: rule.name)
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_nan_logits_are_refused(rule: RuleSpec, value: float) -> None:
    logits = torch.randn(1, 20)
    logits[0, 7] = value
    tree = TokenTree(TreeShape.root_only(), (1,))
    with pytest.raises(NumericsError) as caught:
        rule.build(GenerateSettings(rule=rule.name)).walk(tree, logits, CONTEXT)
    assert caught.value.hint


@pytest.mark.parametrize("rule", rule_registry().specs, ids=lambda rule: rule.name)
def test_a_walk_ends_at_the_first_token_without_a_child(rule: RuleSpec) -> None:
    shape = TreeShape.from_paths([(0,), (1,), (1, 0), (1, 1)])
    tree = TokenTree(shape, (0, 5, 6, 7, 8))
    logits = torch.full((5, 10), -50.0)
    for node, token in enumerate((6, 1, 8, 2, 9)):
        logits[node, token] = 50.0
    acceptance = rule.build(GenerateSettings(rule=rule.name)).walk(tree, logits, CONTEXT)
    assert acceptance.nodes == (2, 4)
    assert acceptance.bonus_id == 9


# Drafters that know the noise ---------------------------------------------------------------------

FILTERED = (
    GenerateSettings(drafter="medusa", rule="sample", temperature=0.7, seed=5),
    GenerateSettings(drafter="medusa", rule="sample", temperature=1.4, seed=6, top_k=7),
    GenerateSettings(
        drafter="medusa", rule="sample", temperature=1.1, seed=7, top_p=0.8, min_p=0.02
    ),
)


@pytest.mark.parametrize("settings", FILTERED)
def test_logits_and_noise_determine_the_drawn_token(settings: GenerateSettings) -> None:
    scores = torch.randn(6, 300, generator=torch.Generator().manual_seed(3)) * 3
    some = torch.randperm(300, generator=torch.Generator().manual_seed(4))[:250]
    sampler, other = Sampler(settings), Sampler(settings)
    places = [40, *range(41, 46)]
    drawn = [sampler.draw(row, place) for row, place in zip(scores, places, strict=True)]
    assert other.shifted(scores, None, 40).argmax(dim=-1).tolist() == drawn
    # What is drafted from fewer tokens, or from others at each place, is shifted by id as well.
    both = [token_id in some for token_id in drawn]
    assert sum(both) >= 3
    few = some[other.shifted(scores[:, some], some, 40).argmax(dim=-1)].tolist()
    sorted_ids = scores.argsort(dim=-1, descending=True)
    ranked = other.shifted(scores.gather(1, sorted_ids), sorted_ids, 40).argmax(dim=-1)
    assert sorted_ids.gather(1, ranked[:, None]).flatten().tolist() == drawn
    if not settings.top_p < 1:  # the nucleus of fewer tokens is another
        assert [token for token, is_in in zip(few, both, strict=True) if is_in] == [
            token for token, is_in in zip(drawn, both, strict=True) if is_in
        ]


@pytest.mark.parametrize("name", drafter_registry().names)
def test_drafters_get_the_noise_of_the_positions_after_their_root(
    name: str, target_of: Callable[[str], Target]
) -> None:
    target, witness = target_of(name), ChanceWitness()
    spec = witness.watch(drafter_registry().get(name))
    settings = GenerateSettings(
        rule="sample", drafter=name, temperature=1.3, seed=12, max_new_tokens=20, tree_rows=8
    )
    run = decode(target, settings, MESSAGES, drafter=spec)
    decided = [*run.prompt_ids, *run.done.token_ids]
    assert len(witness.reported) == len(run.steps) - 1 >= 2  # the last step ends the answer
    for length, chance in witness.reported:
        assert chance is not None
        if length < len(decided):
            scores = plain_scores(target, decided[:length])
            assert int(chance(scores[None], None).argmax()) == decided[length]


@pytest.mark.parametrize("rule", ["greedy", "typical"])
def test_under_greedy_drafters_get_no_noise(rule: str, tiny: Target) -> None:
    witness = ChanceWitness()
    spec = witness.watch(drafter_registry().get("medusa"))
    decode(
        tiny,
        GenerateSettings(drafter="medusa", rule=rule, max_new_tokens=8),
        MESSAGES,
        drafter=spec,
    )
    assert witness.reported
    assert {chance for _, chance in witness.reported} == {None}


def test_plain_decoding_drafts_nothing() -> None:
    drafter: Drafter = NoDrafter()
    drafter.begin([1])
    drafter.observe(Observation((2,), torch.zeros(1, 1)))
    drafter.truncate(0)
    proposal = drafter.propose(random.randrange(9), 64)
    assert proposal.tree.shape == TreeShape.root_only()
