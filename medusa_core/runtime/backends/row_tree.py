"""Dependencies between the rows of one sequence in a forward pass."""

from __future__ import annotations

import torch
from torch import Tensor


class RowTree:
    """Rows of a token tree; a row comes after all rows that it attends to.

    Attributes:
        mask: Whether a row attends to another: itself and its ancestors. bool [n, n]
        is_chain: Whether each row attends to all rows before it.
        decided: Whether all rows will be committed, as in prefill; then they are a chain.
    """

    def __init__(self, mask: Tensor, is_chain: bool = False, decided: bool = False) -> None:
        self.mask = mask
        self.is_chain = is_chain
        self.decided = decided
        self._inputs: dict[int, Tensor] = {}

    @classmethod
    def chain(cls, num_rows: int, device: torch.device, decided: bool = False) -> RowTree:
        """Make a tree of consecutive rows."""
        ones = torch.ones(num_rows, num_rows, dtype=torch.bool, device=device)
        return cls(ones.tril_(), True, decided)

    def inputs(self, width: int) -> Tensor:
        """Return the inputs of a causal convolution for each row, its own last.

        Args:
            width: Width of the kernel.

        Returns:
            Indices into the last width − 1 committed inputs, followed by the rows' inputs.
            int64 [n, width]
        """
        if width not in self._inputs:
            self._inputs[width] = self._find_inputs(width)
        return self._inputs[width]

    def _find_inputs(self, width: int) -> Tensor:
        """Follow each row's parents for `inputs`, through the committed inputs at the end."""
        count, device = len(self.mask), self.mask.device
        numbers = torch.arange(count, device=device)
        # The parent is the last other row that a row attends to; −1 is the last committed row.
        parents = ((self.mask & (numbers != numbers[:, None])) * (numbers + 1)).amax(dim=1) - 1
        tail = torch.arange(-1, width - 2, device=device).clamp_(min=0)
        before = torch.cat([tail, parents + width - 1])
        columns = [numbers + width - 1]
        for _ in range(width - 1):
            columns.append(before[columns[-1]])
        return torch.stack(columns[::-1], dim=1)
