"""What a grammar leaves of the candidates of several paths."""

from array import array
from collections.abc import Mapping, Sequence

from medusa_core.models.text.grammar import Grammar
from medusa_core.speculation.drafters.constrained import GrammarFilter
from medusa_core.speculation.drafters.source import Candidates, Paths


class ListedGrammar(Grammar):
    """Allows after each path the tokens that are listed for it."""

    def __init__(self, allowed: Mapping[tuple[int, ...], set[int]]) -> None:
        self._allowed = allowed

    def allows(self, path: Sequence[int], token_ids: Sequence[int]) -> list[bool]:
        return [token_id in self._allowed[tuple(path)] for token_id in token_ids]


def test_each_path_keeps_its_own_allowed_candidates() -> None:
    grammar_filter = GrammarFilter(ListedGrammar({(1,): {5, 7}, (2,): {6, 8}}))
    offered = Candidates(
        array("i", [5, 6, 7, 8]), array("f", [0.5, 0.25, 0.75, 0.125]), array("i", [2, 2])
    )
    kept = grammar_filter.keep(Paths(2, 1, array("i", [1, 2])), offered)
    assert kept.counts is not None
    assert kept.token_ids.tolist() == [5, 8]
    assert kept.chances.tolist() == [0.5, 0.125]
    assert kept.counts.tolist() == [1, 1]
    assert [(guess.path, guess.token_id) for guess in grammar_filter.forbidden] == [
        ((1,), 6),
        ((2,), 7),
    ]


def test_the_grammar_filters_candidates_of_every_path_by_that_path() -> None:
    grammar_filter = GrammarFilter(ListedGrammar({(1,): {5}, (2,): {5, 6}}))
    offered = Candidates(array("i", [5, 6]), array("f", [0.5, 0.25]))
    kept = grammar_filter.keep(Paths(2, 1, array("i", [1, 2])), offered)
    assert kept.counts is not None
    assert kept.token_ids.tolist() == [5, 5, 6]
    assert kept.chances.tolist() == [0.5, 0.5, 0.25]
    assert kept.counts.tolist() == [1, 2]
