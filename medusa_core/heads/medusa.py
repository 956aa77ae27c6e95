"""Medusa heads in memory, whatever format they came in.

Head k reads the target's last hidden state h and drafts the token k + 1 places after the next:
h' = h + SiLU(W h + b) per residual layer, then a projection to the vocabulary, either the head's
own or the target's (shared).

Source: Medusa (Cai et al. 2024), section 2.1.1.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.heads.weights import HeadWeights
from medusa_core.quant.linear import QuantLinear, make_linear

MakeLinear = Callable[[Tensor, Tensor | None], QuantLinear]
_Layers = list[tuple[Tensor, Tensor]]


class Ranked(NamedTuple):
    """What the heads guess behind one row.

    Attributes:
        token_ids: Per head its best tokens, best first.
        columns: Where they stand in `scores`.
        scores: The heads' scores. [heads, columns]
    """

    token_ids: list[list[int]]
    columns: list[list[int]]
    scores: Tensor


class MedusaHeads:
    """All heads of a target, evaluated on one row.

    Attributes:
        num_heads: How many there are.
        num_columns: From how many tokens they draft.
        nbytes: Bytes of their weights.
    """

    def __init__(
        self,
        heads: Iterable[HeadWeights],
        token_map: Tensor | None,
        target_lm_head: QuantLinear,
        vocab_size: int,
        make: MakeLinear = make_linear,
    ) -> None:
        """Take the heads of a target.

        Args:
            heads: Their weights, where they are to run; taken one by one.
            token_map: The token id of every column of a reduced vocabulary, or None.
            target_lm_head: What heads without a projection share.
            vocab_size: Its rows.
            make: Makes a layer of a weight and a bias, in the heads' format.
        """
        layers_of: list[_Layers] = []
        own: list[QuantLinear] = []
        self.num_columns = vocab_size
        for head in heads:
            layers_of.append(_with_biases(head))
            if head.projection is not None:
                self.num_columns = len(head.projection)
                own.append(make(head.projection, None))
        self.num_heads = len(layers_of)
        self._token_map = None if token_map is None else token_map.tolist()
        self._residuals = _Residuals(layers_of, make)
        self._own_projections = own
        self._target_lm_head = target_lm_head
        self.nbytes = self._residuals.nbytes + sum(linear.nbytes for linear in own)

    def logits(self, hidden: Tensor, num_heads: int) -> Tensor:
        """Scores of the first `num_heads` heads.

        Args:
            hidden: The target's state after its final norm, at the last accepted row. [hidden]
            num_heads: How many heads are wanted.

        Returns:
            [num_heads, num_columns]
        """
        states = self._residuals(hidden, num_heads)
        if not self._own_projections:
            return self._target_lm_head(states)
        pairs = zip(self._own_projections[:num_heads], states.unsqueeze(1), strict=True)
        return torch.cat([project(state) for project, state in pairs])

    def ranked(self, hidden: Tensor, num_ranks: Sequence[int]) -> Ranked:
        """The best tokens of every head.

        Args:
            hidden: As in `logits`. [hidden]
            num_ranks: How many tokens are wanted of head 1, 2, ...; heads beyond aren't run.

        Returns:
            Per head its best tokens, best first, all of the longest wanted length; and the scores
            that they were chosen by.
        """
        scores = self.logits(hidden, len(num_ranks))
        columns: list[list[int]] = scores.topk(max(num_ranks), dim=-1).indices.tolist()
        mapped = self._token_map
        if mapped is None:
            return Ranked(columns, columns, scores)
        return Ranked([[mapped[column] for column in row] for row in columns], columns, scores)


class _Residuals:
    """The residual layers of all heads; the first is one product, as all heads share its input."""

    def __init__(self, layers_of: Sequence[_Layers], make: MakeLinear) -> None:
        firsts = [layers[0] for layers in layers_of if layers]
        self._first = (
            make(torch.cat([w for w, _ in firsts]), torch.cat([b for _, b in firsts]))
            if firsts
            else None
        )
        depth = max((len(layers) for layers in layers_of), default=0)
        self._rest = [
            (
                torch.stack([layers[i][0].t() for layers in layers_of]),
                torch.stack([layers[i][1] for layers in layers_of]).unsqueeze(1),
            )
            for i in range(1, depth)
        ]
        deeper = sum(w.nbytes + b.nbytes for w, b in self._rest)
        self.nbytes = deeper + (0 if self._first is None else self._first.nbytes)

    def __call__(self, hidden: Tensor, num_heads: int) -> Tensor:
        """[hidden] → [num_heads, hidden]"""
        rows = hidden.unsqueeze(0)
        if self._first is None:
            return rows.expand(num_heads, -1)
        width = hidden.shape[-1]
        state = rows + F.silu(self._first(rows).view(-1, width)[:num_heads])
        for weight, bias in self._rest:
            turned = torch.baddbmm(bias[:num_heads], state.unsqueeze(1), weight[:num_heads])
            state = state + F.silu(turned.squeeze(1))
        return state


def _with_biases(head: HeadWeights) -> _Layers:
    """Layers without a bias get one of nothing: then all heads run alike."""
    return [(w, w.new_zeros(len(w)) if b is None else b) for w, b in head.layers]
