"""The drafter of plain decoding: trees of one node."""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.messages import TARGET, DrafterChoice
from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.runtime.tree.step import (
    Proposal,
)
from medusa_core.speculation.drafters.drafter import DrafterSpec
from medusa_core.speculation.drafters.observation import Observation


class NoDrafter:
    """Proposes the root alone."""

    _SHAPE = TreeShape.root_only()

    def begin(self, token_ids: Sequence[int]) -> None:
        """Do nothing: there is no state."""

    def propose(self, root_id: int, max_rows: int, grammar: Grammar | None = None) -> Proposal:
        """Propose a tree of the root alone."""
        return Proposal(TokenTree(self._SHAPE, (root_id,)), (TARGET,))

    def observe(self, observation: Observation) -> None:
        """Do nothing: there is no state."""

    def truncate(self, length: int) -> None:
        """Do nothing: there is no state."""


SPEC = DrafterSpec(
    DrafterChoice("none", "None (plain)", "No drafts: one token per step.", drafts=False),
    serves=lambda _: True,
    build=lambda _, __: NoDrafter(),
    preference=90,
)
