"""Heads that score pairs of consecutive tokens: DSpark's Markov head and DFlash2's selector.

Both let one pass of a block drafter give different candidates for each path.

Markov head: the logits after token t gain W2 · W1[t]. DSpark's confidence head
c = sigmoid(w · [state; W1[t]] + b) is the probability that the target accepts the draft of a
position.

Selector: the logit of a candidate c after token t gains (P[t] ⊙ W s) · S[c], where s is the state
of the position; only the best candidates of the position are rescored.

Sources: DSpark (arXiv 2607.05147), sections 3.2 and 3.3; z-lab/dflash, `CandidateSelector` (read,
not copied).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import cached_first_outputs


@dataclass(frozen=True, slots=True)
class Confidence:
    """Confidence head: predicts whether a draft token will be accepted.

    Attributes:
        weight: w, for the state alone or for [state; W1[t]]. [1, hidden] or [1, hidden + rank]
        bias: b. [1], or None
    """

    weight: Tensor
    bias: Tensor | None

    @property
    def nbytes(self) -> int:
        """Bytes of the weights."""
        return self.weight.nbytes + (0 if self.bias is None else self.bias.nbytes)

    def __call__(self, state: Tensor, vectors: Tensor) -> list[float]:
        """Return the acceptance probability of a position after each of some tokens.

        Args:
            state: Hidden state of the position. [hidden]
            vectors: W1 of the tokens. [n, rank]

        Returns:
            n numbers in [0, 1].
        """
        wide = torch.promote_types(state.dtype, torch.float32)
        weight = self.weight[0].to(wide)
        odds = (state.to(wide) @ weight[: len(state)]).expand(len(vectors))
        if len(weight) > len(state):
            odds = odds + vectors.to(wide) @ weight[len(state) :]
        if self.bias is not None:
            odds = odds + self.bias.to(wide)
        found: list[float] = odds.sigmoid().tolist()
        return found


@dataclass(frozen=True, slots=True)
class MarkovHead:
    """Markov head: low-rank logit bias W2 W1[t] that depends on the preceding token t.

    Attributes:
        first: W1. [vocabulary, rank]
        second: W2. [columns, rank]
        confidence: The confidence head, or None.
        cuts: First rows of `second`, by their number.
    """

    first: Tensor
    second: QuantLinear
    confidence: Confidence | None
    cuts: dict[int, QuantLinear] = field(default_factory=dict)

    @property
    def plain_bytes(self) -> int:
        """Bytes of all weights but `second`."""
        return self.first.nbytes + (0 if self.confidence is None else self.confidence.nbytes)

    def vectors(self, token_ids: Sequence[int]) -> Tensor:
        """Look up the rows of tokens in W1, the first factor of the Markov head. [n, rank]"""
        return self.first[torch.tensor(token_ids, device=self.first.device)]

    def bias(self, vectors: Tensor, num_columns: int) -> Tensor:
        """Compute what is added to the logits.

        Args:
            vectors: W1 of the tokens before. [n, rank]
            num_columns: Number of first columns to compute; 0 for all.

        Returns:
            [n, columns]
        """
        return cached_first_outputs(self.second, num_columns, self.cuts)(vectors)


@dataclass(frozen=True, slots=True)
class Selector:
    """Selector of DFlash2: scores pairs of candidates at neighbouring positions.

    Attributes:
        predecessors: P. [vocabulary, rank]
        successors: S. [vocabulary, rank]
        projection: W. → [rank]
        num_best: Candidates per position that are rescored.
    """

    predecessors: Tensor
    successors: Tensor
    projection: QuantLinear
    num_best: int

    @property
    def plain_bytes(self) -> int:
        """Bytes of all weights but `projection`."""
        return self.predecessors.nbytes + self.successors.nbytes

    def __call__(
        self, scores: Tensor, state: Tensor, token_ids: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Rescore the best candidates of a position after some tokens.

        Args:
            scores: Logits of the position by itself. [vocabulary]
            state: Hidden state of the position. [1, hidden]
            token_ids: The tokens before.

        Returns:
            Scores [n, best], and their columns [best].
        """
        best = scores.topk(min(self.num_best, len(scores)))
        before = self.predecessors[torch.tensor(token_ids, device=self.predecessors.device)]
        joined = before * self.projection(state).to(before.dtype)
        return best.values + (joined @ self.successors[best.indices].T).to(
            scores.dtype
        ), best.indices
