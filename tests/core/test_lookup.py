"""Prompt lookup, alone and beside the heads."""

from array import array
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from medusa_core.loading.target import Target
from medusa_core.messages import TARGET, GenerateSettings, TokenSource
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.drafter import Drafter
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import Paths
from medusa_core.speculation.drafters.sources.lookup_source import (
    LookupSource,
    matches_in,
)
from tests.core.conftest import LoadTarget
from tests.core.laws import decode, plainly, user_says

TOKENS = st.lists(st.integers(0, 5), min_size=1, max_size=60)
HIDDEN = torch.zeros(1)
BOTH = "medusa+ngram"


def ngram_of(target: Target, num_rows: int) -> Drafter:
    return drafter_registry().get("ngram").build(target, RowBudget(num_rows))


def naive(ids: list[int], depth: int) -> set[tuple[int, ...]]:
    """All continuations of all suffixes of up to four tokens, by looking everywhere."""
    found = set()
    for length in range(1, 5):
        suffix = ids[len(ids) - length :]
        for start in range(len(ids) - length):
            if ids[start : start + length] == suffix and len(suffix) == length:
                found.add(tuple(ids[start + length : start + length + depth]))
    return found


@given(TOKENS, st.integers(1, 6))
def test_continuations_are_those_that_are_there(ids: list[int], depth: int) -> None:
    everything = naive(ids, depth)
    found = [one.token_ids for one in matches_in(array("i", ids), depth)]
    assert set(found) <= everything
    assert bool(found) == bool(everything)
    assert len(set(found)) == len(found) <= 3


def test_longer_suffixes_come_first_and_later_places_before_earlier() -> None:
    text = array("i", [1, 2, 3, 9, 7, 3, 5, 8, 3, 6, 1, 2, 3])
    found = matches_in(text, 1)
    assert found == [((9,), 3), ((6,), 1), ((5,), 1)]
    assert matches_in(text, 0) == []


@given(TOKENS, st.integers(0, 60))
def test_a_cut_text_is_as_if_it_had_never_been_longer(ids: list[int], length: int) -> None:
    cut, short = LookupSource(), LookupSource()
    cut.begin(ids[:7])
    cut.observe(Observation(ids[7:], HIDDEN[None]))
    cut.truncate(length)
    short.begin(ids[:length])
    root = Paths(1, 0, array("i"))
    for source in (cut, short):
        source.start(0, 8)
    assert cut.candidates(root) == short.candidates(root)


def test_what_has_held_is_likelier_to_hold_on() -> None:
    source = LookupSource()
    source.begin([5, 1, 2, 3, 5])
    source.start(5, 8)
    output = [source.candidates(Paths(1, n, array("i", [1, 2, 3, 5][:n]))) for n in range(4)]
    chances = [one.chances[0] for one in output if one is not None]
    assert chances[0] == pytest.approx(0.15)
    assert chances[1:] == pytest.approx([0.15**0.5] * 3)
    assert source.candidates(Paths(1, 1, array("i", [4]))) == (
        array("i"),
        array("f"),
        array("i", [0]),
    )


# Drafters -----------------------------------------------------------------------------------------


def test_repeated_text_is_drafted_and_decided_in_few_steps(load: LoadTarget) -> None:
    target = load("grouped", "float64")
    settings = GenerateSettings(drafter="ngram", max_new_tokens=60, repetition_penalty=0.3)
    plain = decode(target, plainly(settings), user_says("again"))
    drafted = decode(target, settings, user_says("again"))
    assert drafted.token_ids == plain.token_ids
    assert drafted.done.num_steps < plain.done.num_steps
    accepted = {s.drafter for step in drafted.steps for s in step.sources} - {"target"}
    assert accepted == {"ngram"}


def test_trust_is_learned_of_what_was_offered_last(tiny: Target) -> None:
    text = [1, 2, 1, 2, 1]

    def promised(*decided: int) -> float:
        """By a drafter that saw these tokens decided, then a text like the first one."""
        drafter = ngram_of(tiny, 2)
        drafter.begin(text)
        for token_id in decided:
            drafter.propose(text[-1], 2)
            drafter.observe(Observation([token_id], HIDDEN[None]))
        drafter.observe(Observation([7, 1, 2, 1], HIDDEN[None]))  # nothing was offered since
        return drafter.propose(1, 2).promised

    assert promised(7) < promised() < promised(2)
    cut = ngram_of(tiny, 2)
    cut.begin(text)
    before = cut.propose(1, 2).promised
    cut.truncate(4)
    cut.observe(Observation([1], HIDDEN[None]))  # what was offered belonged to what is cut
    assert cut.propose(1, 2).promised == before
    cut.observe(Observation([7], HIDDEN[None]))
    cut.begin(text)
    assert cut.propose(1, 2).promised == before  # another answer: nothing is known of it


def test_without_a_match_nothing_is_drafted(tiny: Target) -> None:
    drafter = ngram_of(tiny, 8)
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


def test_the_merge_keeps_the_budget_and_credits_both(composite: Drafter, tiny: Target) -> None:
    assert tiny.heads is not None
    hidden = torch.randn(tiny.config.hidden_size, dtype=torch.float64)
    first = tiny.heads.ranked(hidden, 0, [1]).token_ids[0][0]
    # The lookup will say what the first head says, and then something of its own.
    composite.begin([7, 8, 9, first, 300, 7, 8])
    composite.observe(Observation([9], hidden[None]))
    proposal = composite.propose(9, 10)
    assert proposal.tree.shape.num_nodes == 10
    assert proposal.sources[0] == TARGET
    place = proposal.tree.token_ids.index(first)
    assert proposal.sources[place] == TokenSource(BOTH, 1)
    drafters = {source.drafter for source in proposal.sources[1:]}
    assert drafters == {BOTH, "medusa", "ngram"}
    depths = proposal.tree.shape.depths
    assert all(s.head == d for s, d in zip(proposal.sources[1:], depths[1:], strict=True))
    # A trace tells how likely each was: as the heads say, or the lookup where that is surer.
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


def test_before_a_state_is_known_the_lookup_drafts_alone(composite: Drafter) -> None:
    composite.begin([5, 6, 5])
    proposal = composite.propose(5, 10)
    assert proposal.tree.token_ids == (5, 6, 5)
    assert {source.drafter for source in proposal.sources[1:]} == {"ngram"}
    assert proposal.guesses == ()
