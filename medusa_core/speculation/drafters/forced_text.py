"""Draft text that a grammar forces, as another source of every grown tree.

The text is certain, its tokenization isn't: the target may generate it as other tokens.
"""

from __future__ import annotations

from array import array

from medusa_core.messages import SourceInfo
from medusa_core.models.text.grammar import Grammar
from medusa_core.speculation.drafters.source import Candidates, Paths, source_registry

_CHANCE = 0.9  # 0.8 to 0.95 give the same tokens per step
GRAMMAR = SourceInfo(
    name="grammar",
    label="grammar",
    badge="grammar",
    explanation="what the answer's grammar demands there",
    colours=("indigo",),
    line="dot",
)


class ForcedText:
    """Candidates forced by the answer's grammar, if it has one; see `CandidateSource`."""

    def __init__(self, grammar: Grammar | None) -> None:
        self._grammar = grammar

    def candidates(self, paths: Paths) -> Candidates | None:
        """Tokens that the grammar forces after each path, equally likely ones."""
        if self._grammar is None:
            return None
        found = [self._grammar.forced(paths.path(index)) for index in range(paths.num)]
        token_ids = array("i", [token_id for forced in found for token_id in forced])
        chances = array("f", [_CHANCE / len(forced) for forced in found for _ in forced])
        return Candidates(token_ids, chances, array("i", map(len, found)))


def source_infos() -> tuple[SourceInfo, ...]:
    """Registered sources, and grammars."""
    return (*(spec.info for spec in source_registry().specs), GRAMMAR)
