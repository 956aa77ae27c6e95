"""Interface and registry of acceptance rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Protocol

from torch import Tensor

from medusa_core.errors import NumericsError
from medusa_core.messages import GenerateSettings, RuleChoice
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import (
    Acceptance,
    Chance,
    WalkContext,
)
from medusa_core.speculation import rules
from medusa_core.system.registry import Registry

_DETERMINISTIC = "greedy"
_MIN_TEMPERATURE = 1e-100  # dividing logits by less may overflow
RulePath = Sequence[int]
RuleNumbers = tuple[tuple[str, float], ...]


class Rule(Protocol):
    """Decides which path of a verified tree becomes text.

    Attributes:
        has_numbers: It has inputs besides the target's probabilities, see `numbers`.
    """

    has_numbers: bool

    def walk(self, tree: TokenTree, logits: Tensor, context: WalkContext) -> Acceptance:
        """Follow the target through the tree.

        Args:
            tree: The verified tree.
            logits: The target's logits at every node. [n, vocabulary]
            context: The decided tokens, of which the last one is the tree's root.

        Raises:
            NumericsError: Logits on the path are NaN or infinite.
        """

    def chance(self, position: int) -> Chance | None:
        """The noise and filters from a position on, for drafters; None without any."""

    def numbers(
        self, row: Tensor, context: WalkContext, path: RulePath, token_id: int
    ) -> RuleNumbers:
        """The probabilities and thresholds that decided a token, for traces.

        Args:
            row: The target's logits at the node before the token. [vocabulary]
            context: The decided tokens, of which the last one is the tree's root.
            path: Draft tokens from the root's child down to that node.
            token_id: The token that the rule chose.
        """


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """A registered rule.

    Attributes:
        choice: Its name in settings, its texts for users, and its guarantees.
        preference: The rule with the lowest is the default.
        build: Makes the rule for one answer.
    """

    choice: RuleChoice
    preference: int
    build: Callable[[GenerateSettings], Rule]

    @property
    def name(self) -> str:
        """Name in the registry."""
        return self.choice.name


@cache
def rule_registry() -> Registry[RuleSpec]:
    """All acceptance rules."""
    return Registry(rules, "acceptance rule", RuleSpec)


def with_greedy_at_zero(settings: GenerateSettings) -> GenerateSettings:
    """The same settings, with the rule `greedy` at temperature 0.

    Raises:
        RequestError: Nothing is registered under the rule's name.
    """
    rule = rule_registry().get(settings.rule)
    is_greedy = rule.choice.is_exact and not rule.choice.draws
    if settings.temperature >= _MIN_TEMPERATURE or is_greedy:
        return settings
    return replace(settings, rule=_DETERMINISTIC)


def rules_by_preference() -> tuple[RuleChoice, ...]:
    """All rules for users to choose, the default first."""
    ordered = sorted(rule_registry().specs, key=lambda spec: spec.preference)
    return tuple(spec.choice for spec in ordered)


def descend(tree: TokenTree, choose: Callable[[int, RulePath], int]) -> Acceptance:
    """Walk down while the chosen token is among the children.

    Args:
        tree: The verified tree.
        choose: Returns the token after a node, given the node and the draft tokens down to it.

    Returns:
        The path of accepted nodes, and the first choice that is no child's token.
    """
    nodes: list[int] = []
    path: list[int] = []
    node = 0
    while True:
        token_id = choose(node, path)
        child = tree.child_with(node, token_id)
        if child is None:
            return Acceptance(tuple(nodes), token_id)
        nodes.append(child)
        path.append(token_id)
        node = child


def all_numbers(
    rule: Rule, logits: Tensor, nodes: RulePath, context: WalkContext, run: RulePath
) -> tuple[RuleNumbers, ...]:
    """`Rule.numbers` of each token of a step.

    Args:
        rule: The rule.
        logits: The target's logits at every node. [n, vocabulary]
        nodes: The root and the accepted nodes.
        context: The decided tokens, of which the last one is the tree's root.
        run: The accepted tokens and the bonus token, one after each of the nodes.
    """
    return tuple(
        rule.numbers(logits[node], context, run[:place], run[place])
        for place, node in enumerate(nodes)
    )


def check_finite(score: float) -> None:
    """Check that the largest logit is finite.

    Raises:
        NumericsError: It is NaN or infinite.
    """
    if not math.isfinite(score):
        raise not_finite_error()


def not_finite_error() -> NumericsError:
    """The error for logits that are NaN or infinite."""
    return NumericsError(
        "The model's scores are not numbers (NaN or infinite).",
        "The weights are damaged or overflow in this dtype: try float32, or download again.",
    )
