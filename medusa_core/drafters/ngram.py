"""Prompt lookup: what followed the same words before may follow them again.

Looks for the longest suffix of the text, prompt and answer, that occurred before, and offers what
came behind it; the latest occurrences come first, and different ones branch.

Source: prompt lookup decoding (Saxena 2023); REST (He et al. 2024), section 3, for the trie.
"""

from __future__ import annotations

from collections.abc import Sequence

from medusa_core.drafters.lookup import Lookup, form_of
from medusa_core.engine.drafter import DrafterSpec, Observation
from medusa_core.native.merge import NO_GUESSES
from medusa_core.target import Target
from medusa_core.tree.shape import TokenTree
from medusa_core.types import Proposal


class NgramDrafter:
    """Offers continuations of earlier occurrences as a tree."""

    def __init__(self, num_rows: int) -> None:
        self._num_rows = num_rows
        self._lookup = Lookup(num_rows)

    def begin(self, token_ids: Sequence[int]) -> None:
        self._lookup.begin(token_ids)

    def propose(self, root_id: int, max_rows: int) -> Proposal:
        merged = self._lookup.merge(NO_GUESSES, min(self._num_rows, max_rows))
        shape, sources = form_of(merged.form)
        return Proposal(TokenTree(shape, (root_id, *merged.token_ids)), sources)

    def observe(self, observation: Observation) -> None:
        self._lookup.learn(observation.token_ids)
        self._lookup.extend(observation.token_ids)

    def truncate(self, length: int) -> None:
        self._lookup.truncate(length)


def _serves(_: Target) -> bool:
    return True


def _build(_: Target, num_rows: int) -> NgramDrafter:
    return NgramDrafter(num_rows)


# How often what is offered is right, where something is offered.
_WORTH = ((0.4, 0.08), (0.7, 0.05), (0.75,), (0.8,), (0.8,), (0.8,))

SPEC = DrafterSpec("ngram", serves=_serves, build=_build, worth=lambda _: _WORTH)
