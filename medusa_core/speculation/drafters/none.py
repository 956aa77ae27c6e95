"""The drafter of plain decoding: trees of one node."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.loading.target import Target
from medusa_core.messages import TARGET, DrafterChoice
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import (
    Proposal,
    RowBudget,
)
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.observation import Observation


class NoDrafter:
    """Proposes the root alone."""

    _SHAPE = TreeShape.root_only()

    def begin(self, token_ids: Sequence[int]) -> None:
        """Do nothing."""

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        return Proposal(TokenTree(self._SHAPE, (root_id,)), (TARGET,))

    def observe(self, observation: Observation) -> None:
        """Do nothing."""

    def truncate(self, length: int) -> None:
        """Do nothing."""


def _serves(_: Target) -> bool:
    return True


def _build(_: Target, __: RowBudget) -> NoDrafter:
    return NoDrafter()


SPEC = DrafterSpec(
    DrafterChoice("none", "None (plain)", "No guesses: one token per step.", drafts=False),
    serves=_serves,
    build=_build,
    preference=90,
)
