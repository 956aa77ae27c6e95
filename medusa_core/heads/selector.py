"""DFlash2's selector: of a place's best tokens, which follows which.

The score of a token c behind the token t gains (P[t] ⊙ W s) · S[c], where s is the place's state;
only the place's best tokens by themselves are compared.

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
        before: P. [vocabulary, rank]
        behind: S. [vocabulary, rank]
        projection: W. → [rank]
        num_best: How many tokens of a place are compared.
    """

    before: Tensor
    behind: Tensor
    projection: QuantLinear
    num_best: int

    @property
    def plain_bytes(self) -> int:
        """Bytes of its weights but `projection`."""
        return self.before.nbytes + self.behind.nbytes

    def __call__(
        self, scores: Tensor, state: Tensor, token_ids: Sequence[int]
    ) -> tuple[Tensor, Tensor]:
        """Compare the best tokens of a place behind some tokens.

        Args:
            scores: The place's by itself. [vocabulary]
            state: Of the place. [1, hidden]
            token_ids: The tokens before it.

        Returns:
            Scores [n, best], and whose they are [best].
        """
        best = scores.topk(min(self.num_best, len(scores)))
        before = self.before[torch.tensor(token_ids, device=self.before.device)]
        joined = before * self.projection(state).to(before.dtype)
        return best.values + (joined @ self.behind[best.indices].T).to(scores.dtype), best.indices
