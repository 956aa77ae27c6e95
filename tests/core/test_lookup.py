"""Prompt lookup, trees grown of weighted paths, and the merge with the heads."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from medusa_core.drafters.composite import BOTH, SPEC, CompositeDrafter
from medusa_core.drafters.lookup import Lookup
from medusa_core.drafters.ngram import NgramDrafter
from medusa_core.engine.drafter import Observation
from medusa_core.messages import NO_ODDS, TARGET, GenerateSettings, TokenSource
from medusa_core.target import Target
from medusa_core.tree.grown import grow_tree
from tests.core.conftest import LoadTarget
from tests.core.laws import decode, plainly, user_says

TOKENS = st.lists(st.integers(0, 5), min_size=1, max_size=60)
HIDDEN = torch.zeros(1)


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
    lookup = Lookup()
    lookup.extend(ids)
    everything = naive(ids, depth)
    found = [one.token_ids for one in lookup.continuations(depth)]
    assert set(found) <= everything
    assert bool(found) == bool(everything)
    assert len(set(found)) == len(found) <= 3


def test_longer_suffixes_come_first_and_later_places_before_earlier() -> None:
    lookup = Lookup()
    lookup.extend([1, 2, 3, 9, 7, 3, 5, 8, 3, 6, 1, 2, 3])
    found = lookup.continuations(1)
    assert [(one.token_ids, one.length) for one in found] == [((9,), 3), ((6,), 1), ((5,), 1)]


@given(TOKENS, st.integers(0, 60))
def test_a_cut_text_is_as_if_it_had_never_been_longer(ids: list[int], length: int) -> None:
    cut, short = Lookup(), Lookup()
    cut.extend(ids)
    cut.truncate(length)
    short.extend(ids[:length])
    assert cut.token_ids == short.token_ids
    assert cut.continuations(4) == short.continuations(4)


def test_beginnings_that_are_worth_no_more_than_asked_for_are_left_out() -> None:
    lookup = Lookup()
    lookup.extend([1, 2, 3, 9, 7, 3, 5, 8, 1, 2, 3])
    found = lookup.continuations(3)
    everything = lookup.weighted(found)
    assert lookup.weighted(found, 0.0) == everything
    for least in (*everything.values(), 0.5, 1.0):
        left = {path: value for path, value in everything.items() if value > least}
        assert lookup.weighted(found, least) == left


def test_chances_follow_what_was_right() -> None:
    lookup = Lookup()
    lookup.extend([1, 2, 1, 2, 1])
    before = lookup.chance(3, 1)
    for is_right, compare in ((False, float.__lt__), (True, float.__gt__)):
        for _ in range(8):
            (best, *_) = lookup.continuations(2)
            lookup.learn([best.token_ids[0] if is_right else 77])
        after = lookup.chance(3, 1)
        assert compare(after, before)
        before = after
    assert lookup.chance(2, 1) >= lookup.chance(2, 2) >= lookup.chance(2, 5)


@given(
    st.dictionaries(
        st.lists(st.integers(0, 3), min_size=1, max_size=4).map(tuple),
        st.floats(0, 1),
        max_size=20,
    ),
    st.integers(1, 12),
)
def test_a_grown_tree_holds_the_most_valuable_nodes(
    leaves: dict[tuple[int, ...], float], num_rows: int
) -> None:
    values: dict[tuple[int, ...], float] = {}
    for path, value in leaves.items():
        for length in range(1, len(path) + 1):
            values[path[:length]] = max(values.get(path[:length], 0.0), value)
    tree = grow_tree(99, values, num_rows)
    paths = [()]
    for node in range(1, tree.shape.num_nodes):
        paths.append((*paths[tree.shape.parents[node]], tree.token_ids[node]))
    assert tree.token_ids[0] == 99
    assert len(set(paths)) == len(paths) == min(num_rows, len(values) + 1)
    kept = [values[path] for path in paths[1:]]
    left = [value for path, value in values.items() if path not in paths]
    assert not kept or not left or min(kept) >= max(left)
    siblings = [[values[paths[child]] for child in children] for children in tree.shape.children]
    assert all(row == sorted(row, reverse=True) for row in siblings)


def test_repeated_text_is_drafted_and_decided_in_few_steps(load: LoadTarget) -> None:
    target = load("grouped", "float64")
    settings = GenerateSettings(drafter="ngram", max_new_tokens=60, repetition_penalty=0.3)
    plain = decode(target, plainly(settings), user_says("again"))
    drafted = decode(target, settings, user_says("again"))
    assert drafted.token_ids == plain.token_ids
    assert drafted.done.num_steps < plain.done.num_steps
    accepted = {s.drafter for step in drafted.steps for s in step.sources} - {"target"}
    assert accepted == {"ngram"}


def test_without_a_match_nothing_is_drafted() -> None:
    drafter = NgramDrafter(8)
    drafter.begin([1, 2, 3])
    drafter.observe(Observation([4], HIDDEN))
    assert drafter.propose(4, 8).tree.token_ids == (4,)
    drafter.observe(Observation([1], HIDDEN))
    assert drafter.propose(1, 8).tree.token_ids == (1, 2, 3, 4, 1)
    assert drafter.propose(1, 3).tree.token_ids == (1, 2, 3)
    assert drafter.propose(1, 1).tree.token_ids == (1,)


@pytest.fixture
def composite(tiny: Target) -> CompositeDrafter:
    drafter = SPEC.build(tiny, 10)
    assert isinstance(drafter, CompositeDrafter)
    return drafter


def test_the_merge_keeps_the_budget_and_credits_both(
    composite: CompositeDrafter, tiny: Target
) -> None:
    assert tiny.heads is not None
    hidden = torch.randn(tiny.config.hidden_size, dtype=torch.float64)
    first = tiny.heads.ranked(hidden, 0, [1]).token_ids[0][0]
    # The lookup will say what the first head says, and then something of its own.
    composite.begin([7, 8, 9, first, 300, 7, 8])
    composite.observe(Observation([9], hidden))
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


def test_before_a_state_is_known_the_lookup_drafts_alone(composite: CompositeDrafter) -> None:
    composite.begin([5, 6, 5])
    proposal = composite.propose(5, 10)
    assert proposal.tree.token_ids == (5, 6, 5)
    assert {source.drafter for source in proposal.sources[1:]} == {"ngram"}
    assert proposal.odds() == NO_ODDS
