"""What drafters and their sources learn from a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from medusa_core.runtime.tree.step import Chance


class Observation(NamedTuple):
    """What was decided in a step, or in prefill.

    Attributes:
        token_ids: The tokens decided, the next root last.
        states: The target's final states. [n, hidden]
        rows: Of each decided token, which of them is the one before it.
        chance: What the rule will add to the target's scores behind that root, if anything.
        deep: What enters the layers that the heads asked for, side by side. [n, taps · hidden]
        ridden: The target's best token behind every row that rode beside the tree, in their order.
    """

    token_ids: Sequence[int]
    states: Tensor
    rows: Sequence[int] = (-1,)
    chance: Chance | None = None
    deep: Tensor | None = None
    ridden: Sequence[int] = ()

    @property
    def hidden(self) -> Tensor:
        """The state before the next root. [hidden]"""
        return self.states[self.rows[-1]]
