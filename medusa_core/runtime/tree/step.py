"""What passes between drafter, runner and rule in one step."""

from __future__ import annotations

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
    from torch import Tensor  # whoever reads messages needn't wait for torch

    from medusa_core.models.text.grammar import Grammar


def no_odds() -> Odds:
    """What a drafter that says nothing of its nodes tells."""
    return NO_ODDS


NO_PRICES = array("f")


class RowBudget(NamedTuple):
    """How many rows a tree may take, and what they cost.

    Attributes:
        most: Rows at most, root included.
        prices: The tokens that decoding brings on average in the time that 1, 2, ... rows take
            longer than one: what drafts must be worth together to pay; rising. float32, [most];
            empty where rows cost nothing.
        levels: How deep asking the heads is worth its time; None for as deep as they go.
        lookahead: The sizes of lookahead decoding.
        growth: One of `GROWTHS`: in a chain no node has more than one child.
        trust: By what chances are multiplied, as in growth.h; learned meanwhile, so it may change
            between two steps. float32; empty for 1.
        asking: Of each level how likely it brings a right token behind a right path, and what
            asking about the first path costs and about a further one, in tokens. float32,
            [MOST_LEVELS · 3]; empty where asking costs nothing.
    """

    most: int
    prices: array[float] = NO_PRICES
    levels: int | None = None
    lookahead: Lookahead = Lookahead()
    growth: str = AUTO_GROWTH
    trust: array[float] = NO_PRICES
    asking: array[float] = NO_PRICES

    def behind(self, num_rows: int) -> RowBudget:
        """What is left where so many rows beside the root are taken already."""
        prices = [price - self.prices[num_rows] for price in self.prices[num_rows:]]
        return self._replace(most=self.most - num_rows, prices=array("f", prices))


class Form(NamedTuple):
    """A shape of which is known who fills it.

    Attributes:
        shape: The shape.
        sources: Where each node comes from; the root's is the target.
    """

    shape: TreeShape
    sources: tuple[TokenSource, ...]


class ForbiddenGuess(NamedTuple):
    """A guess that the answer's grammar kept out of a tree.

    Attributes:
        path: The tokens between the root and it.
        token_id: Its token.
        chance: How likely it was, as the drafter says.
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
        offers: As in `StepTrace.offers`; empty if the drafter doesn't record them.
        draft_s: Seconds spent drafting.
    """

    tree: TokenTree
    sources: tuple[TokenSource, ...]
    odds: Callable[[], Odds] = no_odds
    top_tokens: Sequence[Sequence[int]] = ()
    expected_accepted: float = 0.0
    riders: TokenTree | None = None
    forbidden: Sequence[ForbiddenGuess] = ()
    offers: bytes = b""
    draft_s: float = 0.0

    @property
    def rows(self) -> TokenTree:
        """All rows of the pass as one tree: the candidates, then the riders."""
        return self.tree if self.riders is None else self.tree.beside(self.riders)

    @property
    def num_rows(self) -> int:
        """Number of these rows."""
        riders = 0 if self.riders is None else self.riders.shape.num_nodes - 1
        return self.tree.shape.num_nodes + riders


@dataclass(frozen=True, slots=True)
class WalkContext:
    """What a rule knows besides the tree.

    Attributes:
        history: All decided tokens, the root last; grows as the session does.
        num_prompt_tokens: How many of them come before the answer.
        traces: Every step is traced.
        grammar: What the answer must match; it has followed `history` so far. None for anything.
    """

    history: Sequence[int]
    num_prompt_tokens: int
    traces: bool = False
    grammar: Grammar | None = None

    @property
    def position(self) -> int:
        """Place of the first token to choose."""
        return len(self.history)


class Chance(Protocol):
    """What chance will add to the target's scores behind a root."""

    def __call__(
        self, scores: Tensor, token_ids: Tensor | None, depths: Sequence[int] | None = None
    ) -> Tensor:
        """Scores as they would be compared if they were the target's.

        Args:
            scores: Of some tokens, a row for each place. [places, n]
            token_ids: Whose scores they are, [n] or [places, n]; None where columns are token ids.
            depths: How deep each place is, from 1; None for 1, 2, ...

        Returns:
            [places, n], on the CPU; −inf for what would be filtered out.
        """


class Acceptance(NamedTuple):
    """What a rule decides about one verified tree.

    Attributes:
        nodes: The accepted draft nodes, from the root's child downward; may be empty.
        bonus_id: The token that the target adds after them.
        judged: What a trace keeps of the target's scores, as in `StepTrace`; empty where a rule
            doesn't come upon it.
    """

    nodes: tuple[int, ...]
    bonus_id: int
    judged: bytes = b""
