"""Planted faults: an engine that is wrong in one way, to show that the laws notice."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.runtime.runner.resident import ResidentRunner
from medusa_core.runtime.runner.rows import (
    RowLayout,
    SomeRows,
)
from medusa_core.runtime.runner.runner import PlacedTree, only_wanted
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import (
    Acceptance,
    Chance,
    WalkContext,
)
from medusa_core.speculation.rules.greedy import Greedy
from medusa_core.speculation.rules.rule import (
    Rule,
    RuleNumbers,
    RulePath,
    RuleSpec,
    rule_registry,
)
from medusa_core.speculation.rules.shaping import Shaping


class ReversedCommit(TensorCache):
    """Cache that keeps the accepted rows in the wrong order (a planted fault)."""

    def commit(self, slots: Sequence[int]) -> None:
        super().commit((slots[0], *reversed(slots[1:])))


class InPlaceCommit(TensorCache):
    """Keeps the first rows instead of the accepted ones."""

    def commit(self, slots: Sequence[int]) -> None:
        super().commit(range(len(slots)))


class HoardingCommit(TensorCache):
    """Forgets to drop the last rejected row."""

    def commit(self, slots: Sequence[int]) -> None:
        super().commit(slots)
        self.length += len(slots) < self._num_reserved


Layout = Callable[[RowLayout], RowLayout]


def sibling_mask(layout: RowLayout) -> RowLayout:
    """Lets a node see the node before it, whose child it needn't be."""
    assert layout.visible is not None
    before = (1 << node >> 1 for node in range(len(layout.visible)))
    return replace(layout, visible=[a | b for a, b in zip(layout.visible, before, strict=True)])


def shifted_positions(layout: RowLayout) -> RowLayout:
    """Places the draft nodes one too far."""
    return replace(layout, offsets=[offset + (offset > 0) for offset in layout.offsets])


def sequential_positions(layout: RowLayout) -> RowLayout:
    """Places the nodes by index, not by depth."""
    return replace(layout, offsets=range(len(layout.offsets)))


def honest_layout(layout: RowLayout) -> RowLayout:
    """Leaves a layout as it is."""
    return layout


class FaultyRunner(ResidentRunner):
    """Runner with a faulty cache or faulty layouts of trees."""

    def __init__(
        self,
        honest: ResidentRunner,
        cache: type[TensorCache] = TensorCache,
        layout: Layout = honest_layout,
    ) -> None:
        super().__init__(honest._model, honest._precision)
        self._cache = cache
        self._layout = layout

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> TensorCache:
        config: ModelConfig = self._model.config
        precision: Precision = self._precision
        return self._cache(config, precision, capacity, memory=memory)

    def verify(self, *placed: PlacedTree) -> Tensor:
        parts = [
            SomeRows(tree.token_ids, self._layout(RowLayout.of_tree(tree.shape)), kv.length)
            for tree, kv, *_ in placed
        ]
        return only_wanted(self._forward(parts, [each.kv for each in placed]), placed)


class WrongStateRunner(FaultyRunner):
    """Runner that returns hidden states of the preceding rows with correct logits (a planted
    fault).
    """

    def __init__(self, honest: ResidentRunner) -> None:
        super().__init__(honest)
        self._right = torch.empty(0)
        self._wrong = torch.empty(0)

    def verify(self, *placed: PlacedTree) -> Tensor:
        self._right = super().verify(*placed)
        self._wrong = self._right.roll(1, dims=0)
        return self._wrong

    def logits(self, hidden: Tensor) -> Tensor:
        return super().logits(self._right if hidden is self._wrong else hidden)


class _Around:
    """A rule around another; traces ask the one inside."""

    def __init__(self, rule: Rule) -> None:
        self._rule = rule
        self.has_numbers = rule.has_numbers

    def chance(self, position: int) -> Chance | None:
        return self._rule.chance(position)

    def numbers(
        self, row: Tensor, context: WalkContext, path: RulePath, token_id: int
    ) -> RuleNumbers:
        return self._rule.numbers(row, context, path, token_id)


class BonusOfParent(_Around):
    """A greedy rule that reads the bonus token one row too early."""

    def walk(self, tree: TokenTree, logits: Tensor, context: WalkContext) -> Acceptance:
        acceptance = self._rule.walk(tree, logits, context)
        if not acceptance.nodes:
            return acceptance
        parent = tree.shape.parents[acceptance.nodes[-1]]
        return Acceptance(acceptance.nodes, int(logits[parent].argmax()))


class Credulous(_Around):
    """Accepts the first child if it is likely, as typical acceptance does: a biased text."""

    def walk(self, tree: TokenTree, logits: Tensor, context: WalkContext) -> Acceptance:
        acceptance = self._rule.walk(tree, logits, context)
        children = tree.shape.children[0][:1]
        chances = logits[0].softmax(dim=-1)
        if not children or chances[tree.token_ids[children[0]]] < 0.1:
            return acceptance
        further = WalkContext([*context.history, tree.token_ids[children[0]]], 0)
        rest = self._rule.walk(TokenTree(TreeShape.root_only(), (0,)), logits[1:], further)
        return Acceptance(children, rest.bonus_id)


class PathlessShaping(Shaping):
    """Penalises a node as if nothing had been drafted above it."""

    def __call__(self, row: Tensor, context: WalkContext, path: RulePath) -> Tensor:
        return super().__call__(row, context, ())


class ParentsGrammar(Shaping):
    """Reads the grammar's mask one node too early."""

    def __call__(self, row: Tensor, context: WalkContext, path: RulePath) -> Tensor:
        return super().__call__(row, context, path[:-1])


def greedy_by_parents_grammar() -> RuleSpec:
    """Greedy with such masks."""
    choice = rule_registry().get("greedy").choice
    return RuleSpec(choice, preference=99, build=lambda s: Greedy(ParentsGrammar(s)))


def pathless_greedy() -> RuleSpec:
    """Greedy with such penalties."""
    choice = rule_registry().get("greedy").choice
    return RuleSpec(choice, preference=99, build=lambda s: Greedy(PathlessShaping(s)))


def with_cache(target: Target, cache: type[TensorCache]) -> Target:
    """The target with a faulty cache."""
    return replace(target, runner=FaultyRunner(target.runner, cache=cache))


def with_layout(target: Target, layout: Layout) -> Target:
    """The target with faulty masks or positions."""
    return replace(target, runner=FaultyRunner(target.runner, layout=layout))


def with_wrong_states(target: Target) -> Target:
    """Return the target with hidden states of wrong rows."""
    return replace(target, runner=WrongStateRunner(target.runner))


def faulty_rule(spec: RuleSpec, fault: type[_Around]) -> RuleSpec:
    """The rule with a fault around it."""

    def build(settings: GenerateSettings) -> Rule:
        return fault(spec.build(settings))

    return replace(spec, build=build)
