"""Recurrent layers over trees: as the plain recurrence along each path."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
import torch
from torch import Tensor

from medusa_core.runtime.backends.caches import LayerState, RecurrentSteps, RowTree, SequenceRows
from medusa_core.runtime.backends.recurrence import (
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


def path(parents: list[int], row: int) -> list[int]:
    """A row and its ancestors, the first of them first."""
    before = [] if row == 0 else path(parents, parents[row])
    return [*before, row]


def tree_of(parents: list[int], decided: bool = False) -> RowTree:
    sees = torch.zeros(len(parents), len(parents), dtype=torch.bool)
    for row in range(len(parents)):
        sees[row, path(parents, row)] = True
    return RowTree(sees, parents == list(range(-1, len(parents) - 1)), decided)


@dataclass
class Cache:
    """A cache of one layer."""

    own: LayerState
    steps: list[RecurrentSteps] = field(default_factory=list)

    def write(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        raise NotImplementedError

    def state(self, layer: int) -> LayerState:
        return self.own

    def put_state(self, layer: int, state: LayerState) -> None:
        self.own = state

    def put_steps(self, layer: int, steps: RecurrentSteps) -> None:
        self.steps.append(steps)


def made(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def sequence_of(parents: list[int], decided: bool = False) -> tuple[SequenceRows, Cache]:
    cache = Cache(LayerState(made(HEADS, KEY, VALUE), made(WIDTH - 1, CHANNELS)))
    rows = slice(0, len(parents))
    return SequenceRows(rows, None, cache, tree_of(parents, decided)), cache


def heads_of(row: Tensor) -> Tensor:
    """A row's key heads, once for each head."""
    return row.repeat_interleave(HEADS // GROUPS, dim=0)


def plain_delta(state: Tensor, row: tuple[Tensor, ...]) -> tuple[Tensor, Tensor]:
    """Return output and next state of one step of the recurrence."""
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
def test_a_tree_row_equals_the_recurrence_along_its_path(rule: str, name: str) -> None:
    over_rows, plain, rows_of = RULES[rule]
    parents = TREES[name]
    (sequence, cache), rows = sequence_of(parents), rows_of(len(parents))
    inputs, before = made(len(parents), CHANNELS), cache.own.state.clone()
    found = over_rows(*rows, inputs, sequence, 0)  # type: ignore[operator]
    (steps,) = cache.steps
    assert torch.equal(cache.own.state, before)
    assert torch.equal(steps.inputs, inputs)
    for row in range(len(parents)):
        state, nodes = before, path(parents, row)
        for node in nodes:
            output, state = plain(state, tuple(part[node] for part in rows))
        torch.testing.assert_close(found[row], output, **CLOSE)
        kept = folded_state(before, steps.keys[nodes], steps.updates[nodes], steps.decays[nodes])
        torch.testing.assert_close(kept, state, **CLOSE)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("count", [1, 2, 63, 64, 65, 66, 150])
def test_an_accepted_chain_advances_the_state(rule: str, count: int) -> None:
    over_rows, plain, rows_of = RULES[rule]
    sequence, cache = sequence_of(list(range(-1, count - 1)), decided=True)
    rows, inputs, (state, tail) = rows_of(count), made(count, CHANNELS), cache.own
    found = over_rows(*rows, inputs, sequence, 0)  # type: ignore[operator]
    for node in range(count):
        if node == count - 1:
            torch.testing.assert_close(cache.own.state, state, **CLOSE)
        output, state = plain(state, tuple(part[node] for part in rows))
        torch.testing.assert_close(found[node], output, **CLOSE)
    (steps,) = cache.steps
    assert len(steps.keys) == 1
    kept = folded_state(cache.own.state, steps.keys, steps.updates, steps.decays)
    torch.testing.assert_close(kept, state, **CLOSE)
    known = torch.cat([tail, inputs])
    assert torch.equal(torch.cat([cache.own.tail, steps.inputs]), known[-WIDTH:])


@pytest.mark.parametrize("rule", RULES)
def test_strong_decay_stays_finite(rule: str) -> None:
    over_rows, _, rows_of = RULES[rule]
    sequence, cache = sequence_of(TREES["siblings far apart"])
    cache.own = LayerState(*(part.float() for part in cache.own))
    *rows, decays = (part.float() for part in rows_of(11))
    found = over_rows(*rows, decays * 1e3, made(11, CHANNELS), sequence, 0)  # type: ignore[operator]
    assert found.dtype == torch.float32
    assert found.isfinite().all()


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("has_bias", [False, True])
def test_a_row_is_convolved_with_its_ancestors_and_the_cached_inputs(
    name: str, has_bias: bool
) -> None:
    parents, decided = TREES[name], name == "a chain"
    sequence, cache = sequence_of(parents, decided)
    inputs, weight = made(len(parents), CHANNELS), made(CHANNELS, WIDTH)
    cache.own, tail = LayerState(made(0, 0, 0), cache.own.tail), cache.own.tail
    bias = made(CHANNELS) if has_bias else None
    found = short_convolution(inputs, weight, bias, sequence, 0)
    for row in range(len(parents)):
        known = torch.cat([tail, inputs[path(parents, row)]])[-WIDTH:]
        wanted = (known * weight.t()).sum(0) + (0 if bias is None else bias)
        torch.testing.assert_close(found[row], wanted, **CLOSE)
    assert torch.equal(cache.steps[0].inputs, inputs[-1:] if decided else inputs)
    assert cache.steps[0].updates.shape[1:] == (0, 0)


def test_a_convolved_row_has_the_same_bits_in_a_tree_and_alone() -> None:
    parents, tail, weight = TREES["a comb"], made(3, 7).float(), made(7, 4).float()
    inputs = made(len(parents), 7).float()
    found = convolve(inputs, tail, weight, None, tree_of(parents))
    for row in range(len(parents)):
        *before, last = path(parents, row)
        known = torch.cat([tail, inputs[before]])[-3:]
        alone = convolve(inputs[last : last + 1], known, weight, None, tree_of([-1]))
        assert torch.equal(found[row], alone[0])
