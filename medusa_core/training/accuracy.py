"""Head accuracies on the model's own answers, and the best trees for them."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.training.heads import HeadData, MedusaHeads
from medusa_core.tree.search import best_paths


@torch.inference_mode()
def rank_counts(heads: MedusaHeads, data: HeadData, num_ranks: int) -> tuple[Tensor, Tensor]:
    """Count at which rank each head held the true later token.

    Args:
        heads: trained heads.
        data: positions of own answers.
        num_ranks: ranks to count.

    Returns:
        Hits int64 [heads, ranks] and positions counted int64 [heads].
    """
    hits = torch.zeros(heads.num_heads, num_ranks, dtype=torch.int64)
    totals = torch.zeros(heads.num_heads, dtype=torch.int64)
    for start in range(0, len(data.hidden), 2048):
        hidden = data.hidden[start : start + 2048].float()
        targets = data.targets[start : start + 2048]
        for head in range(heads.num_heads):
            known = targets[:, head] >= 0
            with torch.autocast("cpu", torch.bfloat16):
                scores = heads.logits(head, hidden[known])
            top = scores.topk(num_ranks, dim=-1).indices
            hits[head] += (top == targets[known, head, None]).sum(0)
            totals[head] += int(known.sum())
    return hits, totals


def head_accuracies(hits: Tensor, totals: Tensor) -> list[list[float]]:
    """Share of positions at which a rank was right, [heads][ranks].

    Counted over all positions, whether or not the depths before were right (unconditional).
    """
    shares: list[list[float]] = (hits / totals.clamp(min=1)[:, None]).tolist()
    return shares


def best_trees(
    accuracies: Sequence[Sequence[float]], tree_rows: Sequence[int]
) -> dict[int, list[tuple[int, ...]]]:
    """Best rank paths for each number of rows (the root is a row)."""
    return {rows: best_paths(accuracies, rows - 1) for rows in tree_rows}


@torch.inference_mode()
def simulated_length(
    heads: MedusaHeads,
    answer_hidden: Sequence[Tensor],
    answer_ids: Sequence[Sequence[int]],
    paths: Sequence[tuple[int, ...]],
) -> float:
    """Mean acceptance length of greedy decoding with this tree, replayed over own answers.

    Args:
        heads: trained heads.
        answer_hidden: per answer, states [len, H]; row i is the state before token i.
        answer_ids: the same answers' tokens.
        paths: rank paths of the tree.

    Returns:
        Tokens per step, the bonus included; the first token (prefill's) in neither.
    """
    children = set(paths)
    num_ranks = 1 + max(rank for path in paths for rank in path)
    num_tokens = num_steps = 0
    for hidden, ids in zip(answer_hidden, answer_ids, strict=True):
        ranks = _true_ranks(heads, hidden, ids, num_ranks)
        place = 0  # the root; its state predicted it, the heads draft from there
        while place + 1 < len(ids):
            path: tuple[int, ...] = ()
            while len(path) < heads.num_heads and place + 1 + len(path) < len(ids):
                longer = (*path, ranks[place][len(path)])
                if longer not in children:
                    break
                path = longer
            accepted = min(len(path) + 1, len(ids) - 1 - place)
            num_tokens += accepted
            num_steps += 1
            place += accepted
    return num_tokens / max(1, num_steps)


def _true_ranks(
    heads: MedusaHeads, hidden: Tensor, ids: Sequence[int], num_ranks: int
) -> list[list[int]]:
    """Rank of each later token in its head at each place, `num_ranks` where beyond. [len, heads]"""
    columns = []
    padded = torch.tensor([*ids, *([-1] * (heads.num_heads + 1))])
    for head in range(heads.num_heads):
        with torch.autocast("cpu", torch.bfloat16):
            top = heads.logits(head, hidden.float()).topk(num_ranks, dim=-1).indices
        match = top == padded[head + 1 : head + 1 + len(ids), None]
        rank = torch.where(match.any(-1), match.int().argmax(-1), num_ranks)
        columns.append(rank)
    result: list[list[int]] = torch.stack(columns, dim=1).tolist()
    return result
