"""What was offered and not drafted: told of every step that is recorded, as growth weighed it."""

import random
from array import array
from collections.abc import Sequence
from struct import iter_unpack

import pytest

from medusa_core.engine.direct import generate
from medusa_core.loading.target import Target
from medusa_core.messages import MOST_PRUNED, GenerateSettings, StepTrace
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.growth import (
    CompiledGrowth,
    Grown,
    GrowthInPython,
)
from medusa_core.speculation.drafters.source import Source
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import MAX_OFFERS
from tests.support.engine.drafts import Path_, Scripted
from tests.support.engine.grown_paths import paths_of
from tests.support.engine.laws import user_says

WEIGHTS = (1.0, 0.5, 0.0)


def grown(sources: Sequence[Source], num_rows: int, prices: Sequence[float] = ()) -> Grown:
    """Grow the tree with its candidates compiled and in Python, and check that both are equal."""
    budget = RowBudget(num_rows, array("f", prices))
    in_python = GrowthInPython(budget, WEIGHTS)
    in_python.records_offers = True
    tree = in_python.grow(sources, num_rows)
    if (library := native_library()) is not None:
        compiled = CompiledGrowth(library, budget, WEIGHTS)
        assert compiled.grow(sources, num_rows) == tree._replace(offers=b"")
        compiled.records_offers = True
        assert compiled.grow(sources, num_rows) == tree
    return tree


def offers_of(tree: Grown) -> dict[Path_, float]:
    """The chance of every offer by the tokens down to it, in the order in which it came."""
    paths: list[Path_] = []
    chances = {}
    for above, token_id, chance in iter_unpack("iif", tree.offers):
        paths.append((*(paths[above] if above >= 0 else ()), token_id))
        chances[paths[-1]] = chance
    assert len(chances) == len(paths), "no offer comes twice"
    return chances


def some_sources(seed: int, most_depth: int = 3) -> list[Source]:
    """Return two sources with distributions and one with single tokens."""

    def said(source: int, most: int, path: Path_) -> dict[int, float]:
        rng = random.Random(f"{seed} {source} {path}")
        tokens = rng.sample(range(6), rng.randint(0, most)) if len(path) < most_depth else []
        return {token: array("f", [rng.random() / most])[0] for token in tokens}

    return [
        Scripted(lambda path, s=s, most=most: said(s, most, path))  # type: ignore[misc]
        for s, most in enumerate((4, 4, 1))
    ]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("prices", [(), (0.0, 0.01, 0.05, 0.3, 0.9)])
def test_a_small_tree_gets_the_drafts_of_a_large_one(seed: int, prices: Sequence[float]) -> None:
    everything = grown(some_sources(seed), 600)
    worths: dict[Path_, float] = {(): 1.0}
    for path, chance in zip(paths_of(everything), array("f", everything.chances), strict=True):
        worths[path] = worths[path[:-1]] * chance
    told = {path for path, worth in worths.items() if path and worth >= 0.01}
    assert offers_of(everything).keys() == told
    tree = grown(some_sources(seed), 5, prices)
    offers = offers_of(tree)
    for path, chance in offers.items():
        assert chance == pytest.approx(worths[path] / worths[path[:-1]], rel=1e-5)
    assert told & paths_of(tree).keys() <= offers.keys() <= told
    asked = {(), *(path[:-1] for path in offers)}
    assert offers.keys() == {path for path in told if path[:-1] in asked}


def test_recorded_candidates_are_limited() -> None:
    many = Scripted(lambda path: dict.fromkeys(range(10), 0.9) if len(path) < 3 else {})
    nobody = Scripted(lambda _: {})
    assert len(offers_of(grown([many, nobody, nobody], 60))) == MAX_OFFERS


def recorded(target: Target, drafter: str, rule: str = "greedy") -> list[StepTrace]:
    """The steps of an answer."""
    settings = GenerateSettings(drafter=drafter, rule=rule, max_new_tokens=24, tree_rows=4)
    steps: list[StepTrace] = []
    generate(target, user_says("again and again and"), settings, on_trace=steps.append)
    return steps


def test_a_recorded_step_lists_unverified_candidates(tiny: Target) -> None:
    steps = recorded(tiny, "medusa-dynamic")
    assert not steps[0].pruned
    assert sum(len(step.pruned) for step in steps) > len(steps)
    for step in steps:
        children = {(node.parent, node.token_id) for node in step.nodes[1:]}
        worths = [1.0]
        for node in step.nodes[1:]:
            assert node.probability is not None
            worths.append(worths[node.parent] * node.probability)
        assert not children & {(guess.node, guess.token_id) for guess in step.pruned}
        left = [worths[guess.node] * guess.probability for guess in step.pruned]
        assert left == pytest.approx(sorted(left, reverse=True))
        assert len(left) <= MOST_PRUNED
        assert step.pieces.keys() >= {guess.token_id for guess in step.pruned}
    assert recorded(tiny, "none")[-1].pruned == ()


def test_candidates_after_a_pruned_draft_are_not_recorded(tiny: Target) -> None:
    step = next(step for step in recorded(tiny, "medusa-dynamic") if len(step.nodes) > 2)
    bare = step._replace(
        token_ids=step.token_ids[:1], parents=(-1,), ranks=(-1,), sources=step.sources[:1]
    )
    assert bare.pruned
    assert {guess.node for guess in bare.pruned} == {0}
