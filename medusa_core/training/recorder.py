"""Keeps the states that a target has while it writes an answer: nobody computes them again."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.loading.target import Target
from medusa_core.messages import DrafterChoice
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.none import NoDrafter
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import SourceMemory


class StatesRecorder(NoDrafter):
    """A drafter that guesses nothing and keeps the target's state of every token."""

    def __init__(self) -> None:
        """Make one for one answer."""
        self._parts: list[Tensor] = []
        self._has_started = False

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        return 0

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        self._parts.append(_side_by_side(states, deep))

    def observe(self, observation: Observation) -> None:
        if self._has_started:  # the prompt's last state, told with the first token, was read
            self._parts.append(_side_by_side(observation.states, observation.deep))
        self._has_started = True

    def states(self) -> Tensor:
        """All states so far, in the order of the tokens. bfloat16 [n, (1 + taps) · hidden]

        Of layers that the runner began to tell of in the meantime nothing is kept.
        """
        width = min(part.shape[1] for part in self._parts)
        return torch.cat([part[:, :width] for part in self._parts])

    def spec(self) -> DrafterSpec:
        """This one as what an answer is written with."""
        return DrafterSpec(
            DrafterChoice("recorder", "Recorder", "Keeps states.", drafts=False),
            serves=_serves,
            build=lambda _, __: self,
            preference=100,
        )


def _serves(_: Target) -> bool:
    return True


def _side_by_side(states: Tensor, deep: Tensor | None) -> Tensor:
    whole = states if deep is None else torch.cat([states, deep], dim=1)
    return whole.to("cpu", torch.bfloat16)
