"""The laws with a drafter that is often right, and with planted faults, which they must notice."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.speculation.rules.rule import (
    RuleSpec,
    rule_registry,
)
from tests.support.engine import faults
from tests.support.engine.by_turns import by_turns
from tests.support.engine.fakes import (
    MAX_DEPTH,
    StateWitness,
    WalkWitness,
    oracle_spec,
    random_shape,
)
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import (
    Run,
    Tie,
    check_cache,
    check_same_but_for_ties,
    check_same_tokens,
    check_sources,
    decode,
    plain_scores,
    plain_states,
    plainly,
    user_says,
)
from tests.support.models.targets import TARGET_NAMES

MESSAGES = user_says("the oracle knows the rest")
# Enough seeds that every fault meets a tree in which it matters.
SEEDS = range(4)


@dataclass(frozen=True, slots=True)
class Trial:
    """A correct or faulty target, judged by a correct one."""

    target: Target
    honest: Target
    rule: RuleSpec
    settings: GenerateSettings

    def truth(self, num_more: int = MAX_DEPTH) -> list[int]:
        """Return the prompt and its continuation, slightly longer than requested."""
        longer = replace(self.settings, max_new_tokens=self.settings.max_new_tokens + num_more)
        plain = decode(self.honest, plainly(longer), MESSAGES)
        return [*plain.prompt_ids, *plain.token_ids]

    def plain(self) -> Run:
        return decode(self.honest, plainly(self.settings), MESSAGES)


def trial(honest: Target, target: Target | None = None, rule: RuleSpec | None = None) -> Trial:
    """A greedy trial of 40 tokens."""
    greedy = rule_registry().get("greedy")
    return Trial(
        target or honest,
        honest,
        rule or greedy,
        GenerateSettings(drafter="medusa", rule="greedy", max_new_tokens=40),
    )


Shaped = dict[str, object]
SHAPED: tuple[Shaped, ...] = (
    {"repetition_penalty": 1.5},
    {"presence_penalty": 2.0},
    {"frequency_penalty": 1.0},
    {"logit_bias": ((20, 6.0), (21, -6.0))},
    {"banned": tuple(range(10, 200))},
    {"forbidden": tuple((place, token_id) for place in (1, 3, 8) for token_id in range(300))},
)


def shaped_trial(target: Target, shaped: Shaped, rule: RuleSpec | None = None) -> Trial:
    """A greedy trial with penalties, bias or bans."""
    chosen = trial(target, rule=rule)
    return replace(chosen, settings=replace(chosen.settings, **shaped))


def tokens_stay_the_same(trial: Trial) -> None:
    """Check laws 1 and 2."""
    truth, plain = trial.truth(), trial.plain()
    for seed in SEEDS:
        drafter = oracle_spec(truth, seed)
        run = decode(trial.target, trial.settings, MESSAGES, drafter=drafter, rule=trial.rule)
        check_same_tokens(plain, run)
        check_sources(run)


def cache_stays_the_same(trial: Trial) -> None:
    """Law 3."""
    truth = trial.truth()
    for seed in SEEDS:
        decode(
            trial.target,
            trial.settings,
            MESSAGES,
            drafter=oracle_spec(truth, seed),
            rule=trial.rule,
            after_step=lambda session: check_cache(session, trial.honest, 1e-12),
        )


def drafter_sees_the_right_states(trial: Trial) -> None:
    """Heads run on the row before the root, which no text would show: drafts only get worse."""
    truth = trial.truth()
    for seed in SEEDS:
        witness = StateWitness()
        drafter = witness.watch(oracle_spec(truth, seed))
        run = decode(trial.target, trial.settings, MESSAGES, drafter=drafter, rule=trial.rule)
        states, _ = plain_states(trial.honest, [*run.prompt_ids, *run.token_ids])
        for num_decided, hidden in witness.states:
            final = states[num_decided - 2, : len(hidden)]
            error = float((hidden - final).abs().max())
            assert error <= 1e-10, f"the state before token {num_decided} is off by {error:.2g}"


Law = Callable[[Trial], None]
LAWS: tuple[Law, ...] = (
    tokens_stay_the_same,
    cache_stays_the_same,
    drafter_sees_the_right_states,
)


@pytest.mark.parametrize(
    ("name", "law"), by_turns(["streamed", *(n for n in TARGET_NAMES if n != "pebble")], LAWS)
)
def test_an_honest_engine_passes_with_an_oracle(name: str, law: Law, load: LoadTarget) -> None:
    law(trial(load(name, "float64")))


@pytest.mark.parametrize("shaped", SHAPED, ids=str)
def test_penalties_follow_the_drafted_path(shaped: Shaped, tiny: Target) -> None:
    chosen = shaped_trial(tiny, shaped)
    assert chosen.plain().token_ids != trial(tiny).plain().token_ids
    tokens_stay_the_same(chosen)


def test_penalties_that_forget_the_path_are_caught(tiny: Target) -> None:
    for shaped in SHAPED:
        if "penalty" in str(shaped):
            with pytest.raises(AssertionError):
                tokens_stay_the_same(shaped_trial(tiny, shaped, faults.pathless_greedy()))


@pytest.mark.parametrize("law", LAWS)
def test_pebble_passes_with_an_oracle(law: Law, load: LoadTarget) -> None:
    law(trial(load("pebble", "float64")))


@pytest.mark.parametrize("rule", rule_registry().specs, ids=lambda rule: rule.name)
def test_the_oracle_gets_paths_of_every_depth_and_later_siblings_accepted(
    rule: RuleSpec, tiny: Target
) -> None:
    settings = GenerateSettings(
        drafter="medusa", rule=rule.name, temperature=1.2, seed=5, max_new_tokens=80
    )
    chosen = Trial(tiny, tiny, rule, settings)
    truth, plain, witness = chosen.truth(), chosen.plain(), WalkWitness()
    for seed in SEEDS:
        run = decode(
            tiny, settings, MESSAGES, drafter=oracle_spec(truth, seed), rule=witness.watch(rule)
        )
        if rule.choice.is_exact:
            check_same_tokens(plain, run)
    # Where the text leaves the truth, the oracle knows nothing more.
    wanted = MAX_DEPTH if rule.choice.is_exact else 2
    assert witness.accepted_depths >= set(range(wanted + 1))
    assert witness.accepted_ranks >= {0, 1, 2, 3}


def test_every_token_has_the_noise_of_its_own_position(tiny: Target) -> None:
    settings = GenerateSettings(drafter="medusa", rule="sample", temperature=1.2, max_new_tokens=40)
    chosen = Trial(tiny, tiny, rule_registry().get("sample"), settings)
    truth, witness = chosen.truth(), WalkWitness()
    run = decode(
        tiny,
        chosen.settings,
        MESSAGES,
        drafter=oracle_spec(truth),
        rule=witness.watch(chosen.rule),
    )
    num_decided = len(run.prompt_ids)
    for position, (_, acceptance) in zip(witness.positions, witness.walks, strict=True):
        assert position == num_decided
        num_decided += len(acceptance.nodes) + 1
    assert max(witness.accepted_depths) >= 2
    assert num_decided >= len(run.prompt_ids) + len(run.token_ids)


@pytest.mark.parametrize(
    ("name", "dtype"), by_turns(["streamed", *TARGET_NAMES], ["float32", "bfloat16"])
)
def test_in_lower_precision_an_oracle_changes_tokens_only_at_ties(
    name: str, dtype: str, load: LoadTarget, report_ties: Callable[[list[Tie]], None]
) -> None:
    chosen, exact = trial(load(name, dtype)), load(name, "float64")
    truth, plain = chosen.truth(), chosen.plain()
    ties = []
    for seed in SEEDS:
        drafter = oracle_spec(truth, seed)
        run = decode(chosen.target, chosen.settings, MESSAGES, drafter=drafter)
        ties.append(check_same_but_for_ties(plain, run, chosen.target, exact, chosen.rule))
    report_ties([tie for tie in ties if tie is not None])


@pytest.mark.parametrize(
    "fault", ["positions are off by one", "the bonus comes from the wrong row"]
)
def test_rounding_does_not_excuse_a_planted_fault(fault: str, load: LoadTarget) -> None:
    honest, exact = load("grouped", "bfloat16"), load("grouped", "float64")
    target, rule = FAULTS[fault](honest)
    chosen = trial(honest)
    truth, plain = chosen.truth(), chosen.plain()

    def check_all_seeds() -> None:
        for seed in SEEDS:
            drafter = oracle_spec(truth, seed)
            run = decode(target, chosen.settings, MESSAGES, drafter=drafter, rule=rule)
            check_same_but_for_ties(plain, run, honest, exact, chosen.rule)

    with pytest.raises(AssertionError, match="rounding"):
        check_all_seeds()


def test_a_tie_is_excused_and_a_less_likely_token_is_not(load: LoadTarget) -> None:
    target, exact = load("grouped", "float32"), load("grouped", "float64")
    rule = rule_registry().get("greedy")
    plain = trial(target).plain()
    scores = plain_scores(exact, [*plain.prompt_ids, *plain.token_ids[:5]])
    best, second = scores.topk(2).indices.tolist()
    assert plain.token_ids[5] == best
    other = replace(plain, done=replace(plain.done, token_ids=(*plain.token_ids[:5], second)))
    with pytest.raises(AssertionError, match="rounding"):
        check_same_but_for_ties(plain, other, target, exact, rule)
    # The same with a target that can't tell the two apart.
    twins = with_equal_rows(exact, best, second)
    tie = check_same_but_for_ties(plain, other, with_equal_rows(target, best, second), twins, rule)
    assert tie is not None
    assert {tie.plain_id, tie.drafted_id} == {best, second}
    assert 0 < tie.rounding < 1e-4


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32), num_rows=st.integers(1, 48), num_tokens=st.integers(1, 24))
def test_any_tree_and_budget_gives_the_plain_text(
    seed: int, num_rows: int, num_tokens: int, oracle_trial: Trial
) -> None:
    chosen = replace(
        oracle_trial,
        settings=replace(
            oracle_trial.settings, max_new_tokens=num_tokens, tree_rows=num_rows, seed=seed
        ),
    )
    drafter = oracle_spec(chosen.truth(), seed, num_rows)
    run = decode(
        chosen.target,
        chosen.settings,
        MESSAGES,
        drafter=drafter,
        after_step=lambda session: check_cache(session, chosen.honest, 1e-12),
    )
    check_same_tokens(chosen.plain(), run)


@pytest.fixture(scope="module")
def oracle_trial(load: LoadTarget) -> Trial:
    """A sampled trial: its text doesn't run into a loop."""
    target = load("grouped", "float64")
    rule = rule_registry().get("sample")
    return Trial(
        target, target, rule, GenerateSettings(drafter="medusa", rule="sample", temperature=1.2)
    )


class TwinRunner(ResidentRunner):
    """Scores one token as another."""

    def __init__(self, honest: ResidentRunner, token_id: int, twin_id: int) -> None:
        super().__init__(honest._model, honest._precision)
        self._ids = token_id, twin_id

    def logits(self, hidden: Tensor) -> Tensor:
        token_id, twin_id = self._ids
        scores = super().logits(hidden).clone()
        scores[:, twin_id] = scores[:, token_id]
        return scores


def with_equal_rows(target: Target, token_id: int, twin_id: int) -> Target:
    """Return the target with equal logits for two tokens."""
    return replace(target, runner=TwinRunner(target.runner, token_id, twin_id))


Plant = Callable[[Target], tuple[Target, RuleSpec]]


def _planted(target: Target) -> tuple[Target, RuleSpec]:
    return target, rule_registry().get("greedy")


FAULTS: dict[str, Plant] = {
    "rows are committed in the wrong order": lambda honest: _planted(
        faults.with_cache(honest, faults.ReversedCommit)
    ),
    "the first rows are committed": lambda honest: _planted(
        faults.with_cache(honest, faults.InPlaceCommit)
    ),
    "a rejected row stays": lambda honest: _planted(
        faults.with_cache(honest, faults.HoardingCommit)
    ),
    "a node sees its neighbour": lambda honest: _planted(
        faults.with_layout(honest, faults.sibling_mask)
    ),
    "positions are off by one": lambda honest: _planted(
        faults.with_layout(honest, faults.shifted_positions)
    ),
    "positions count nodes": lambda honest: _planted(
        faults.with_layout(honest, faults.sequential_positions)
    ),
    "heads read the wrong row": lambda honest: _planted(faults.with_wrong_states(honest)),
    "the bonus comes from the wrong row": lambda honest: (
        honest,
        faults.faulty_rule(rule_registry().get("greedy"), faults.BonusOfParent),
    ),
}
CAUGHT_BY: dict[str, tuple[Law, ...]] = {
    # Keys carry their positions, so that attention doesn't mind the order: only a later cut would.
    "rows are committed in the wrong order": (cache_stays_the_same,),
    "the first rows are committed": LAWS,
    "a rejected row stays": (tokens_stay_the_same, cache_stays_the_same),
    "a node sees its neighbour": LAWS,
    "positions are off by one": LAWS,
    "positions count nodes": LAWS,
    "heads read the wrong row": (drafter_sees_the_right_states,),
    "the bonus comes from the wrong row": (tokens_stay_the_same,),
}


@pytest.mark.parametrize(
    ("fault", "law"),
    [(fault, law) for fault, laws in CAUGHT_BY.items() for law in laws],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)
def test_a_planted_fault_is_caught(fault: str, law: Law, tiny: Target) -> None:
    target, rule = FAULTS[fault](tiny)
    with pytest.raises(AssertionError):
        law(trial(tiny, target, rule))


def test_the_oracle_hides_the_truth_at_random_places() -> None:
    rng = random.Random(7)
    shapes = [random_shape(rng, 24) for _ in range(20)]
    assert len(set(shapes)) == len(shapes)
    assert {shape.max_depth for shape in shapes} >= {3, 4, 5}
