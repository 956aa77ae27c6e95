"""Chain, tree or nothing: what the engine chooses by what steps cost and what comes true."""

import json
from array import array
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import accumulate
from operator import mul

import pytest

from medusa_core.bench.growth_race import GrowthRacer, growth_json, growth_markdown
from medusa_core.bench.synthetic import (
    SyntheticSource,
    expected_tau,
    read_rates,
    synthetic_spec,
)
from medusa_core.engine import answer_tuning
from medusa_core.engine.direct import generate
from medusa_core.engine.sequence import Step
from medusa_core.engine.session import Session
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import GROWTHS, GenerateSettings, Odds, TokenSource
from medusa_core.runtime.tree.search import expected_length
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.runtime.tree.step import Proposal
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.growth import ratio_index
from medusa_core.speculation.drafters.lineup import drafter_registry, drafters_for
from medusa_core.speculation.drafters.source import Candidates, Paths
from medusa_core.speculation.tuning.acceptance_ratios import AcceptanceRatios
from medusa_core.speculation.tuning.forms import form_name
from medusa_core.speculation.tuning.governor import FIRST_PROBE
from medusa_core.speculation.tuning.row_policy import RowPolicy
from medusa_core.speculation.tuning.step_costs import SourceCost, StepCosts
from medusa_core.speculation.tuning.step_outcome import StepOutcome
from medusa_core.system.native.constants import NodeRank
from medusa_core.system.prompts import BenchPrompt
from tests.support.engine.laws import check_same_tokens, decode, user_says

ROWS = (1, 2, 4, 8, 16, 64)
FLAT = (1.0, 1.0, 1.01, 1.02, 1.05, 1.4)
DEAR = (1.0, 1.2, 1.6, 2.4, 4.0, 14.0)
STEEP = (1.0, 2.5, 5.0, 10.0, 20.0, 80.0)
SETTINGS = GenerateSettings(drafter="synthetic", max_new_tokens=80, banned=(1,))
MESSAGES = user_says("one two three")


def costs_of(curve: Sequence[float]) -> StepCosts:
    return StepCosts((1,), ROWS, (tuple(curve),))


@dataclass
class Clock:
    """Fake clock whose steps take the times of a table.

    Attributes:
        costs: The table.
        forms: Of every step, in order.
    """

    costs: StepCosts
    forms: list[str] = field(default_factory=list)

    def share(self, form: str, start: int = 0) -> float:
        """Return the share of steps from a given one on with a form."""
        return Counter(self.forms[start:])[form] / len(self.forms[start:])


@pytest.fixture
def clock(texts: dict[tuple[int, ...], Sequence[int]], monkeypatch: pytest.MonkeyPatch) -> Clock:
    told = Clock(costs_of(FLAT))
    learn_time = answer_tuning.AnswerTuning.learn_time

    def learn(
        self: answer_tuning.AnswerTuning,
        step: Step,
        num_appended: int,
        place: int,
        step_s: float,
        is_paused: bool,
    ) -> None:
        shape = step.proposal.tree.shape
        told.forms.append(form_name(shape.num_nodes, shape.depths[-1]))
        seconds = told.costs.step_s(step.proposal.num_rows, 1)
        learn_time(self, step, num_appended, place, seconds, is_paused)

    monkeypatch.setattr(answer_tuning.AnswerTuning, "learn_time", learn)
    return told


@pytest.fixture
def texts(tiny: Target) -> dict[tuple[int, ...], Sequence[int]]:
    """Return the target's future tokens."""
    with closing(Session(tiny)) as session:
        done = generate(tiny, MESSAGES, replace(SETTINGS, drafter="none"), session=session)
        told = tuple(session.token_ids)
    return {told[: done.num_prompt_tokens]: told[done.num_prompt_tokens :]}


# What comes true ----------------------------------------------------------------------------------


def proposed(*chances: float) -> Proposal:
    """Return drafts of one source after the root."""
    shape = TreeShape.from_paths([(rank,) for rank in range(len(chances))])
    tree = TokenTree(shape, tuple(range(shape.num_nodes)))
    sources = (TokenSource("target", 0), *[TokenSource("heads", 1)] * len(chances))
    odds = Odds(array("f", chances).tobytes(), tuple(range(len(chances))))
    return Proposal(tree, sources, lambda: odds)


def test_acceptance_of_a_probability_is_learned_within_thirty_steps() -> None:
    trust = AcceptanceRatios(["heads", "lookup"])
    assert set(trust.table) == {1.0}
    for step in range(32):
        trust.learn(proposed(0.5, 0.4), (1,) if step % 2 else ())
    first, second = (
        trust.table[ratio_index(0, kind, 1, chance)]
        for kind, chance in ((NodeRank.GREEDY, 0.5), (NodeRank.SECOND, 0.4))
    )
    assert first == pytest.approx(1.0, abs=0.05)
    assert second < 0.35  # none came true
    assert trust.table[ratio_index(0, NodeRank.SECOND, 3, 0.4)] < 0.7  # deeper ones follow it
    assert trust.table[ratio_index(1, NodeRank.SECOND, 1, 0.4)] == 1.0  # nobody knows of the other


def test_candidates_no_longer_tried_regain_their_calibration() -> None:
    trust, place = AcceptanceRatios(["heads"]), ratio_index(0, NodeRank.SECOND, 1, 0.4)
    for _ in range(64):
        trust.learn(proposed(0.5, 0.4), ())
    doubted = trust.table[place]
    for _ in range(3000):
        trust.learn(proposed(0.5), (1,))
    assert trust.table[place] > 2 * doubted


def test_calibration_continues_from_saved_values() -> None:
    trust = AcceptanceRatios(["heads"])
    for _ in range(40):
        trust.learn(proposed(0.5, 0.4), (2,))
    kept = json.loads(json.dumps(trust.to_json()))
    later, others = AcceptanceRatios(["lookup", "heads"]), AcceptanceRatios(["lookup"])
    later.load(kept)
    places = [ratio_index(source, NodeRank.SECOND, 1, 0.4) for source in (0, 1)]
    assert later.table[places[1]] == pytest.approx(trust.table[places[0]], rel=0.05)
    assert later.table[places[0]] == 1.0
    others.load(kept)
    assert set(others.table) == {1.0}
    for wrong in ({"heads": [[1.0], [1.0]]}, {"heads": [[-1.0] * 128, [0.0] * 128]}):
        with pytest.raises(ValueError, match="make no sense"):
            later.load(wrong)


# What is chosen -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rates", "curve", "form"),
    [
        ("0.6,0.6,0.6", FLAT, "tree"),
        ("0.9,0.9,0.9", DEAR, "chain"),
        ("0.3,0.3", STEEP, "none"),
    ],
)
def test_chain_tree_or_nothing_is_chosen_by_the_cost_of_rows(
    clock: Clock,
    tiny: Target,
    texts: dict[tuple[int, ...], Sequence[int]],
    rates: str,
    curve: tuple[float, ...],
    form: str,
) -> None:
    clock.costs = costs_of(curve)
    spec = synthetic_spec(read_rates(rates), texts)
    generate(tiny, MESSAGES, SETTINGS, row_policy=RowPolicy(tiny, clock.costs), drafter=spec)
    assert clock.share(form, FIRST_PROBE) > 0.8, clock.forms


class Boasting(SyntheticSource):
    """Source that overestimates all but its first draft, which are never accepted."""

    def candidates(self, paths: Paths) -> Candidates | None:
        found = super().candidates(paths)
        if found is None:
            return None
        token_ids = array("i", found.token_ids)
        for start in range(0, len(token_ids), 4):
            right = self._text[self._length + paths.level : self._length + paths.level + 1]
            if right and right[0] in token_ids[start + 1 : start + 4]:
                place = token_ids.index(right[0], start + 1)
                token_ids[place] = token_ids[start] + 7
        return found._replace(
            token_ids=token_ids, chances=array("f", [0.6, 0.5, 0.5, 0.4]) * paths.num
        )


def test_siblings_that_are_never_accepted_lead_to_a_chain_within_an_answer(
    clock: Clock,
    tiny: Target,
    texts: dict[tuple[int, ...], Sequence[int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("medusa_core.bench.synthetic.SyntheticSource", Boasting)
    clock.costs = costs_of(DEAR)
    spec, row_policy = synthetic_spec((0.6,) * 3, texts), RowPolicy(tiny, clock.costs)
    generate(tiny, MESSAGES, SETTINGS, row_policy=row_policy, drafter=spec)
    assert clock.share("tree") > 0  # it was believed at first
    assert clock.share("tree", 24) < 0.25, clock.forms


def test_other_costs_lead_to_another_choice(
    clock: Clock, tiny: Target, texts: dict[tuple[int, ...], Sequence[int]]
) -> None:
    clock.costs = costs_of(STEEP)
    spec, row_policy = synthetic_spec((0.3, 0.3), texts), RowPolicy(tiny, clock.costs)
    for _ in range(2):
        generate(tiny, MESSAGES, SETTINGS, row_policy=row_policy, drafter=spec)
    assert clock.share("none") > 0.8
    row_policy.costs = clock.costs = costs_of(FLAT)
    clock.forms.clear()
    done = generate(tiny, MESSAGES, SETTINGS, row_policy=row_policy, drafter=spec)
    assert done.num_plain_steps == FIRST_PROBE
    assert clock.share("tree", FIRST_PROBE) > 0.8, clock.forms


def test_levels_and_paths_cost_their_measured_draft_time(
    load: Callable[[str, str], Target],
) -> None:
    target, settings = load("eagle", "float32"), GenerateSettings(drafter="eagle")
    wide, chain = (0.1, 0.37, 0.64), (0.1, 0.2, 0.3)
    costs = replace(costs_of(FLAT), source_costs={"eagle": SourceCost(wide, wide, chain)})
    row_policy = RowPolicy(target, costs)
    likely, first, further = row_policy.budget(settings, 1).draft_costs[3:6]
    assert (likely, first) == pytest.approx((0.6, 0.1))
    assert further == pytest.approx((0.27 - 0.1) / 7)
    assert list(row_policy.budget(replace(settings, growth="tree"), 1).draft_costs) == []
    row_policy.observe(settings, 1, [StepOutcome(3.0, 3, 8, 1.0, 3)] * 400)  # four tokens a step
    later = row_policy.budget(settings, 1)
    assert later.draft_costs[4] == pytest.approx(0.4, rel=0.1)
    assert later.draft_costs[3] > 0.9


def test_draft_costs_are_learned_during_an_answer(load: Callable[[str, str], Target]) -> None:
    target, settings = load("eagle", "float32"), GenerateSettings(drafter="eagle")
    chain = (0.1, 0.2, 0.3)
    costs = replace(costs_of(FLAT), source_costs={"eagle": SourceCost(chain, chain, chain)})
    prices = []
    for slowness in (1.0, 2.0):
        row_policy = RowPolicy(target, costs)
        for levels in (1, 2, 3):
            draft_s = 0.5 + slowness * 0.1 * levels  # a half, however many
            steps = [StepOutcome(1.0, 0, 4, 1.0, levels, draft_s)] * 4000
            row_policy.observe(settings, 1, steps, drafter_registry().get("eagle"))
        prices.append(row_policy.budget(settings, 1).draft_costs[4])
    assert prices[1] / prices[0] == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize("growth", GROWTHS)
def test_the_growth_never_changes_the_text(growth: str, tiny: Target) -> None:
    settings = GenerateSettings(max_new_tokens=24, banned=(1,), growth=growth)
    plain = decode(tiny, replace(settings, drafter="none"), MESSAGES)
    deepest = 0
    for spec in drafters_for(tiny):
        drafted = decode(tiny, replace(settings, drafter=spec.name), MESSAGES)
        check_same_tokens(plain, drafted)
        for step in drafted.steps[1:]:
            depth = max(source.head for source in step.node_sources)
            deepest = max(deepest, depth)
            if growth == "chain":
                assert [source.head for source in step.node_sources] == list(range(depth + 1))
    assert deepest > 1


# The table ----------------------------------------------------------------------------------------


def test_acceptance_rates_give_one_plus_the_sum_of_their_prefix_products() -> None:
    rates = (0.8, 0.7, 0.6)
    products = list(accumulate(rates, mul))
    for rows, count in ((2, 1), (3, 2), (4, 3), (16, 3)):
        assert expected_tau(rates, "chain", rows) == pytest.approx(1 + sum(products[:count]))
    table = [[rate * (1 - rate) ** rank for rank in range(4)] for rate in rates]
    best = expected_length([(0,), (0, 0), (0, 0, 0), (1,), (0, 1), (1, 0)], table)
    assert expected_tau(rates, "tree", 7) >= best - 1e-9
    for wrong in ("", "0.8,x", "1.2", "-0.1", "0.5," * 40 + "0.5"):
        with pytest.raises(RequestError):
            read_rates(wrong)


@pytest.mark.usefixtures("clock")  # a busy machine would let drafting pause
def test_the_growth_table_compares_forms_at_equal_rows(tiny: Target) -> None:
    racer = GrowthRacer(tiny, costs_of(FLAT), GROWTHS, (2, 4, 8))
    prompts = [BenchPrompt(str(n), "any", (text,)) for n, text in enumerate(("one two", "three"))]
    race = racer.race_synthetic((1.0, 1.0, 0.5), prompts, 24, 1, lambda *_: None)
    (line,) = race.lines
    points = {(point.growth, point.rows): point for point in line.points}
    assert set(points) == {
        *(("chain", rows) for rows in (2, 4, 8)),
        *(("tree", rows) for rows in (4, 8)),  # of two rows a tree is a chain
        ("auto", 0),
    }
    assert points["chain", 2].promised_tau == 2.0
    assert points["chain", 2].tau == pytest.approx(2.0, abs=0.15)
    assert points["chain", 4].promised_tau == 3.5
    assert points["chain", 8].tau > 2.9
    assert points["tree", 8].tau > points["chain", 8].tau
    assert line.over_best > 0
    assert line.form in ("chain", "tree")
    assert "tokens" in line.why
    table = growth_markdown(race)
    assert "chain 2 | chain 4 | chain 8 | tree 4 | tree 8 | auto |" in table
    assert line.why in table
    json.dumps(growth_json(race))


def test_a_synthetic_drafter_is_accepted_at_its_rates(
    tiny: Target, texts: dict[tuple[int, ...], Sequence[int]]
) -> None:
    spec: DrafterSpec = synthetic_spec((1.0, 0.0), texts)
    for growth in ("chain", "tree"):
        settings = replace(SETTINGS, growth=growth, tree_rows=8)
        done = generate(tiny, MESSAGES, settings, drafter=spec)
        assert set(done.accept_lengths[:-1]) == {2}


def test_a_prompt_that_is_too_long_is_omitted(tiny: Target) -> None:
    asked = [BenchPrompt(name, "", (text,)) for name, text in (("a", "hi"), ("b", "hi " * 999))]
    racer = GrowthRacer(tiny, costs_of(FLAT), ("chain",), (2,))
    found = racer.race_synthetic((1.0,), asked, 4, 1, lambda *_: None)
    assert found.num_prompts == 1
