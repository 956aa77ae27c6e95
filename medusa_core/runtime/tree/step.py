"""Records of one decoding step, between drafter, runner and acceptance rule."""

from __future__ import annotations

from abc import ABC, abstractmethod
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from medusa_core.messages import AUTO_GROWTH, NO_ODDS, Lookahead, Odds, TokenSource
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor  # reading messages doesn't import torch

    from medusa_core.models.text.grammar import Grammar


def no_odds() -> Odds:
    """The probabilities of a drafter that has none."""
    return NO_ODDS


NO_COSTS = array("f")


class RowBudget(NamedTuple):
    """Maximum rows of a tree, the costs of its parts, and corrections of probabilities.

    Costs are in tokens: the tokens that decoding yields on average in the time that a part takes.

    Attributes:
        most: Maximum number of rows, root included.
        row_costs: Cost of the time that 1, 2, ... rows take longer than one; drafts are profitable
            if their expected tokens exceed it. Ascending float32, [most]; empty if rows cost
            nothing.
        levels: Number of levels worth drafting at once; None for all.
        lookahead: Sizes of lookahead decoding.
        growth: One of `GROWTHS`; in a chain no node has more than one child.
        acceptance_ratios: Factors of drafters' probabilities, indexed as in `GrowthStruct`; they
            are learned, so they may change between two steps. float32; empty for 1.
        draft_costs: Acceptance rate of each level, and its costs of drafting after the first path
            and after another one. float32, [MAX_LEVELS · 3]; empty if drafting costs nothing.
    """

    most: int
    row_costs: array[float] = NO_COSTS
    levels: int | None = None
    lookahead: Lookahead = Lookahead()
    growth: str = AUTO_GROWTH
    acceptance_ratios: array[float] = NO_COSTS
    draft_costs: array[float] = NO_COSTS

    def without(self, num_rows: int) -> RowBudget:
        """The budget left after `num_rows` rows besides the root."""
        costs = [cost - self.row_costs[num_rows] for cost in self.row_costs[num_rows:]]
        return self._replace(most=self.most - num_rows, row_costs=array("f", costs))


class Form(NamedTuple):
    """A tree shape with the source of each node.

    Attributes:
        shape: The shape.
        sources: Sources by node; the root's is the target.
    """

    shape: TreeShape
    sources: tuple[TokenSource, ...]


class ForbiddenToken(NamedTuple):
    """A draft token that the answer's grammar kept out of a tree.

    Attributes:
        path: Tokens between the root and it.
        token_id: The token.
        chance: The drafter's probability.
    """

    path: tuple[int, ...]
    token_id: int
    chance: float


class Proposal(NamedTuple):
    """A drafter's proposal for one step.

    Attributes:
        tree: The token tree to verify.
        sources: The source of each node; the root's is the target.
        odds: Returns the drafter's probabilities of the draft nodes; called by traces and by the
            calibration of draft probabilities only.
        top_tokens: The heads' best tokens at depth 1, 2, ..., in the tree or not, for counting head
            accuracies; empty if the drafter counts none.
        expected_accepted: Expected number of accepted drafts; 0 if unknown.
        riders: Rows that share the pass under the same root and are never candidates, as a tree of
            their own: the drafter receives the target's most likely token after each.
        forbidden: Draft tokens that the answer's grammar kept out of the tree.
        offers: Candidates by node, as in `StepTrace.offers`; empty if they aren't recorded.
        draft_s: Seconds spent drafting.
    """

    tree: TokenTree
    sources: tuple[TokenSource, ...]
    odds: Callable[[], Odds] = no_odds
    top_tokens: Sequence[Sequence[int]] = ()
    expected_accepted: float = 0.0
    riders: TokenTree | None = None
    forbidden: Sequence[ForbiddenToken] = ()
    offers: bytes = b""
    draft_s: float = 0.0

    @property
    def rows(self) -> TokenTree:
        """All rows of the pass as one tree: the candidates, then the riders."""
        return self.tree if self.riders is None else self.tree.merged_at_root(self.riders)

    @property
    def num_rows(self) -> int:
        """Number of these rows."""
        riders = 0 if self.riders is None else self.riders.shape.num_nodes - 1
        return self.tree.shape.num_nodes + riders


@dataclass(frozen=True, slots=True)
class WalkContext:
    """Inputs of an acceptance rule besides the tree.

    Attributes:
        history: All decided tokens, the root last; it grows with the session.
        num_prompt_tokens: Number of them before the answer.
        traces: Every step is traced.
        grammar: Grammar of the answer, advanced to the end of `history`; None without one.
    """

    history: Sequence[int]
    num_prompt_tokens: int
    traces: bool = False
    grammar: Grammar | None = None

    @property
    def position(self) -> int:
        """Position of the next token."""
        return len(self.history)


class Chance(Protocol):
    """Sampling noise and filters of the positions after a root, for drafters to anticipate."""

    def __call__(
        self, scores: Tensor, token_ids: Tensor | None, depths: Sequence[int] | None = None
    ) -> Tensor:
        """Add noise and filters to logits, as the rule does to the target's.

        Args:
            scores: Logits of some tokens, a row for each position. [positions, n]
            token_ids: Their tokens, [n] or [positions, n]; None if columns are token ids.
            depths: Depth of each position, from 1; None for 1, 2, ...

        Returns:
            [positions, n], on the CPU; −inf for tokens that are filtered out.
        """


class PositionNoise(NamedTuple):
    """Sampling noise and filters of one position.

    Attributes:
        uniform: Random number in [0, 1) of each token. float64, [vocabulary or more]
        temperature: Divides logits.
        top_k: Number of tokens that are kept; 0 for all.
        top_p: Probability of the tokens that are kept; 1 for all.
        min_p: Lowest probability that is kept, relative to the best token's.
    """

    uniform: NDArray[np.float64]
    temperature: float
    top_k: int
    top_p: float
    min_p: float


class SeededChance(ABC):
    """A `Chance` whose noise compiled code can compute itself, from uniform numbers."""

    @abstractmethod
    def __call__(
        self, scores: Tensor, token_ids: Tensor | None, depths: Sequence[int] | None = None
    ) -> Tensor:
        """Add noise and filters to logits; see `Chance`."""

    @abstractmethod
    def noise(self, depth: int, vocab_size: int) -> PositionNoise:
        """Return the noise of a depth, from 1, for all tokens of a vocabulary."""


class Acceptance(NamedTuple):
    """A rule's decision about one verified tree.

    Attributes:
        nodes: The accepted draft nodes, from the root's child downward; may be empty.
        bonus_id: The token that the target adds after them.
        judged: The target's probabilities for a trace, as in `StepTrace`; empty if the rule
            doesn't compute them.
    """

    nodes: tuple[int, ...]
    bonus_id: int
    judged: bytes = b""
