"""How the rows of one sequence in a pass depend on each other."""

from __future__ import annotations

import torch
from torch import Tensor


class RowTree:
    """Rows in the order of a tree: a row comes behind all that it sees.

    Attributes:
        sees: Whether a row sees another: itself, and those before it on its path. [n, n], bool
        is_chain: Each row sees all before it.
        decided: All rows will be committed, as those of a prompt; they are a chain.
    """

    def __init__(self, sees: Tensor, is_chain: bool = False, decided: bool = False) -> None:
        self.sees = sees
        self.is_chain = is_chain
        self.decided = decided
        self._inputs: dict[int, Tensor] = {}

    @classmethod
    def chain(cls, num_rows: int, device: torch.device, decided: bool = False) -> RowTree:
        """Consecutive rows."""
        ones = torch.ones(num_rows, num_rows, dtype=torch.bool, device=device)
        return cls(ones.tril_(), True, decided)

    def inputs(self, width: int) -> Tensor:
        """Which `width` inputs a causal convolution reads for each row, its own the last.

        Returns:
            Places among the last width − 1 committed inputs and those of the rows behind them.
            [n, width], int64
        """
        if width not in self._inputs:
            self._inputs[width] = self._read(width)
        return self._inputs[width]

    def _read(self, width: int) -> Tensor:
        count, device = len(self.sees), self.sees.device
        numbers = torch.arange(count, device=device)
        # The parent is the last row that a row sees beside itself; −1 is the last committed one.
        parents = ((self.sees & (numbers != numbers[:, None])) * (numbers + 1)).amax(dim=1) - 1
        tail = torch.arange(-1, width - 2, device=device).clamp_(min=0)
        before = torch.cat([tail, parents + width - 1])
        columns = [numbers + width - 1]
        for _ in range(width - 1):
            columns.append(before[columns[-1]])
        return torch.stack(columns[::-1], dim=1)
