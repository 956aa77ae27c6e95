"""Grammar filter: forbidden candidates never enter a tree."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from medusa_core.models.text.grammar import Grammar
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.runtime.tree.step import ForbiddenToken
from medusa_core.speculation.drafters.source import Candidates, CandidateSource, Paths


class FilledTree(NamedTuple):
    """A tree shape filled with ranked tokens.

    Attributes:
        tree: The tree.
        places: Index of every draft node's token among all ranked tokens.
    """

    tree: TokenTree
    places: tuple[int, ...]


class GrammarFilter:
    """Drops candidates of one step that the grammar forbids.

    Attributes:
        forbidden: The dropped tokens.
    """

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        self._known: dict[tuple[int, ...], dict[int, bool]] = {}
        self.forbidden: list[ForbiddenToken] = []

    def allows(self, path: tuple[int, ...], token_ids: Sequence[int]) -> list[bool]:
        """Whether the grammar allows each token after an allowed path."""
        known = self._known.setdefault(path, {})
        new = [token_id for token_id in token_ids if token_id not in known]
        known.update(zip(new, self._grammar.allows(path, new), strict=True))
        return [known[token_id] for token_id in token_ids]

    def keep(self, paths: Paths, candidates: Candidates) -> Candidates:
        """The allowed candidates, with unchanged probabilities."""
        token_ids, chances, counts = array("i"), array("f"), array("i")
        start = 0
        for index in range(paths.num):
            size = len(candidates.token_ids)
            if candidates.counts is not None:
                size = candidates.counts[index]
            own = slice(start, start + size)
            start += 0 if candidates.counts is None else size
            path = paths.path(index)
            offered, likely = candidates.token_ids[own], candidates.chances[own]
            before = len(token_ids)
            for token_id, chance, is_allowed in zip(
                offered, likely, self.allows(path, offered), strict=True
            ):
                if is_allowed:
                    token_ids.append(token_id)
                    chances.append(chance)
                else:
                    self.forbidden.append(ForbiddenToken(path, token_id, chance))
            counts.append(len(token_ids) - before)
        return Candidates(token_ids, chances, counts)

    def fill(
        self,
        root_id: int,
        shape: TreeShape,
        ranked: Sequence[Sequence[int]],
        chances: Sequence[float],
    ) -> FilledTree:
        """Fill a shape: the r-th child of a node gets the r-th token that is allowed there.

        Args:
            root_id: The decided token at the root.
            shape: The shape; nodes without an allowed token are dropped with their descendants.
            ranked: Tokens of every head, best first, equally many of each.
            chances: Their probabilities, one head after the other.
        """
        num_ranks = len(ranked[0])
        token_paths: dict[int, tuple[int, ...]] = {0: ()}
        allowed: dict[tuple[int, ...], list[int]] = {}  # ranks
        token_ids, places = [root_id], []
        for node, (head, rank) in enumerate(shape.places, start=1):
            token_ids.append(root_id)
            path = token_paths.get(shape.parents[node])
            if path is None:
                continue
            if path not in allowed:
                likely = chances[head * num_ranks : (head + 1) * num_ranks]
                allowed[path] = self._ranks(path, ranked[head], likely)
            if rank < len(allowed[path]):
                place = allowed[path][rank]
                token_ids[node] = ranked[head][place]
                token_paths[node] = (*path, token_ids[node])
                places.append(head * num_ranks + place)
        tree = TokenTree(shape, tuple(token_ids)).only(tuple(token_paths))
        return FilledTree(tree, tuple(places))

    def _ranks(
        self, path: tuple[int, ...], token_ids: Sequence[int], chances: Sequence[float]
    ) -> list[int]:
        """Indices of the tokens that are allowed after a path."""
        each = self.allows(path, token_ids)
        self.forbidden += (
            ForbiddenToken(path, token_id, chance)
            for token_id, chance, is_allowed in zip(token_ids, chances, each, strict=True)
            if not is_allowed
        )
        return [rank for rank, is_allowed in enumerate(each) if is_allowed]


class _ConstrainedSource:
    """A source in one step, without forbidden candidates."""

    def __init__(self, source: CandidateSource, allowed: GrammarFilter) -> None:
        self._source, self._allowed = source, allowed

    def candidates(self, paths: Paths) -> Candidates | None:
        """Candidates of the wrapped source that the grammar allows."""
        found = self._source.candidates(paths)
        return None if found is None else self._allowed.keep(paths, found)


def constrained(
    sources: Sequence[CandidateSource], allowed: GrammarFilter | None
) -> Sequence[CandidateSource]:
    """The sources of one step, without the candidates that a filter drops."""
    if allowed is None:
        return sources
    return [_ConstrainedSource(source, allowed) for source in sources]
