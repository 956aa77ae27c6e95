"""DSpark's two small heads: which token follows which, and how far a place is to be trusted.

Scores of a place behind the token t gain W2 · W1[t]. So one pass of the drafter says of each path
what may follow it. The confidence c = sigmoid(w · [state; W1[t]] + b) is how often the target
takes what is drafted there.

Source: DSpark (arXiv 2607.05147), sections 3.2 and 3.3.
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
    """The confidence head.

    Attributes:
        weight: w, of a state alone or of W1[t] besides. [1, hidden] or [1, hidden + rank]
        bias: b. [1], or None
    """

    weight: Tensor
    bias: Tensor | None

    @property
    def nbytes(self) -> int:
        """Bytes of its numbers."""
        return self.weight.nbytes + (0 if self.bias is None else self.bias.nbytes)

    def __call__(self, state: Tensor, vectors: Tensor) -> list[float]:
        """How far a place is trusted behind some tokens.

        Args:
            state: Of the place. [hidden]
            vectors: W1 of the tokens. [n, rank]

        Returns:
            Of each, in [0, 1].
        """
        wide = torch.promote_types(state.dtype, torch.float32)
        weight = self.weight[0].to(wide)
        said = (state.to(wide) @ weight[: len(state)]).expand(len(vectors))
        if len(weight) > len(state):
            said = said + vectors.to(wide) @ weight[len(state) :]
        if self.bias is not None:
            said = said + self.bias.to(wide)
        found: list[float] = said.sigmoid().tolist()
        return found


@dataclass(frozen=True, slots=True)
class MarkovHead:
    """Both heads.

    Attributes:
        first: W1. [vocabulary, rank]
        second: W2. [columns, rank]
        confidence: The confidence head, or None.
        cuts: Beginnings of `second` that were asked for.
    """

    first: Tensor
    second: QuantLinear
    confidence: Confidence | None
    cuts: dict[int, QuantLinear] = field(default_factory=dict)

    @property
    def plain_bytes(self) -> int:
        """Bytes of its weights but `second`."""
        return self.first.nbytes + (0 if self.confidence is None else self.confidence.nbytes)

    def vectors(self, token_ids: Sequence[int]) -> Tensor:
        """W1 of tokens. [n, rank]"""
        return self.first[torch.tensor(token_ids, device=self.first.device)]

    def bias(self, vectors: Tensor, most: int) -> Tensor:
        """What scores gain, of all columns or where fewer cost less of `most` of the first.

        [n, rank] → [n, columns]
        """
        return cached_first_outputs(self.second, most, self.cuts)(vectors)
