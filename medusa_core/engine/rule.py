"""What an acceptance rule is."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from torch import Tensor

from medusa_core.engine import rules
from medusa_core.errors import NumericsError
from medusa_core.messages import GenerateSettings
from medusa_core.registry import Registry
from medusa_core.tree.shape import TokenTree
from medusa_core.types import Acceptance


class Rule(Protocol):
    """Decides which path of a verified tree becomes text."""

    def walk(self, tree: TokenTree, logits: Tensor, position: int) -> Acceptance:
        """Follow the target through the tree.

        Args:
            tree: The verified tree.
            logits: The target's scores at every node. [n, vocabulary]
            position: Place of the first token to choose (the root's place plus one).

        Raises:
            NumericsError: The scores on the way hold no number.
        """


@dataclass(frozen=True, slots=True)
class RuleSpec:
    """A registered rule.

    Attributes:
        name: Its name in settings.
        is_exact: The text has the target's own distribution.
        build: Makes the rule for one answer.
    """

    name: str
    is_exact: bool
    build: Callable[[GenerateSettings], Rule]


@cache
def rule_registry() -> Registry[RuleSpec]:
    """All acceptance rules."""
    return Registry(rules, "acceptance rule", RuleSpec)


def descend(tree: TokenTree, choose: Callable[[int, int], int], position: int) -> Acceptance:
    """Walk down while the chosen token is among the children.

    Args:
        tree: The verified tree.
        choose: The token to put behind a node, given the node and the token's position.
        position: Position of the first token to choose.

    Returns:
        The nodes walked through and the first choice that no child holds.
    """
    nodes: list[int] = []
    node = 0
    while True:
        token_id = choose(node, position + len(nodes))
        child = tree.child_with(node, token_id)
        if child is None:
            return Acceptance(tuple(nodes), token_id)
        nodes.append(child)
        node = child


def check_number(score: float) -> None:
    """Refuse a best score that is no finite number.

    Raises:
        NumericsError: It is NaN or infinite.
    """
    if not math.isfinite(score):
        raise NumericsError(
            "The model's scores are not numbers (NaN or infinite).",
            "The weights are damaged or overflow in this dtype: try float32, or download again.",
        )
