"""Recurrent layers over trees: as the plain recurrence along each path."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from medusa_core.models.recurrence import (
    LayerState,
    RecurrentSteps,
    convolve,
    delta_rule,
    folded_state,
    short_convolution,
    state_space,
)

GROUPS, HEADS, KEY, VALUE, CHANNELS, WIDTH = 2, 6, 8, 5, 7, 4
CLOSE = {"atol": 1e-12, "rtol": 1e-12}
TREES = {
    "one row": [-1],
    "a chain": [-1, 0, 1, 2, 3],
    "a star": [-1, 0, 0, 0, 0],
    "two lines side by side": [-1, 0, 0, 1, 2, 3, 4, 5, 6],
    "all of two": [-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
    "a comb": [-1, 0, 0, 1, 1, 3, 3, 5, 5],
    "siblings far apart": [-1, 0, 1, 2, 3, 1, 0, 6, 5, 8, 2],
}


@dataclass(frozen=True)
class Tree:
    """The rows of a tree by their parents."""

    parents: list[int]
    decided: bool = False

    @property
    def is_chain(self) -> bool:
        return self.parents == list(range(-1, len(self.parents) - 1))

    def path(self, row: int) -> list[int]:
        """The row and its ancestors, the first of them first."""
        before = [] if row == 0 else self.path(self.parents[row])
        return [*before, row]

    @property
    def sees(self) -> Tensor:
        sees = torch.zeros(len(self.parents), len(self.parents), dtype=torch.bool)
        for row in range(len(self.parents)):
            sees[row, self.path(row)] = True
        return sees

    def ancestors(self, width: int) -> Tensor:
        rows = []
        for row in range(len(self.parents)):
            path = [*range(width - 1), *(width - 1 + node for node in self.path(row))]
            rows.append(path[-width:])
        return torch.tensor(rows)


@dataclass
class Cache:
    """A cache of one layer."""

    own: LayerState
    steps: list[RecurrentSteps] = field(default_factory=list)

    def state(self, layer: int) -> LayerState:
        return self.own

    def put_steps(self, layer: int, steps: RecurrentSteps) -> None:
        self.steps.append(steps)


@dataclass(frozen=True)
class Sequence:
    """Rows with their tree and cache."""

    tree: Tree
    kv: Cache


def made(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def sequence_of(tree: Tree) -> Sequence:
    return Sequence(tree, Cache(LayerState(made(HEADS, KEY, VALUE), made(WIDTH - 1, CHANNELS))))


def heads_of(row: Tensor) -> Tensor:
    """A row's key heads, once for each head."""
    return row.repeat_interleave(HEADS // GROUPS, dim=0)


def plain_delta(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """One step of the recurrence: the output and the next state."""
    q, k, v, beta, decay = row
    state = state * decay.exp()[:, None, None]
    missed = beta[:, None] * (v - torch.einsum("hkv,hk->hv", state, heads_of(k)))
    state = state + heads_of(k)[:, :, None] * missed[:, None, :]
    return torch.einsum("hkv,hk->hv", state, heads_of(q)), state


def plain_space(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    q, k, x, decay = row
    state = state * decay.exp()[:, None, None] + heads_of(k)[:, :, None] * x[:, None, :]
    return torch.einsum("hkv,hk->hv", state, heads_of(q)), state


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(5)


def rows_of_delta(count: int) -> tuple[Tensor, ...]:
    k = torch.nn.functional.normalize(made(count, GROUPS, KEY), dim=-1)
    beta, decays = torch.rand(count, HEADS).double(), -3 * torch.rand(count, HEADS).double()
    return made(count, GROUPS, KEY), k, made(count, HEADS, VALUE), beta, decays


def rows_of_space(count: int) -> tuple[Tensor, ...]:
    q, k, v, _, decays = rows_of_delta(count)
    return q, k, v, decays


RULES = {
    "delta": (delta_rule, plain_delta, rows_of_delta),
    "space": (state_space, plain_space, rows_of_space),
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", TREES)
def test_a_row_of_a_tree_reads_what_the_recurrence_along_its_path_gives(
    rule: str, name: str
) -> None:
    over_rows, plain, rows_of = RULES[rule]
    tree = Tree(TREES[name])
    count = len(tree.parents)
    sequence, rows, inputs = sequence_of(tree), rows_of(count), made(count, CHANNELS)
    before = sequence.kv.own.state.clone()
    found = over_rows(*rows, inputs, sequence, 0)  # type: ignore[operator]
    (steps,) = sequence.kv.steps
    assert torch.equal(sequence.kv.own.state, before)
    assert torch.equal(steps.inputs, inputs)
    for row in range(count):
        state, path = before, tree.path(row)
        for node in path:
            output, state = plain(state, tuple(part[node] for part in rows))
        torch.testing.assert_close(found[row], output, **CLOSE)
        kept = folded_state(before, steps.keys[path], steps.updates[path], steps.decays[path])
        torch.testing.assert_close(kept, state, **CLOSE)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("count", [63, 64, 65, 150])
def test_a_long_decided_chain_goes_from_state_to_state(rule: str, count: int) -> None:
    over_rows, plain, rows_of = RULES[rule]
    sequence = sequence_of(Tree(list(range(-1, count - 1)), decided=True))
    rows, state = rows_of(count), sequence.kv.own.state
    found = over_rows(*rows, made(count, CHANNELS), sequence, 0)  # type: ignore[operator]
    for node in range(count):
        output, state = plain(state, tuple(part[node] for part in rows))
        torch.testing.assert_close(found[node], output, **CLOSE)
    (steps,) = sequence.kv.steps
    kept = folded_state(sequence.kv.own.state, steps.keys, steps.updates, steps.decays)
    torch.testing.assert_close(kept, state, **CLOSE)


@pytest.mark.parametrize("rule", RULES)
def test_what_forgets_almost_all_stays_finite(rule: str) -> None:
    over_rows, _, rows_of = RULES[rule]
    tree = Tree(TREES["siblings far apart"])
    *rows, decays = (part.float() for part in rows_of(len(tree.parents)))
    state = LayerState(made(HEADS, KEY, VALUE).float(), made(WIDTH - 1, CHANNELS).float())
    sequence, inputs = Sequence(tree, Cache(state)), made(len(tree.parents), CHANNELS)
    found = over_rows(*rows, decays * 1e3, inputs, sequence, 0)  # type: ignore[operator]
    assert found.dtype == torch.float32
    assert found.isfinite().all()


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_row_is_convolved_with_its_ancestors_and_the_tail(name: str, has_bias: bool) -> None:
    tree = Tree(TREES[name])
    sequence = sequence_of(tree)
    inputs, weight = made(len(tree.parents), CHANNELS), made(CHANNELS, WIDTH)
    bias = made(CHANNELS) if has_bias else None
    found = short_convolution(inputs, weight, bias, sequence, 0)
    tail = sequence.kv.own.tail
    for row in range(len(tree.parents)):
        path = torch.cat([tail, inputs[tree.path(row)]])[-WIDTH:]
        wanted = (path * weight.t()).sum(0) + (0 if bias is None else bias)
        torch.testing.assert_close(found[row], wanted, **CLOSE)
    assert torch.equal(sequence.kv.steps[0].inputs, inputs)
    assert sequence.kv.steps[0].updates.shape == (len(inputs), 0, 0)


def test_a_convolved_row_has_the_same_bits_in_a_tree_as_alone() -> None:
    tree, tail, weight = Tree(TREES["a comb"]), made(3, 7).float(), made(7, 4).float()
    inputs = made(len(tree.parents), 7).float()
    found = convolve(inputs, tail, weight, None, tree)
    for row in range(len(tree.parents)):
        *before, last = tree.path(row)
        known = torch.cat([tail, inputs[before]])[-3:]
        alone = convolve(inputs[last : last + 1], known, weight, None, Tree([-1]))
        assert torch.equal(found[row], alone[0])
