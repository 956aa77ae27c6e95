"""Drafters and rules of the tests: an oracle, and witnesses that remember what they saw."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.messages import TARGET, DrafterChoice, GenerateSettings, TokenSource
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import (
    Acceptance,
    Chance,
    Proposal,
    RowBudget,
    WalkContext,
)
from medusa_core.speculation.drafters.drafter import (
    Drafter,
    DrafterSpec,
)
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.rules.rule import (
    Rule,
    RuleNumbers,
    RulePath,
    RuleSpec,
)
from tests.support.engine.tree_paths import path_to

MAX_DEPTH = 5


def random_shape(rng: random.Random, num_nodes: int, max_depth: int = MAX_DEPTH) -> TreeShape:
    """A random tree with this many nodes, root included."""
    paths: list[tuple[int, ...]] = [()]
    num_children: dict[tuple[int, ...], int] = {}
    while len(paths) < num_nodes:
        # Late nodes lie deeper: choosing among the latest half makes trees that aren't flat.
        parent = paths[rng.randrange(len(paths) // 2, len(paths)) if rng.random() < 0.5 else 0]
        if len(parent) < max_depth:
            rank = num_children.get(parent, 0)
            num_children[parent] = rank + 1
            paths.append((*parent, rank))
    return TreeShape.from_paths(paths[1:])


class OracleDrafter:
    """Drafter that knows the continuation and places it at random ranks and depths among wrong
    siblings.

    Nodes under a wrong node often hold what would be right at their depth, so that an engine that
    mixes up branches is found out.
    """

    def __init__(
        self, truth: Sequence[int], rng: random.Random, vocab_size: int, num_rows: int
    ) -> None:
        self._truth = truth
        self._rng = rng
        self._vocab_size = vocab_size
        self._num_rows = num_rows
        self._length = 0

    def begin(self, token_ids: Sequence[int]) -> None:
        self._length = len(token_ids)

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        rng = self._rng
        shape = random_shape(rng, rng.randint(1, min(max_rows, self._num_rows)))
        weights = [1 + depth**2 for depth in shape.depths]
        (last,) = rng.choices(range(shape.num_nodes), weights)
        true_path = set(path_to(shape, last))
        token_ids = [root_id]
        for node in range(1, shape.num_nodes):
            right = self._token_at(shape.depths[node])
            is_decoy = shape.parents[node] not in true_path and rng.random() < 0.5
            token_ids.append(right if node in true_path or is_decoy else self._wrong(right))
        drafted = (TokenSource("oracle", depth) for depth in shape.depths[1:])
        return Proposal(TokenTree(shape, tuple(token_ids)), (TARGET, *drafted))

    def observe(self, observation: Observation) -> None:
        self._length += len(observation.token_ids)

    def truncate(self, length: int) -> None:
        self._length = length

    def _token_at(self, depth: int) -> int:
        place = self._length - 1 + depth
        known = place < len(self._truth)
        return self._truth[place] if known else self._rng.randrange(self._vocab_size)

    def _wrong(self, right: int) -> int:
        return (right + self._rng.randrange(1, self._vocab_size)) % self._vocab_size


def oracle_spec(truth: Sequence[int], seed: int = 0, num_rows: int = 24) -> DrafterSpec:
    """An oracle for one prompt and answer."""

    def build(target: Target, _: int) -> Drafter:
        return OracleDrafter(truth, random.Random(seed), target.config.vocab_size, num_rows)

    choice = DrafterChoice("oracle", "Oracle", "")
    return DrafterSpec(choice, serves=lambda _: True, build=build, preference=99)


@dataclass
class WalkWitness:
    """Remembers the trees that a rule walked, what it accepted, and at which positions."""

    walks: list[tuple[TokenTree, Acceptance]] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)

    @property
    def accepted_depths(self) -> set[int]:
        """Lengths of the accepted paths."""
        return {len(acceptance.nodes) for _, acceptance in self.walks}

    @property
    def accepted_ranks(self) -> set[int]:
        """Ranks of the accepted nodes among their siblings."""
        return {
            tree.shape.paths[node][-1]
            for tree, acceptance in self.walks
            for node in acceptance.nodes
        }

    def watch(self, spec: RuleSpec) -> RuleSpec:
        """Return the rule, recorded."""

        def build(settings: GenerateSettings) -> Rule:
            return _WatchedRule(spec.build(settings), self)

        return replace(spec, build=build)


class _WatchedRule:
    def __init__(self, rule: Rule, witness: WalkWitness) -> None:
        self._rule = rule
        self._witness = witness
        self.has_numbers = rule.has_numbers

    def walk(self, tree: TokenTree, logits: Tensor, context: WalkContext) -> Acceptance:
        acceptance = self._rule.walk(tree, logits, context)
        self._witness.walks.append((tree, acceptance))
        self._witness.positions.append(context.position)
        return acceptance

    def chance(self, position: int) -> Chance | None:
        return self._rule.chance(position)

    def numbers(
        self, row: Tensor, context: WalkContext, path: RulePath, token_id: int
    ) -> RuleNumbers:
        return self._rule.numbers(row, context, path, token_id)


@dataclass
class ChanceWitness:
    """Drafter that records the sampling noise it gets, and the number of decided tokens then."""

    reported: list[tuple[int, Chance | None]] = field(default_factory=list)

    def watch(self, spec: DrafterSpec) -> DrafterSpec:
        """Return the drafter, recorded."""

        def build(target: Target, budget: RowBudget) -> Drafter:
            return _ToldDrafter(spec.build(target, budget), [], self.reported)

        return replace(spec, build=build)


@dataclass
class StateWitness:
    """Remembers the hidden states that a drafter was given, and how much was decided then."""

    states: list[tuple[int, Tensor]] = field(default_factory=list)

    def watch(self, spec: DrafterSpec) -> DrafterSpec:
        """The same drafter, watched."""

        def build(target: Target, budget: RowBudget) -> Drafter:
            return _WatchedDrafter(spec.build(target, budget), self.states)

        return replace(spec, build=build)


class _WatchedDrafter:
    """A drafter whose observations are remembered."""

    def __init__(self, drafter: Drafter, states: list[tuple[int, Tensor]]) -> None:
        self._drafter = drafter
        self._states = states
        self._length = 0

    def begin(self, token_ids: Sequence[int]) -> None:
        self._length = len(token_ids)
        self._drafter.begin(token_ids)

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        return self._drafter.propose(root_id, max_rows, grammar)

    def observe(self, observation: Observation) -> None:
        self._length += len(observation.token_ids)
        self._states.append((self._length, observation.hidden.clone()))
        self._drafter.observe(observation)

    def truncate(self, length: int) -> None:
        self._drafter.truncate(length)


class _ToldDrafter(_WatchedDrafter):
    def __init__(
        self,
        drafter: Drafter,
        states: list[tuple[int, Tensor]],
        reported: list[tuple[int, Chance | None]],
    ) -> None:
        super().__init__(drafter, states)
        self._told = reported

    def observe(self, observation: Observation) -> None:
        super().observe(observation)
        self._told.append((self._length, observation.chance))
