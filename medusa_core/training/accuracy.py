"""How often heads are right: at which rank each held the true later token."""

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
    """At which rank each head held the true later token.

    Args:
        heads: trained heads.
        held_out: positions of answers that weren't learned from.
        num_ranks: ranks to tell apart.
        token_ids: what the heads draft from; None for all tokens.
        temperature: that the answers were drawn at; the heads then know the noise, as they do in
            the engine.

    Returns:
        int64 [N, heads]: the rank, `num_ranks` where it was beyond, UNKNOWN past the answer's end.
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
            rank = place_among(_best(scores, num_ranks, token_ids), targets)
            columns.append(torch.where(targets == UNKNOWN, UNKNOWN, rank))
        parts.append(torch.stack(columns, dim=1))
    return torch.cat(parts)


def ranks_of(wanted: Tensor, scores: Tensor, num_ranks: int) -> Tensor:
    """At which rank scores have what was wanted; `num_ranks` where it is beyond.

    Args:
        wanted: Columns. int64 [...]
        scores: [..., columns]
        num_ranks: Ranks to tell apart.
    """
    return place_among(scores.topk(num_ranks, dim=-1).indices, wanted)


def place_among(best: Tensor, wanted: Tensor) -> Tensor:
    """Where in lists something stands; behind the last where it doesn't. [..., n], [...] → [...]"""
    match = best == wanted[..., None]
    return torch.where(match.any(-1), match.int().argmax(-1), best.shape[-1])


def _noise(some: Positions, head: int, width: int) -> Tensor:
    """What chance adds to the scores of the token that the head guesses."""
    places = some.places + 1 + head
    return gumbel_rows(some.seeds.tolist(), places.tolist(), width)


def _best(scores: Tensor, num_ranks: int, token_ids: Tensor | None) -> Tensor:
    """The best tokens, best first."""
    if token_ids is None:
        return scores.topk(num_ranks, dim=-1).indices
    return token_ids[scores[:, token_ids].topk(num_ranks, dim=-1).indices]


def head_accuracies(ranks: Tensor, num_ranks: int) -> list[list[float]]:
    """Share of positions at which a rank was right, [heads][ranks].

    Counted over all positions, whether or not the depths before were right (unconditional).
    """
    known = (ranks != UNKNOWN).sum(0).clamp(min=1)
    hits = torch.stack([(ranks == rank).sum(0) for rank in range(num_ranks)], dim=1)
    shares: list[list[float]] = (hits / known[:, None]).tolist()
    return shares
