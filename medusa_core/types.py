"""What passes between drafter, runner and rule in one step."""

from __future__ import annotations

from dataclasses import dataclass

from medusa_core.messages import TokenSource
from medusa_core.tree.shape import TokenTree


@dataclass(frozen=True, slots=True)
class Proposal:
    """What a drafter offers for one step.

    Attributes:
        tree: The token tree to verify.
        sources: Where each node came from; the root's is the target.
    """

    tree: TokenTree
    sources: tuple[TokenSource, ...]


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What a rule decides about one verified tree.

    Attributes:
        nodes: The accepted draft nodes, from the root's child downward; may be empty.
        bonus_id: The token that the target adds after them.
    """

    nodes: tuple[int, ...]
    bonus_id: int
