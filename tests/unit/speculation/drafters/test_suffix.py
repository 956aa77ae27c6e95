"""The suffix tree as a source: alone and beside the heads."""

from __future__ import annotations

from array import array
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from medusa_core.loading.target import Target
from medusa_core.messages import TARGET, GenerateSettings, TokenSource
from medusa_core.models.datastore.folder_texts import FolderTexts
from medusa_core.models.datastore.suffix_array import DEPTH, Found, SuffixArray
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters import grown
from medusa_core.speculation.drafters.drafter import Drafter
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import Paths
from medusa_core.speculation.drafters.sources.suffix_source import SuffixSource
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import decode, plainly, user_says

TOKENS = st.lists(st.integers(0, 5), min_size=1, max_size=60)
HIDDEN = torch.zeros(1)
BOTH = "medusa+suffix"


def suffix_of(target: Target, num_rows: int) -> Drafter:
    return drafter_registry().get("suffix").build(target, RowBudget(num_rows))


def begun(*token_ids: int) -> SuffixSource:
    """Return the source of a text, queried for its continuation."""
    source = SuffixSource(None)
    source.begin(token_ids)
    source.start(token_ids[-1], 8)
    return source


def candidates_after(source: SuffixSource, *paths: tuple[int, ...]) -> list[dict[int, float]]:
    """Return its candidates for the paths of one level."""
    flat = array("i", [token_id for path in paths for token_id in path])
    found = source.candidates(Paths(len(paths), len(paths[0]), flat))
    if found is None:
        return [{} for _ in paths]
    assert found.counts is not None
    parts, at = [], 0
    for count in found.counts:
        own = slice(at, at + count)
        parts.append(dict(zip(found.token_ids[own], found.chances[own], strict=True)))
        at += count
    return parts


@given(TOKENS, st.integers(0, 60))
def test_a_truncated_text_equals_one_that_was_never_longer(ids: list[int], length: int) -> None:
    cut, short = SuffixSource(None), SuffixSource(None)
    cut.begin(ids[:7])
    cut.observe(Observation(ids[7:], HIDDEN[None]))
    cut.truncate(length)
    short.begin(ids[:length])
    found = []
    for source in (cut, short):
        source.start(0, 8)
        found.append(candidates_after(source, ())[0].keys())
    assert found[0] == found[1]


def test_while_drafting_is_paused_nothing_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[int] = []
    search = SuffixArray.search

    def count(self: SuffixArray, tail: array[int]) -> Found:
        searched.append(len(self))
        return search(self, tail)

    monkeypatch.setattr(SuffixArray, "search", count)
    source, text = begun(1, 2, 3), [4, 5, 9, 1, 2]
    for token_id in text:
        source.observe(Observation([token_id], HIDDEN[None]))
    assert not searched
    assert candidates_after(source, ())[0].keys() == {3}  # and of all of it afterwards
    assert searched == [3 + len(text)]
    source.observe(Observation([3], HIDDEN[None]))  # what was drafted is learned from
    assert len(searched) == 1


def test_decided_tokens_are_observed_without_changing_torchs_threads(
    tiny: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    drafter = suffix_of(tiny, 8)
    drafter.begin([1, 2, 3, 1])
    monkeypatch.setattr(grown, "between_passes", None)  # it takes longer than all the rest
    drafter.observe(Observation([2], HIDDEN[None]))
    monkeypatch.undo()
    assert drafter.propose(2, 8).tree.token_ids[:2] == (2, 3)


def test_other_texts_continue_a_path_with_a_longer_match(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("12345")
    folder = FolderTexts(tmp_path, lambda text: [ord(one) - ord("0") for one in text], 256)
    folder.wait()
    source = SuffixSource(None, folder)
    source.begin([9, 3, 7, 1, 2, 3])
    assert candidates_after(source, ())[0].keys() == {4}, (
        "three tokens match there, and one in the text"
    )
    assert candidates_after(source, (4,))[0].keys() == {5}
    source.begin([9, 3, 7, 1, 2, 3])
    source.recall([[0, 1], [7, 1, 2, 3, 6, 8]])
    assert candidates_after(source, ())[0].keys() == {6}
    source.begin([9, 3])
    assert candidates_after(source, ())[0].keys() == {4}, "what was left out is of one answer"


def test_a_path_continues_like_its_occurrences() -> None:
    source = begun(1, 2, 3, 4, 5, 9, 1, 2, 3, 7, 5, 8, 1, 2, 3)
    assert candidates_after(source, ())[0].keys() == {4, 7}
    four, seven = candidates_after(source, (4,), (7,))
    assert (four.keys(), seven.keys()) == ({5}, {5})
    assert candidates_after(source, (4, 5), (7, 5), (7, 6))[0].keys() == {9}
    assert four[5] > candidates_after(begun(1, 2, 3, 4, 5, 9, 2, 3), ())[0][4], (
        "of a longer context"
    )


def test_any_drafters_path_is_continued_if_it_occurs_in_the_text() -> None:
    source = begun(1, 2, 3, 4, 5, 6, 7, 2, 3)
    assert candidates_after(source, ())[0].keys() == {4}
    found = candidates_after(source, (9,), (4,), (8,))
    assert [one.keys() for one in found] == [set(), {5}, set()]
    assert candidates_after(source, (9, 9)) == [{}]


def test_no_context_is_longer_than_the_maximum_depth() -> None:
    source = begun(*range(100), *range(50))
    path: tuple[int, ...] = ()
    for token_id in range(50, 50 + DEPTH):
        (found,) = candidates_after(source, path)
        assert found.keys() == {token_id}
        path = (*path, token_id)
    assert candidates_after(source, path) == [{}]


# Drafters -----------------------------------------------------------------------------------------


def test_repeated_text_is_drafted_and_decoded_in_few_steps(load: LoadTarget) -> None:
    target = load("grouped", "float64")
    settings = GenerateSettings(drafter="suffix", max_new_tokens=60, repetition_penalty=0.3)
    plain = decode(target, plainly(settings), user_says("again"))
    drafted = decode(target, settings, user_says("again"))
    assert drafted.token_ids == plain.token_ids
    assert drafted.done.num_steps < plain.done.num_steps
    accepted = {s.drafter for step in drafted.steps for s in step.sources} - {"target"}
    assert accepted == {"suffix"}


def test_probabilities_are_learned_from_accepted_continuations(tiny: Target) -> None:
    text = [1, 2, 1, 2, 1]

    def promised(*decided: int) -> float:
        """Return the expected gain of a drafter that observed these tokens, and then a text like
        the first one.
        """
        drafter = suffix_of(tiny, 2)
        drafter.begin(text)
        for token_id in decided:
            drafter.observe(Observation([token_id], HIDDEN[None]))
        drafter.observe(Observation([5, 3, 1, 2, 1], HIDDEN[None]))
        return drafter.propose(1, 2).expected_accepted

    assert promised(7) < promised(2)
    again = suffix_of(tiny, 2)
    again.begin(text)
    before = again.propose(1, 2).expected_accepted
    again.observe(Observation([7], HIDDEN[None]))
    again.begin(text)
    assert again.propose(1, 2).expected_accepted == before  # another answer: nothing is known of it


def test_without_a_match_nothing_is_drafted(tiny: Target) -> None:
    drafter = suffix_of(tiny, 8)
    drafter.begin([1, 2, 3])
    drafter.observe(Observation([4], HIDDEN[None]))
    assert drafter.propose(4, 8).tree.token_ids == (4,)
    drafter.observe(Observation([1], HIDDEN[None]))
    assert drafter.propose(1, 8).tree.token_ids == (1, 2, 3, 4, 1)
    assert drafter.propose(1, 3).tree.token_ids == (1, 2, 3)
    assert drafter.propose(1, 1).tree.token_ids == (1,)


@pytest.fixture
def composite(tiny: Target) -> Drafter:
    return drafter_registry().get("composite").build(replace(tiny, phrases=None), RowBudget(10))


def test_merged_sources_keep_the_budget_and_are_both_credited(
    composite: Drafter, tiny: Target
) -> None:
    assert tiny.heads is not None
    hidden = torch.randn(tiny.config.hidden_size, dtype=torch.float64)
    first = tiny.heads.ranked(hidden, 0, [1]).token_ids[0][0]
    # The suffixes will say what the first head says, and then something of their own.
    composite.begin([7, 8, 9, first, 300, 7, 8])
    composite.observe(Observation([9], hidden[None]))
    proposal = composite.propose(9, 10)
    assert proposal.tree.shape.num_nodes == 10
    assert proposal.sources[0] == TARGET
    place = proposal.tree.token_ids.index(first)
    assert proposal.sources[place] == TokenSource(BOTH, 1)
    drafters = {source.drafter for source in proposal.sources[1:]}
    assert drafters == {BOTH, "medusa", "suffix"}
    depths = proposal.tree.shape.depths
    assert all(s.head == d for s, d in zip(proposal.sources[1:], depths[1:], strict=True))
    # A trace tells how likely each was: as the heads say, or the suffixes where they are surer.
    chances = tiny.heads.logits(hidden, 9, tiny.heads.num_heads).float().softmax(dim=-1)
    reported = proposal.odds().of_drafts(9)
    nodes = zip(reported, proposal.sources[1:], proposal.tree.token_ids[1:], strict=True)
    for chance, source, token_id in nodes:
        by_heads = float(chances[source.head - 1, token_id]) if source.head <= len(chances) else 0.0
        assert chance is not None
        if source.drafter == "medusa":
            assert chance == pytest.approx(by_heads, rel=1e-4)
        else:
            assert chance >= by_heads * 0.9999


def test_before_the_first_hidden_state_only_the_suffix_drafts(composite: Drafter) -> None:
    composite.begin([5, 6, 5])
    proposal = composite.propose(5, 10)
    assert proposal.tree.token_ids[:3] == (5, 6, 5)
    assert {source.drafter for source in proposal.sources[1:]} == {"suffix"}
    assert proposal.top_tokens == ()
