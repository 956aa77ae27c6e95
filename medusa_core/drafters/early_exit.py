"""Pruning by an early exit: what a middle layer finds unlikely needn't pass through the last ones.

Source: Speculative Streaming (Bhendawade et al. 2024), section 3.2.3 (parallel tree pruning).
"""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.heads.streams import StreamHeads
from medusa_core.tree.shape import TokenTree


class EarlyExit:
    """Decides in one tree; see `Pruner`.

    Attributes:
        layer: What enters it decides.
        kept: The nodes that went on; None until that is decided.
    """

    def __init__(self, heads: StreamHeads, tree: TokenTree, least: float) -> None:
        """Take the tree.

        Args:
            heads: Their early exit says how likely nodes are.
            tree: The tree.
            least: Nodes that are less likely behind their parents are dropped.
        """
        self.layer = heads.taps[0]
        self.kept: tuple[int, ...] | None = None
        self._heads, self._tree, self._least = heads, tree, least

    def keep(self, entering: Tensor) -> tuple[int, ...]:
        shape, token_ids = self._tree
        asked = [node for node, below in enumerate(shape.children) if below]
        scores = self._heads.early_exit(entering[torch.tensor(asked, device=entering.device)])
        row_of = {node: row for row, node in enumerate(asked)}
        rows = [row_of[parent] for parent in shape.parents[1:]]
        told = scores[rows, list(token_ids[1:])] - scores.logsumexp(dim=-1)[rows]
        kept = {0}
        for node, chance in enumerate(told.exp().tolist(), start=1):
            if shape.parents[node] in kept and chance >= self._least:
                kept.add(node)
        self.kept = tuple(sorted(kept))
        return self.kept
