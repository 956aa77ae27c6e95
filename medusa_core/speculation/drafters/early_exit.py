"""Pruning by an early exit: what a middle layer finds unlikely needn't pass through the last ones.

Source: Speculative Streaming (Bhendawade et al. 2024), section 3.2.3 (parallel tree pruning).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.heads.streams import StreamHeads
from medusa_core.runtime.tree.shape import TokenTree


@dataclass(slots=True)
class EarlyExit:
    """Decides in one tree; see `Pruner`.

    Attributes:
        heads: Their early exit says how likely nodes are.
        tree: The tree.
        least: Nodes that are less likely behind their parents are dropped.
        kept: The nodes that went on; None until that is decided.
    """

    heads: StreamHeads
    tree: TokenTree
    least: float
    kept: tuple[int, ...] | None = None

    @property
    def layer(self) -> int:
        """What enters it decides."""
        return self.heads.taps[0]

    def keep(self, entering: Tensor) -> tuple[int, ...]:
        shape, token_ids = self.tree
        expanded = [node for node, below in enumerate(shape.children) if below]
        row_of = {node: row for row, node in enumerate(expanded)}
        rows = [row_of[parent] for parent in shape.parents[1:]]
        # One copy to the device, and one back.
        uploaded = torch.tensor([*expanded, *rows, *token_ids[1:]]).to(entering.device)
        parents, rows_of, tokens = torch.split(uploaded, [len(expanded), len(rows), len(rows)])
        chances = torch.softmax(self.heads.early_exit(entering.index_select(0, parents)), dim=-1)
        probabilities = chances.index_select(0, rows_of).gather(1, tokens.unsqueeze(1)).squeeze(1)
        kept = {0}
        for node, chance in enumerate(probabilities.tolist(), start=1):
            if shape.parents[node] in kept and chance >= self.least:
                kept.add(node)
        self.kept = tuple(sorted(kept))
        return self.kept
