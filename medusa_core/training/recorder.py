"""Records a target's states while it writes an answer, so that they needn't be recomputed."""

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
    """A drafter that drafts nothing and records the target's state of every token."""

    def __init__(self) -> None:
        """Prepare for one answer."""
        self._parts: list[Tensor] = []
        self._has_started = False

    def resume(self, token_ids: Sequence[int], memory: SourceMemory) -> int:
        """Reuse nothing: states of all tokens are wanted."""
        return 0

    def read(self, place: int, states: Tensor, deep: Tensor | None) -> None:
        """Record states of the prompt."""
        self._parts.append(_concatenated(states, deep))

    def observe(self, observation: Observation) -> None:
        """Record states of accepted tokens."""
        if self._has_started:  # the prompt's last state is observed again with the first token
            self._parts.append(_concatenated(observation.states, observation.deep))
        self._has_started = True

    def states(self) -> Tensor:
        """Return all states in token order. bfloat16 [n, (1 + taps) · hidden]

        Layers that were tapped during the answer are left out.
        """
        width = min(part.shape[1] for part in self._parts)
        return torch.cat([part[:, :width] for part in self._parts])

    def spec(self) -> DrafterSpec:
        """Return the drafter to write the answer with."""
        return DrafterSpec(
            DrafterChoice("recorder", "Recorder", "Keeps states.", drafts=False),
            serves=_serves,
            build=lambda _, __: self,
            preference=100,
        )


def _serves(_: Target) -> bool:
    """Return that any target can be recorded."""
    return True


def _concatenated(states: Tensor, deep: Tensor | None) -> Tensor:
    """Concatenate final states and tapped inputs. bfloat16 [n, (1 + taps) · hidden]"""
    whole = states if deep is None else torch.cat([states, deep], dim=1)
    return whole.to("cpu", torch.bfloat16)
