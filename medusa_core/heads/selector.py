"""DFlash2's selector, which scores pairs of consecutive candidates.

The logit of a candidate c after the token t gains (P[t] ⊙ W s) · S[c], where s is the state of the
position; only the best candidates of the position are rescored.

Source: z-lab/dflash, `CandidateSelector` (read, not copied).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.models.quant.layout import QuantLinear


@dataclass(frozen=True, slots=True)
class Selector:
    """The selector.

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
