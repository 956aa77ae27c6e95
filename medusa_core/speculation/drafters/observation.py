"""Observations of decided tokens, for drafters and their sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from medusa_core.runtime.tree.step import Chance


class Observation(NamedTuple):
    """Tokens decided in a step or in prefill, with the target's hidden states.

    Attributes:
        token_ids: The decided tokens, the next root last.
        states: The target's final hidden states. [n, hidden]
        rows: Row of the token before each decided token.
        chance: The rule's noise and filters after the next root, if any.
        deep: Inputs of the tapped layers, concatenated. [n, taps · hidden]
        ridden: The target's most likely token after each rider; see `Proposal.riders`.
    """

    token_ids: Sequence[int]
    states: Tensor
    rows: Sequence[int] = (-1,)
    chance: Chance | None = None
    deep: Tensor | None = None
    ridden: Sequence[int] = ()

    @property
    def hidden(self) -> Tensor:
        """Hidden state of the token before the next root. [hidden]"""
        return self.states[self.rows[-1]]


class LastObservation:
    """Base of drafters and sources that only read the last observation of an answer."""

    _seen: Observation | None = None

    def begin(self, token_ids: Sequence[int]) -> None:
        """Start an answer; nothing is drafted before its first observation."""
        self._seen = None

    def observe(self, observation: Observation) -> None:
        """Keep an observation in place of the one before."""
        self._seen = observation

    def truncate(self, length: int) -> None:
        """Forget the observation: its state is of the row before the root, which is dropped."""
        self._seen = None
