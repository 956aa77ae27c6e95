"""Nodes pruned while a tree is verified: what is kept is as if nothing else had been drafted."""

import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor

from medusa_core.heads.streams import StreamHeads
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, Odds, TokenSource
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.runner import (
    PlacedTree,
    PrunesTrees,
)
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import (
    Proposal,
    Pruner,
    RowBudget,
)
from medusa_core.speculation.drafters.drafter import (
    Drafter,
    DrafterSpec,
)
from medusa_core.speculation.drafters.early_exit import EarlyExit
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import Paths
from medusa_core.speculation.drafters.sources.streams_source import (
    StreamsSource,
)
from medusa_core.speculation.rules.rule import rule_registry
from tests.support.engine.fakes import OracleDrafter, WalkWitness, oracle_spec
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import check_cache, check_same_tokens, decode, plainly, user_says

SHAPE = TreeShape.from_paths(
    [(0,), (1,), (2,), (0, 0), (0, 1), (1, 0), (0, 0, 0), (0, 1, 0), (0, 0, 0, 0), (2, 0), (2, 1)]
)
TREE = TokenTree(SHAPE, tuple(range(40, 40 + SHAPE.num_nodes)))
KEPT = ((0,), (0, 2, 6), (0, 1, 3, 4, 5, 8, 10), tuple(range(SHAPE.num_nodes)))
IDS = [7 + (5 * i) % 290 for i in range(37)]
MESSAGES = user_says("the oracle knows the rest")
NAMES = pytest.mark.parametrize(
    ("name", "dtype"),
    [("tied", "float64"), ("qwen3", "float32"), ("qwen3", "bfloat16"), ("pebble", "bfloat16")],
)


@dataclass
class HasHint:
    """Keeps what it is told to; see `Pruner`."""

    layer: int
    nodes: tuple[int, ...]
    kept: tuple[int, ...] | None = None
    entering: Tensor | None = None

    def keep(self, entering: Tensor) -> tuple[int, ...]:
        self.kept, self.entering = self.nodes, entering.clone()
        return self.nodes


@dataclass
class Dice:
    """Drops every fourth node, and those below it; see `Pruner`."""

    layer: int
    tree: TokenTree
    dice: random.Random
    kept: tuple[int, ...] | None = None

    def keep(self, entering: Tensor) -> tuple[int, ...]:
        assert len(entering) == self.tree.shape.num_nodes
        kept = [0]
        for node, parent in enumerate(self.tree.shape.parents[1:], start=1):
            if parent in kept and self.dice.random() < 0.75:
                kept.append(node)
        self.kept = tuple(kept)
        return self.kept


class PrunedDrafter:
    """An oracle whose trees are pruned at random; see `Drafter`."""

    def __init__(self, oracle: OracleDrafter, layer: int) -> None:
        self._oracle, self._layer, self._dice = oracle, layer, random.Random(5)
        self.pruners: list[Dice] = []

    def begin(self, token_ids: Sequence[int]) -> None:
        self._oracle.begin(token_ids)

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        proposal = self._oracle.propose(root_id, max_rows, grammar)
        self.pruners.append(Dice(self._layer, proposal.tree, self._dice))
        return proposal._replace(pruner=self.pruners[-1])

    def observe(self, observation: Observation) -> None:
        self._oracle.observe(observation)

    def truncate(self, length: int) -> None:
        self._oracle.truncate(length)


def received(runner: NativeRunner | ResidentRunner) -> KvCache:
    kv = runner.new_cache(128)
    runner.extend(IDS, kv)
    return kv


def runner_of(target: Target) -> NativeRunner | ResidentRunner:
    assert isinstance(target.runner, NativeRunner | ResidentRunner)
    assert isinstance(target.runner, PrunesTrees)
    return target.runner


@pytest.mark.parametrize("nodes", KEPT, ids=lambda nodes: f"{len(nodes)} nodes")
@NAMES
@torch.inference_mode()
def test_states_and_cache_are_those_of_the_kept_nodes_alone(
    name: str, dtype: str, nodes: tuple[int, ...], load: LoadTarget
) -> None:
    runner = runner_of(load(name, dtype))
    pruned, alone = received(runner), received(runner)
    pruner = HasHint(2, nodes)
    states = runner.verify_pruned([PlacedTree(TREE, pruned)], [pruner])
    expected = runner.verify(PlacedTree(TREE.only(nodes), alone))
    assert pruner.entering is not None
    assert len(pruner.entering) == SHAPE.num_nodes
    for kv in (pruned, alone):
        kv.commit(range(len(nodes)))
    pairs = ((states, expected), (pruned.committed(), alone.committed()))
    for ours, theirs in pairs:
        if isinstance(runner, NativeRunner):
            assert torch.equal(ours, theirs)
        else:
            torch.testing.assert_close(ours, theirs, rtol=1e-12, atol=1e-12)


@NAMES
@torch.inference_mode()
def test_trees_of_one_pass_are_pruned_each_on_its_own(
    name: str, dtype: str, load: LoadTarget
) -> None:
    runner = runner_of(load(name, dtype))
    caches, others = ([received(runner) for _ in range(3)] for _ in range(2))
    pruners: list[Pruner | None] = [HasHint(1, KEPT[1]), None, HasHint(1, KEPT[2])]
    placed = [PlacedTree(TREE, kv) for kv in caches]
    states = runner.verify_pruned(placed, pruners)
    trees = [TREE.only(KEPT[1]), TREE, TREE.only(KEPT[2])]
    expected = torch.cat(
        [runner.verify(PlacedTree(tree, kv)) for tree, kv in zip(trees, others, strict=True)]
    )
    torch.testing.assert_close(states, expected, rtol=1e-6, atol=1e-6)
    for tree, kv, other in zip(trees, caches, others, strict=True):
        for cache in (kv, other):
            cache.commit(range(tree.shape.num_nodes))
        torch.testing.assert_close(kv.committed(), other.committed(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("rule", ["greedy", "sample"])
@pytest.mark.parametrize(("name", "dtype"), [("tied", "float64"), ("qwen3", "float32")])
def test_laws_hold_when_right_nodes_are_dropped_and_kept_at_random(
    name: str, dtype: str, rule: str, load: LoadTarget
) -> None:
    target = load(name, dtype)
    settings = GenerateSettings(
        drafter="medusa", rule=rule, max_new_tokens=40, temperature=1.2, seed=3
    )
    longer = decode(target, plainly(replace(settings, max_new_tokens=60)), MESSAGES)
    truth = [*longer.prompt_ids, *longer.token_ids]
    plain = decode(target, plainly(settings), MESSAGES)
    witness, made = WalkWitness(), list[PrunedDrafter]()

    def build(of: Target, budget: RowBudget) -> Drafter:
        oracle = oracle_spec(truth).build(of, budget)
        assert isinstance(oracle, OracleDrafter)
        made.append(PrunedDrafter(oracle, 1))
        return made[-1]

    spec: DrafterSpec = replace(oracle_spec(truth), build=build)
    tolerance = 0.0 if isinstance(target.runner, NativeRunner) else 1e-9
    run = decode(
        target,
        settings,
        MESSAGES,
        drafter=spec,
        rule=witness.watch(rule_registry().get(rule)),
        after_step=lambda session: check_cache(session, target, tolerance),
    )
    check_same_tokens(plain, run)
    pruners = [pruner for drafter in made for pruner in drafter.pruners]
    dropped = [pruner.tree.shape.num_nodes - len(pruner.kept) for pruner in pruners if pruner.kept]
    assert len(dropped) == len(run.done.accept_lengths)
    assert sum(dropped) > 20
    assert max(witness.accepted_depths) >= 2


def test_an_early_exit_drops_what_is_unlikely_and_all_that_follows_it(load: LoadTarget) -> None:
    target = load("streams", "float64")
    heads = target.heads
    assert isinstance(heads, StreamHeads)
    size = target.config.hidden_size
    with torch.inference_mode():
        entering = torch.randn(SHAPE.num_nodes, size, dtype=torch.float64)
        chances = torch.softmax(heads.early_exit(entering), dim=-1)
        given = [
            float(chances[parent, token])
            for parent, token in zip(SHAPE.parents[1:], TREE.token_ids[1:], strict=True)
        ]
        least = sorted(given)[len(given) // 2]
        exits = EarlyExit(heads, TREE, least)
        kept = exits.keep(entering)
    expected = {0}
    for node, parent in enumerate(SHAPE.parents[1:], start=1):
        if parent in expected and given[node - 1] >= least:
            expected.add(node)
    assert kept == exits.kept == tuple(sorted(expected))
    assert 1 < len(kept) < SHAPE.num_nodes


def test_streams_prune_large_trees_where_nothing_is_drawn(load: LoadTarget) -> None:
    target = load("streams", "float64")
    heads = target.heads
    assert isinstance(heads, StreamHeads)
    source, size = StreamsSource(heads, RowBudget(64)), target.config.hidden_size
    with torch.inference_mode():
        reported = target.runner.extend(IDS, target.runner.new_cache(64))
        final, deep = reported[:, :size], reported[:, size:]
        source.begin(IDS)
        source.resume(IDS, {})
        source.read(0, final, deep)
        source.observe(Observation((40,), final, (-1,), None, deep))
        source.start(40, 16)
        assert source.candidates(Paths(1, 0, array("i"))) is not None
        pruner = source.pruner(TREE)
        assert pruner is not None
        assert pruner.layer == target.runner.taps[0]
        assert source.pruner(TREE.only((0, 1))) is None
        chance = (
            rule_registry()
            .get("sample")
            .build(GenerateSettings(drafter="medusa", rule="sample"))
            .chance(9)
        )
        source.observe(Observation((41,), final, (-1,), chance, deep))
        source.start(41, 16)
        assert source.pruner(TREE) is None


def test_what_is_told_of_a_pruned_tree_is_of_its_nodes() -> None:
    sources = tuple(TokenSource("streams", depth) for depth in SHAPE.depths)
    chances = array("f", [node / 16 for node in range(1, SHAPE.num_nodes)])
    odds = Odds(chances.tobytes(), tuple(range(SHAPE.num_nodes - 1)))
    pruner = HasHint(1, KEPT[2], KEPT[2])
    whole = Proposal(TREE, sources, lambda: odds, pruner=pruner)
    pruned = whole.pruned
    assert pruned.tree.token_ids == tuple(TREE.token_ids[node] for node in KEPT[2])
    assert [source.head for source in pruned.sources] == list(pruned.tree.shape.depths)
    reported = pruned.odds().of_drafts(len(KEPT[2]) - 1)
    assert reported == tuple(node / 16 for node in KEPT[2][1:])
    pruner.kept = None
    assert whole.pruned is whole


def test_a_tree_of_some_nodes_hangs_as_before() -> None:
    for nodes in KEPT:
        part = TREE.only(nodes)
        for place, node in enumerate(nodes[1:], start=1):
            parent = part.token_ids[part.shape.parents[place]]
            assert parent == TREE.token_ids[SHAPE.parents[node]]
            assert part.shape.depths[place] == SHAPE.depths[node]
