"""Lookahead decoding against the paper's description, and what rides beside a tree."""

from array import array
from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from medusa_core.engine.direct import generate
from medusa_core.errors import RequestError
from medusa_core.loading.target import Target
from medusa_core.messages import GenerateSettings, Lookahead, StepDone, StepTrace
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree
from medusa_core.runtime.tree.step import RowBudget
from medusa_core.speculation.drafters.lineup import drafter_registry
from medusa_core.speculation.drafters.lookahead_window import LookaheadWindow
from medusa_core.speculation.drafters.observation import Observation
from medusa_core.speculation.drafters.source import Paths
from medusa_core.speculation.drafters.sources.lookahead_source import (
    MAX_FIRSTS,
    LookaheadPool,
    LookaheadSource,
    columns_in,
)
from tests.support.engine.fixtures import LoadTarget
from tests.support.engine.laws import user_says

ROOM = 64
HIDDEN = torch.zeros(1, 4)


def source(window: int = 3, size: int = 3, guesses: int = 4, rows: int = ROOM) -> LookaheadSource:
    return LookaheadSource(RowBudget(rows, lookahead=Lookahead(window, size, guesses)))


def says(token_id: int, place: int) -> int:
    """A target that knows what follows from a token and its place."""
    return (7 * token_id + 3 * place + 1) % 11


class Reference:
    """Window and pool as the paper's algorithm 2 has them, written as lists of levels.

    `levels[l][j]` is guess l of column j. Every step the model reads all guesses; what it says
    behind the last level completes the n-grams; the first level leaves.
    """

    def __init__(self, columns: Sequence[Sequence[int]], most: int) -> None:
        size = len(columns[0])
        self.levels = [[column[level] for column in columns] for level in range(size)]
        self.most = most
        self.pool: dict[int, list[tuple[int, ...]]] = {}

    def add(self, ngram: Sequence[int]) -> None:
        tails = self.pool.setdefault(ngram[0], [])
        tail = tuple(ngram[1:])
        if tail in tails:
            tails.remove(tail)
        tails.append(tail)
        del tails[: -self.most]

    def step(self, latest: Sequence[int]) -> None:
        for column, token_id in enumerate(latest):
            self.add([*(level[column] for level in self.levels), token_id])
        self.levels = [*self.levels[1:], list(latest)]


def test_window_and_pool_follow_the_papers_algorithm() -> None:
    window, pool = LookaheadWindow(3), LookaheadPool(4)
    text = list(range(11))
    window.fit(5, text)
    columns = [
        [window.rows(0).token_ids[1 + level * 5 + column] for level in range(3)]
        for column in range(5)
    ]
    expected = Reference(columns, 4)
    for step in range(60):
        ridden = [says(t, step) for t in window.rows(0).token_ids[1:]]
        for ngram in window.advance(ridden):
            pool.add(ngram, step)
        expected.step(ridden[-5:])
        flat = [token for level in expected.levels for token in level]
        assert list(window.rows(0).token_ids[1:]) == flat
        for first in range(11):
            assert pool.tails(first) == expected.pool.get(first, [])[::-1]


@pytest.mark.parametrize(("columns", "levels"), [(1, 1), (1, 3), (4, 1), (5, 3), (7, 4)])
def test_a_lookahead_row_sees_the_first_level_up_to_its_column_and_its_own_column(
    columns: int, levels: int
) -> None:
    """As in the paper's figure 4; and it stands one place behind what it follows."""
    window = LookaheadWindow(levels)
    window.fit(columns, range(50))
    shape = window.rows(0).shape
    assert shape.num_nodes == 1 + columns * levels
    for level in range(levels):
        for column in range(columns):
            node = 1 + level * columns + column
            seen = set()
            above = node
            while above > 0:
                seen.add(above)
                above = shape.parents[above]
            first = {1 + other for other in range(column + 1)}
            own = {1 + upper * columns + column for upper in range(level + 1)}
            assert seen == first | own
            assert shape.depths[node] == level + column + 1


def test_the_pool_is_bounded() -> None:
    pool = LookaheadPool(3)
    for token in range(3 * MAX_FIRSTS):
        for follower in range(6):
            pool.add((token, follower, follower), token)
    assert len(pool) == 3 * MAX_FIRSTS
    assert pool.tails(0) == []
    assert pool.tails(3 * MAX_FIRSTS - 1) == [(5, 5), (4, 4), (3, 3)]


def test_the_prompt_seeds_the_pool_and_truncated_text_is_removed() -> None:
    found = source(size=3)
    found.begin([1, 2, 3, 1, 2, 4])

    def candidates_after(root_id: int) -> list[int]:
        found.start(root_id, 16)
        output = found.candidates(Paths(1, 0, array("i")))
        return [] if output is None else list(output.token_ids)

    assert candidates_after(1) == [2]
    output = found.candidates(Paths(1, 1, array("i", [2])))
    assert output is not None
    assert list(output.token_ids) == [4, 3], "the latest first"
    found.truncate(5)
    found.start(1, 16)
    output = found.candidates(Paths(1, 1, array("i", [2])))
    assert output is not None
    assert list(output.token_ids) == [3]
    found.observe(Observation([9, 8, 7], HIDDEN, (0, 0, 0)))
    assert candidates_after(9) == [8]
    found.begin([5, 6])
    assert candidates_after(1) == []


def test_a_window_takes_at_most_half_of_the_rows_and_no_unprofitable_ones() -> None:
    assert columns_in(64, 3) == 10
    assert source(window=7, size=4, rows=64).most_riders == 21
    assert source(window=7, size=4, rows=9).most_riders == 3
    assert source(window=7, size=4, rows=2).most_riders == 0
    dear = RowBudget(64, array("f", [0.5 * row for row in range(64)]), lookahead=Lookahead())
    assert LookaheadSource(dear).most_riders == 0


@pytest.mark.parametrize("rule", ["greedy", "sample", "typical"])
def test_riders_are_computed_and_never_accepted(
    load: LoadTarget, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window is made to hold exactly what plain decoding says."""
    target = load("grouped", "float64")
    settings = GenerateSettings(drafter="none", rule=rule, max_new_tokens=24, seed=5)
    plain = generate(target, user_says("one two three"), settings)
    right = list(plain.token_ids) * 40

    def rows(self: LookaheadWindow, root_id: int) -> TokenTree:
        tree = truly(self, root_id)
        place = len(self_text) % len(plain.token_ids)
        return tree._replace(token_ids=(root_id, *right[place : place + tree.shape.num_nodes - 1]))

    self_text: list[int] = []
    truly = LookaheadWindow.rows
    monkeypatch.setattr(LookaheadWindow, "rows", rows)
    steps: list[StepDone] = []
    traces: list[StepTrace] = []
    looking = replace(settings, drafter="lookahead", tree_rows=40)

    def take(step: StepDone) -> None:
        steps.append(step)
        self_text.extend(step.token_ids)

    done = generate(target, user_says("one two three"), looking, take, on_trace=traces.append)
    if rule != "typical":
        assert done.token_ids == plain.token_ids
    assert len(traces) == len(steps)
    assert sum(trace.num_riders for trace in traces) > 100
    for step, trace in zip(steps[1:], traces[1:], strict=True):
        assert step.num_rows == len(trace.token_ids) + trace.num_riders
        assert len(step.node_sources) == len(trace.token_ids)
        assert all(node < len(trace.token_ids) for node in trace.path)


def test_riders_leave_no_rows(load: LoadTarget) -> None:
    """What the target says behind a step is the same whoever rode in it."""
    target = load("grouped", "float64")
    text = target.tokenizer.encode("one two three four five six")
    reported = []
    for drafter in ("none", "lookahead"):
        session_rows: list[KvCache] = []
        kv = target.runner.new_cache(128)
        target.runner.extend(text, kv)
        built = drafter_registry().get(drafter).build(target, RowBudget(40))
        built.begin(text)
        proposal = built.propose(text[-1], 40)
        target.runner.verify(PlacedTree(proposal.rows, kv))
        kv.commit((0,))
        session_rows.append(kv)
        states = target.runner.extend([3], kv)
        reported.append(states[-1])
        assert kv.length == len(text) + 2
    assert proposal.riders is not None
    torch.testing.assert_close(reported[0], reported[1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("lookahead_window", 0),
        ("lookahead_window", 10_000),
        ("lookahead_size", 1),
        ("lookahead_size", 99),
        ("lookahead_guesses", 0),
        ("lookahead_guesses", 10**6),
    ],
)
def test_absurd_sizes_are_refused_with_a_message(tiny: Target, name: str, value: int) -> None:
    settings = replace(GenerateSettings(drafter="lookahead"), **{name: value})
    with pytest.raises(RequestError, match=r"\d") as caught:
        generate(tiny, user_says("hello"), settings)
    assert caught.value.hint


def test_lookahead_finds_repetitions_without_heads(load: LoadTarget) -> None:
    target = load("pebble", "float32")
    bare = replace(target, heads=None, trees=None, phrases=None)
    settings = GenerateSettings(drafter="lookahead", tree_rows=40, max_new_tokens=96)
    done = generate(bare, user_says("Tell me a story about a fox."), settings)
    plain = generate(
        bare, user_says("Tell me a story about a fox."), replace(settings, drafter="none")
    )
    assert done.token_ids == plain.token_ids
    assert len(done.accept_lengths) < 0.95 * len(plain.accept_lengths)
