"""Prompt lookup, and its merge with the heads, whoever merges."""

import random
from array import array
from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from medusa_core.drafters.composite import SPEC
from medusa_core.drafters.drafter import Drafter, Observation
from medusa_core.drafters.grown import GrownDrafter, form_of
from medusa_core.drafters.lookup import Lookup
from medusa_core.drafters.merge import (
    NO_GUESSES,
    NO_TRUST,
    Guesses,
    Known,
    Merge,
    Merged,
    merger,
    search,
)
from medusa_core.messages import NO_ODDS, TARGET, GenerateSettings, TokenSource
from medusa_core.target import Target
from medusa_core.tree.lookup import DEEPEST, LONGEST_SUFFIX, continuations
from medusa_core.types import RowBudget
from tests.core.conftest import LoadTarget
from tests.core.drafts import guesses_of, trust_of
from tests.core.laws import decode, plainly, user_says

TOKENS = st.lists(st.integers(0, 5), min_size=1, max_size=60)
HIDDEN = torch.zeros(1)
TRUST = Lookup().trust
BOTH = "medusa+ngram"


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
    found = [one.token_ids for one in continuations(array("i", ids), TRUST, depth)]
    assert set(found) <= everything
    assert bool(found) == bool(everything)
    assert len(set(found)) == len(found) <= 3


def test_longer_suffixes_come_first_and_later_places_before_earlier() -> None:
    text = array("i", [1, 2, 3, 9, 7, 3, 5, 8, 3, 6, 1, 2, 3])
    found = continuations(text, TRUST, 1)
    assert found == [((9,), 3), ((6,), 1), ((5,), 1)]
    assert continuations(text, TRUST, 1, least=TRUST[0]) == found[:1]
    assert continuations(text, TRUST, 0) == []


@given(TOKENS, st.integers(0, 60))
def test_a_cut_text_is_as_if_it_had_never_been_longer(ids: list[int], length: int) -> None:
    cut, short = Lookup(), Lookup()
    cut.begin(ids[:7])
    cut.extend(ids[7:])
    cut.truncate(length)
    short.extend(ids[:length])
    assert (cut.text, cut.trust) == (short.text, short.trust)


def test_trust_follows_what_was_right() -> None:
    lookup = Lookup()
    of_three = 2 * DEEPEST
    before = lookup.trust[of_three]
    for is_right, compare in ((False, float.__lt__), (True, float.__gt__)):
        for _ in range(8):
            lookup.learn(3, is_right)
        after = lookup.trust[of_three]
        assert compare(after, before)
        before = after
    for suffix in range(LONGEST_SUFFIX):
        row = lookup.trust[suffix * DEEPEST : (suffix + 1) * DEEPEST].tolist()
        assert row == pytest.approx([row[0] ** (1 + depth / 2) for depth in range(DEEPEST)])
    lookup.begin([1, 2])
    assert lookup.trust == TRUST


# Merging ------------------------------------------------------------------------------------------


def mergers(num_rows: int) -> list[Merge]:
    return [merger(RowBudget(num_rows)), search]


def nodes_of(merged: Merged) -> dict[tuple[int, ...], tuple[TokenSource, int]]:
    """Every draft by the tokens down to it: who proposed it, and its place among the guesses."""
    form = form_of(merged.form)
    paths: list[tuple[int, ...]] = [()]
    nodes = {}
    parents, sources = form.shape.parents[1:], form.sources[1:]
    drafts = zip(parents, merged.token_ids, sources, merged.places, strict=True)
    for parent, token_id, source, place in drafts:
        paths.append((*paths[parent], token_id))
        nodes[paths[-1]] = source, place
    assert len(nodes) == len(parents), "no two nodes are alike"
    return nodes


def worths_of(
    guesses: Guesses, text: "array[int]", trust: "array[float]", num_rows: int
) -> dict[tuple[int, ...], float]:
    """All that either proposes, by looking everywhere."""
    worths: dict[tuple[int, ...], float] = {(): 1.0}
    ranks = guesses.num_ranks
    for head in range(len(guesses.token_ids) // ranks):
        for path, worth in list(worths.items()):
            if len(path) == head:
                for place in range(head * ranks, (head + 1) * ranks):
                    worths[*path, guesses.token_ids[place]] = worth * guesses.chances[place]
    del worths[()]
    given = sorted(worths.values(), reverse=True)
    least = given[num_rows - 2] if len(given) >= num_rows - 1 > 0 else 0.0
    for token_ids, suffix in continuations(text, trust, num_rows - 1, least):
        for depth in range(1, len(token_ids) + 1):
            worth = trust[(suffix - 1) * DEEPEST + depth - 1]
            worths[token_ids[:depth]] = max(worth, worths.get(token_ids[:depth], 0.0))
    return worths


@pytest.mark.parametrize("num_heads", [0, 1, 3])
@pytest.mark.parametrize("num_rows", [1, 2, 3, 8, 40])
@pytest.mark.parametrize("num_tokens", [4, 9])
def test_a_merged_tree_holds_the_most_valuable_of_both(
    num_heads: int, num_rows: int, num_tokens: int
) -> None:
    rng = random.Random(100 * num_heads + 10 * num_rows + num_tokens)
    seen = set()
    for _ in range(400):
        guesses = guesses_of(rng, num_heads, 4, num_tokens)
        text = array("i", [rng.randrange(num_tokens) for _ in range(rng.randrange(60))])
        trust = trust_of(rng)
        known = Known(guesses, text, trust)
        merged, same = (merge(known, num_rows) for merge in mergers(num_rows))
        assert merged == same
        nodes = nodes_of(merged)
        worths = worths_of(guesses, text, trust, num_rows)
        assert len(nodes) == min(num_rows - 1, len(worths))
        left = [worth for path, worth in worths.items() if path not in nodes]
        assert not left or not nodes or min(worths[path] for path in nodes) >= max(left) * 0.99999
        form = form_of(merged.form)
        for path, (source, place) in nodes.items():
            assert source.head == len(path)
            assert (place < 0) == (source.drafter == "ngram")
            assert place < 0 or guesses.token_ids[place] == path[-1]
            seen.add(source.drafter)
        paths = [(), *nodes]
        for children in form.shape.children:
            row = [worths[paths[child]] for child in children]
            assert all(left >= right * 0.99999 for left, right in pairwise(row))
    everyone = {"ngram"} if num_heads == 0 else {"medusa", "ngram", BOTH}
    assert seen == (everyone if num_rows > 1 else set())


def test_of_equals_the_heads_come_first_and_then_what_occurred_last() -> None:
    text, trust = array("i", [7, 1, 7, 2, 7, 3, 7]), array("f", [0.5] * 24)
    guesses = Guesses(array("i", [9]), array("f", [0.5]), 1)
    for merge in mergers(8):
        assert merge(Known(guesses, text, trust), 2).token_ids == [9]
        found = Known(NO_GUESSES, text, trust)
        assert merge(found, 3).token_ids == [3, 7]
        assert merge(found, 8).token_ids[:3] == [3, 2, 1]
        assert merge(Known(NO_GUESSES, text, NO_TRUST), 8).token_ids == []


def test_what_is_worth_nothing_is_not_merged() -> None:
    nothing = Guesses(array("i", [3, 4]), array("f", [0.0, 0.0]), 2)
    for merge in mergers(8):
        text = array("i", [1, 1])
        merged = merge(Known(nothing, text, array("f", bytes(96))), 8)
        assert (merged.token_ids, merged.suffix) == ([], 0)
        # A full tree of the heads leaves no room for what is less likely.
        sure = Guesses(array("i", [3, 4]), array("f", [0.9, 0.8]), 1)
        merged = merge(Known(sure, text, array("f", [0.7] * 24)), 3)
        assert (merged.token_ids, merged.suffix) == ([3, 4], 0)


def test_more_rows_than_are_merged_in_one_call_are_searched_for() -> None:
    guesses = guesses_of(random.Random(3), 4, 32, 64)
    known = Known(guesses, array("i", [k % 7 for k in range(3000)]), TRUST)
    wide, same = (merge(known, 1024) for merge in mergers(1024))
    assert merger(RowBudget(1025))(known, 1024) == wide
    assert nodes_of(wide).keys() == nodes_of(same).keys()
    assert len(wide.token_ids) == 1023


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


def test_trust_is_learned_of_what_was_offered_last() -> None:
    lookup = Lookup()
    drafter = GrownDrafter(RowBudget(3), lookup=lookup)
    drafter.begin([1, 2, 1, 2, 1])
    before = lookup.trust[2 * DEEPEST]
    assert drafter.propose(1, 3).tree.token_ids == (1, 2, 1)
    drafter.observe(Observation([2], HIDDEN[None]))
    assert lookup.trust[2 * DEEPEST] > before
    learned = lookup.trust[:]
    drafter.observe(Observation([1], HIDDEN[None]))  # nothing was offered since
    assert lookup.trust == learned
    drafter.begin([1, 2, 1, 2, 1])
    before = lookup.trust[2 * DEEPEST]
    drafter.propose(1, 3)
    drafter.observe(Observation([7], HIDDEN[None]))
    assert lookup.trust[2 * DEEPEST] < before  # it was wrong
    drafter.begin([1, 2, 1, 2, 1])
    learned = lookup.trust[:]
    drafter.propose(1, 3)
    drafter.truncate(4)
    drafter.observe(Observation([1], HIDDEN[None]))  # what was offered belonged to what is cut
    assert lookup.trust == learned


def test_without_a_match_nothing_is_drafted() -> None:
    drafter = GrownDrafter(RowBudget(8), lookup=Lookup())
    drafter.begin([1, 2, 3])
    drafter.observe(Observation([4], HIDDEN[None]))
    assert drafter.propose(4, 8).tree.token_ids == (4,)
    drafter.observe(Observation([1], HIDDEN[None]))
    assert drafter.propose(1, 8).tree.token_ids == (1, 2, 3, 4, 1)
    assert drafter.propose(1, 3).tree.token_ids == (1, 2, 3)
    assert drafter.propose(1, 1).tree.token_ids == (1,)


@pytest.fixture
def composite(tiny: Target) -> Drafter:
    return SPEC.build(replace(tiny, phrases=None), RowBudget(10))


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
    # What the heads guessed, too, has their probability in a trace.
    chances = tiny.heads.logits(hidden, 9, tiny.heads.num_heads).float().softmax(dim=-1)
    told = proposal.odds().of_drafts(9)
    nodes = zip(told, proposal.sources[1:], proposal.tree.token_ids[1:], strict=True)
    for chance, source, token_id in nodes:
        expected = None if source.drafter == "ngram" else float(chances[source.head - 1, token_id])
        assert chance == (expected if expected is None else pytest.approx(expected, rel=1e-4))


def test_before_a_state_is_known_the_lookup_drafts_alone(composite: Drafter) -> None:
    composite.begin([5, 6, 5])
    proposal = composite.propose(5, 10)
    assert proposal.tree.token_ids == (5, 6, 5)
    assert {source.drafter for source in proposal.sources[1:]} == {"ngram"}
    assert proposal.odds() == NO_ODDS
