"""Head accuracies on the model's own answers, and the best trees for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.rules.sampling import gumbel_rows
from medusa_core.training.heads import HeadData, MedusaHeads

Path = tuple[int, ...]
UNKNOWN = -1


@torch.inference_mode()
def true_ranks(
    heads: MedusaHeads,
    data: HeadData,
    num_ranks: int,
    token_ids: Tensor | None = None,
    temperature: float = 0.0,
) -> Tensor:
    """At which rank each head held the true later token.

    Args:
        heads: trained heads.
        data: positions of own answers.
        num_ranks: ranks to tell apart.
        token_ids: what the heads draft from; None for all tokens.
        temperature: that the answers were drawn at; the heads then know the noise, as they do in
            the engine.

    Returns:
        int64 [N, heads]: the rank, `num_ranks` where it was beyond, UNKNOWN past the answer's end.
    """
    parts = []
    for start in range(0, len(data.hidden), 2048):
        hidden = data.hidden[start : start + 2048].float()
        roots, targets = data.roots[start : start + 2048], data.targets[start : start + 2048]
        columns = []
        for head in range(heads.num_heads):
            with torch.autocast("cpu", torch.bfloat16):
                scores = heads.logits(head, hidden, roots)
            if temperature:
                places = data.places[start : start + 2048] + 1 + head
                seeds = data.seeds[start : start + 2048]
                noise = gumbel_rows(seeds.tolist(), places.tolist(), scores.shape[-1])
                scores = scores / temperature + noise
            if token_ids is None:
                top = scores.topk(num_ranks, dim=-1).indices
            else:
                top = token_ids[scores[:, token_ids].topk(num_ranks, dim=-1).indices]
            match = top == targets[:, head, None]
            rank = torch.where(match.any(-1), match.int().argmax(-1), num_ranks)
            columns.append(torch.where(targets[:, head] < 0, UNKNOWN, rank))
        parts.append(torch.stack(columns, dim=1))
    return torch.cat(parts)


def head_accuracies(ranks: Tensor, num_ranks: int) -> list[list[float]]:
    """Share of positions at which a rank was right, [heads][ranks].

    Counted over all positions, whether or not the depths before were right (unconditional).
    """
    known = (ranks != UNKNOWN).sum(0).clamp(min=1)
    hits = torch.stack([(ranks == rank).sum(0) for rank in range(num_ranks)], dim=1)
    shares: list[list[float]] = (hits / known[:, None]).tolist()
    return shares


def path_counts(ranks: Tensor, num_ranks: int) -> Counter[Path]:
    """How often each rank path was the true one, over all positions.

    Heads are not independent: where the first is right the next is right more often. Counting
    whole paths sees that; the product of head accuracies doesn't.
    """
    counts: Counter[Path] = Counter()
    for row in ranks.tolist():
        path: Path = ()
        for rank in row:
            if not 0 <= rank < num_ranks:
                break
            path = (*path, rank)
            counts[path] += 1
    return counts


def best_trees(counts: Counter[Path], tree_rows: Sequence[int]) -> dict[int, list[Path]]:
    """The most frequent paths for each number of rows (the root is a row).

    A path is never more frequent than its parent, so the first n by count form a tree.
    """
    ordered = sorted(counts, key=lambda path: (-counts[path], len(path), path))
    return {
        rows: sorted(ordered[: rows - 1], key=lambda path: (len(path), path)) for rows in tree_rows
    }


def path_length(counts: Counter[Path], paths: Sequence[Path], num_positions: int) -> float:
    """Expected tokens per step of a tree at a position like those counted, bonus included."""
    return 1.0 + sum(counts[path] for path in paths) / max(1, num_positions)


def replayed_length(ranks: Sequence[Tensor], paths: Sequence[Path]) -> float:
    """Mean acceptance length of greedy decoding with this tree, replayed over own answers.

    Args:
        ranks: per answer, from `true_ranks`: row i is the position whose next token is i.
        paths: rank paths of the tree.

    Returns:
        Tokens per step, the bonus included; the first token (prefill's) in neither.
    """
    tree = set(paths)
    num_tokens = num_steps = 0
    for answer in ranks:
        rows = answer.tolist()
        place = 0  # the root; the state that chose it feeds the heads
        while place + 1 < len(rows):
            path: Path = ()
            for rank in rows[place]:
                if (*path, rank) not in tree:
                    break
                path = (*path, rank)
            taken = min(len(path) + 1, len(rows) - 1 - place)
            num_tokens += taken
            num_steps += 1
            place += taken
    return num_tokens / max(1, num_steps)
