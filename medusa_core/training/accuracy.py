"""Accuracy of heads in training: the rank at which each held the true later token."""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.speculation.rules.sampling import gumbel_rows
from medusa_core.training.heads import HeadsModule
from medusa_core.training.positions import Positions

UNKNOWN = -1
BEYOND = -2  # a token that heads don't draft
_AT_ONCE = 2048


@torch.inference_mode()
def true_ranks(
    heads: HeadsModule,
    held_out: Positions,
    num_ranks: int,
    token_ids: Tensor | None = None,
    temperature: float = 0.0,
) -> Tensor:
    """Return the rank at which each head held the true later token.

    Args:
        heads: Trained heads.
        held_out: Positions of held-out answers.
        num_ranks: Ranks to distinguish.
        token_ids: Draft vocabulary; None for all tokens.
        temperature: Sampling temperature of the answers; the heads then know the noise, as in the
            engine.

    Returns:
        int64 [N, heads]: the rank; `num_ranks` if it was beyond; UNKNOWN after the answer's end.
    """
    device = heads.lm_head.device
    parts = []
    for places in torch.split(torch.arange(len(held_out)), _AT_ONCE):
        some = held_out.at(places)
        hidden, roots = some.hidden.to(device).float(), some.roots.to(device)
        columns = []
        for head in range(heads.num_heads):
            scores = heads.logits(head, hidden, roots).cpu()
            if temperature:
                scores = scores / temperature + _noise(some, head, scores.shape[-1])
            targets = some.targets[:, head]
            rank = rank_in(_best(scores, num_ranks, token_ids), targets)
            columns.append(torch.where(targets == UNKNOWN, UNKNOWN, rank))
        parts.append(torch.stack(columns, dim=1))
    return torch.cat(parts)


def ranks_of(targets: Tensor, scores: Tensor, num_ranks: int) -> Tensor:
    """Return the rank of each wanted column; `num_ranks` if it is beyond.

    Args:
        targets: Columns. int64 [...]
        scores: [..., columns]
        num_ranks: Ranks to distinguish.
    """
    return rank_in(scores.topk(num_ranks, dim=-1).indices, targets)


def rank_in(best: Tensor, targets: Tensor) -> Tensor:
    """Return the index of each value in its list, or the list's length. [..., n], [...] → [...]"""
    match = best == targets[..., None]
    return torch.where(match.any(-1), match.int().argmax(-1), best.shape[-1])


def _noise(positions: Positions, head: int, width: int) -> Tensor:
    """Return the sampling noise of the token that a head drafts."""
    places = positions.places + 1 + head
    return gumbel_rows(positions.seeds.tolist(), places.tolist(), width)


def _best(scores: Tensor, num_ranks: int, token_ids: Tensor | None) -> Tensor:
    """Return the best tokens, best first."""
    if token_ids is None:
        return scores.topk(num_ranks, dim=-1).indices
    return token_ids[scores[:, token_ids].topk(num_ranks, dim=-1).indices]


def head_accuracies(ranks: Tensor, num_ranks: int) -> list[list[float]]:
    """Return the share of positions at which a rank was right, [heads][ranks].

    All positions count, whether or not the depths before were right (unconditional accuracy).
    """
    known = (ranks != UNKNOWN).sum(0).clamp(min=1)
    hits = torch.stack([(ranks == rank).sum(0) for rank in range(num_ranks)], dim=1)
    shares: list[list[float]] = (hits / known[:, None]).tolist()
    return shares
