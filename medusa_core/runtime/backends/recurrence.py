"""Recurrent layers over the rows of a tree, without a state for every row.

A state is a matrix S of each head. A row i with the parent p decays it and writes one product into
it: S_i = a_i S_p + k_i u_iᵀ, and reads o_i = S_iᵀ q_i. So the state at a row is the committed one,
decayed, and the products of the row's ancestors: with A_i the product of the decays a along i's
path,

    S_i = A_i S_0 + Σ (A_i / A_j) k_j u_jᵀ    over i and its ancestors j.

In Mamba-2 u is known before. In the gated delta net u_i = β_i (v_i − a_i S_pᵀ k_i) depends on the
ancestors', which makes it one triangular system over all rows. Products of decays are kept as sums
of logarithms.

Sources: Gated Delta Networks (Yang et al. 2024), section 3.3, whose chunks are chains; Mamba-2
(Dao and Gu 2024), section 6.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.runtime.backends.caches import LayerState, RecurrentSteps, RowTree, SequenceRows

_PART_ROWS = 64  # rows of a decided chain at once: work grows with the square of their number


def convolve(
    inputs: Tensor, tail: Tensor, weight: Tensor, bias: Tensor | None, tree: RowTree | None
) -> Tensor:
    """Depthwise causal convolution along each row's path in the tree.

    Args:
        inputs: [n, channels]
        tail: Inputs of the last committed rows. [width − 1, channels]
        weight: The last column applies to the row itself. [channels, width]
        bias: [channels], or None.
        tree: Dependencies between the rows.

    Returns:
        [n, channels]; the result of a row doesn't depend on rows outside its path, to the bit.
    """
    assert tree is not None  # models with recurrent layers have one
    count, width = len(inputs), weight.shape[1]
    known = torch.cat([tail.to(inputs.dtype), inputs])
    places = None if tree.is_chain else tree.inputs(width)
    output = torch.zeros_like(inputs)
    for tap in range(width):
        rows = known[tap : tap + count] if places is None else known[places[:, tap]]
        output.add_(rows * weight[:, tap])
    return output if bias is None else output.add_(bias)


def delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    decays: Tensor,
    inputs: Tensor,
    sequence: SequenceRows,
    layer: int,
) -> Tensor:
    """The gated delta rule over the rows of one sequence; the cache gets their steps.

    Args:
        q: Scaled. [n, key heads, key_dim]
        k: [n, key heads, key_dim]; a key head serves consecutive heads.
        v: [n, heads, value_dim]
        beta: How much of its value a row writes. [n, heads]
        decays: log a. [n, heads]
        inputs: Inputs of the layer's convolution, for the cache. [n, channels]
        sequence: Range, cache and dependencies of the rows.
        layer: Index of the layer.

    Returns:
        [n, heads, value_dim], in the state's dtype.
    """
    before = sequence.kv.state(layer)
    state, start = before.state, 0
    q, k, v, beta, decays = (part.to(state.dtype) for part in (q, k, v, beta, decays))
    outputs: list[Tensor] = []
    written: list[Tensor] = []
    for rows, visible in _parts(_tree(sequence), len(q)):
        if outputs:
            past = slice(start, rows.start)
            state, start = folded_state(state, k[past], written[-1], decays[past]), rows.start
        reach = _Reach.of(visible, decays[rows], k[rows])
        # One product for both, which reads the state once.
        recalled, read = reach.recalled(torch.stack([k[rows], q[rows]]), state)
        gate = beta[rows].t()[..., None]
        updates = gate * (v[rows].transpose(0, 1) - recalled)
        if len(visible) > 1:
            overlap = gate * reach.products(k[rows])
            # The solver reads one triangle: parents precede their children. Transposed, as its
            # columns lie in a row.
            updates = torch.linalg.solve_triangular(
                overlap.mT, updates.mT, upper=True, left=False, unitriangular=True
            ).mT
        outputs.append(read + reach.products(q[rows]) @ updates)
        written.append(updates.transpose(0, 1))
    steps = RecurrentSteps(k, torch.cat(written), decays, inputs)
    _put(sequence, layer, steps, LayerState(state, before.tail), start)
    return torch.cat(outputs, dim=1).transpose(0, 1)


def state_space(
    q: Tensor,
    k: Tensor,
    x: Tensor,
    decays: Tensor,
    inputs: Tensor,
    sequence: SequenceRows,
    layer: int,
) -> Tensor:
    """Mamba-2's state space over the rows of one sequence; the cache gets their steps.

    Args:
        q: C. [n, key heads (its groups), key_dim (its state size)]
        k: B. [n, key heads, key_dim]; a key head serves consecutive heads.
        x: Δ x. [n, heads, value_dim]
        decays: Δ A, which is log a. [n, heads]
        inputs: Inputs of the layer's convolution, for the cache. [n, channels]
        sequence: Range, cache and dependencies of the rows.
        layer: Index of the layer.

    Returns:
        [n, heads, value_dim], in the state's dtype, without D x.
    """
    before = sequence.kv.state(layer)
    state, start = before.state, 0
    q, k, x, decays = (part.to(state.dtype) for part in (q, k, x, decays))
    outputs: list[Tensor] = []
    for rows, visible in _parts(_tree(sequence), len(q)):
        if outputs:
            past = slice(start, rows.start)
            state, start = folded_state(state, k[past], x[past], decays[past]), rows.start
        reach = _Reach.of(visible, decays[rows], k[rows])
        own = reach.products(q[rows]) @ x[rows].transpose(0, 1)
        outputs.append(reach.recalled(q[rows][None], state)[0] + own)
    steps = RecurrentSteps(k, x, decays, inputs)
    _put(sequence, layer, steps, LayerState(state, before.tail), start)
    return torch.cat(outputs, dim=1).transpose(0, 1)


def short_convolution(
    inputs: Tensor, weight: Tensor, bias: Tensor | None, sequence: SequenceRows, layer: int
) -> Tensor:
    """Compute a layer that is only a convolution; the cache gets its inputs.

    Args:
        inputs: [n, channels]
        weight: [channels, width]
        bias: [channels], or None.
        sequence: Range, cache and dependencies of the rows.
        layer: Index of the layer.

    Returns:
        [n, channels]
    """
    before, nothing = sequence.kv.state(layer), inputs.new_zeros(len(inputs), 0, 0)
    output = convolve(inputs, before.tail, weight, bias, sequence.tree)
    _put(sequence, layer, RecurrentSteps(nothing, nothing, nothing.flatten(1), inputs), before, 0)
    return output


def folded_state(
    state: Tensor, keys: Tensor, updates: Tensor, decays: Tensor, out: Tensor | None = None
) -> Tensor:
    """Return the state after consecutive rows, of one layer or of several at once.

    Args:
        state: State before them. [..., heads, key_dim, value_dim]
        keys: [..., n, key heads, key_dim]
        updates: [..., n, heads, value_dim]
        decays: Logarithms. [..., n, heads]
        out: Tensor to write the result to; may be `state`.

    Returns:
        [..., heads, key_dim, value_dim]
    """
    reached = decays.cumsum(-2)
    last = reached[..., -1:, :]
    decayed = updates * torch.exp(last - reached)[..., None]  # each update at the last row
    heads = decayed.transpose(-3, -2)
    heads = heads.reshape(*heads.shape[:-3], keys.shape[-2], -1, *heads.shape[-2:])
    written = keys.movedim(-3, -1).unsqueeze(-3) @ heads
    decay = torch.exp(last).transpose(-1, -2)[..., None]
    return torch.addcmul(written.flatten(-4, -3), decay, state, out=out)


class _Reach(NamedTuple):
    """Decays between rows: the share of row j's product in the state at row i.

    Attributes:
        keys: Keys of all rows. [key heads, n, key_dim]
        decays: A_i / A_j if row i is row j or a descendant of it, else 0. [heads, n, n]
        from_state: A_i, the decay of the committed state at each row. [heads, n, 1]
    """

    keys: Tensor
    decays: Tensor
    from_state: Tensor

    @classmethod
    def of(cls, visible: Tensor, decays: Tensor, keys: Tensor) -> _Reach:
        """Compute products of decays along all paths.

        Args:
            visible: Whether row i is row j or a descendant of it. [n, n], bool
            decays: Logarithms. [n, heads]
            keys: [n, key heads, key_dim]
        """
        reached = (visible.to(decays.dtype) @ decays).t()  # log A. [heads, n]
        # Masked before the exponential, which grows without bound where i is no descendant of j.
        apart = (reached[:, :, None] - reached[:, None, :]).masked_fill_(~visible, float("-inf"))
        return cls(keys.transpose(0, 1), apart.exp_(), reached.exp()[..., None])

    def products(self, rows: Tensor) -> Tensor:
        """Multiply rows by the decayed keys on their paths. [n, key heads, dim] → [heads, n, n]"""
        overlap = rows.transpose(0, 1) @ self.keys.transpose(1, 2)
        return (_by_key_head(self.decays, len(self.keys)) * overlap[:, None]).flatten(0, 1)

    def recalled(self, several: Tensor, state: Tensor) -> Tensor:
        """Multiply rows by the committed state, decayed up to each of them.

        Args:
            several: Several vectors of each row, such as key and query.
                [times, n, key heads, key_dim]
            state: [heads, key_dim, value_dim]

        Returns:
            [times, heads, n, value_dim]
        """
        times, count, num_keys, _ = several.shape
        rows = several.permute(2, 0, 1, 3).flatten(1, 2).unsqueeze(1)
        products = (rows @ _by_key_head(state, num_keys)).flatten(0, 1)
        by_vector = products.view(len(products), times, count, -1).transpose(0, 1)
        return by_vector * self.from_state


def _by_key_head(heads: Tensor, num_key_heads: int) -> Tensor:
    """[heads, ...] → [key heads, heads / key heads, ...]"""
    return heads.view(num_key_heads, len(heads) // num_key_heads, *heads.shape[1:])


def _tree(sequence: SequenceRows) -> RowTree:
    """Return the dependencies of a sequence's rows, which recurrent models always have."""
    assert sequence.tree is not None  # models with recurrent layers have one
    return sequence.tree


def _put(
    sequence: SequenceRows, layer: int, steps: RecurrentSteps, before: LayerState, start: int
) -> None:
    """Give the cache the steps of rows; of a decided chain the state before the last row, too.

    Args:
        sequence: Range, cache and dependencies of the rows.
        layer: Index of the layer.
        steps: Steps of all rows.
        before: State before the row `start`, and tail before the first row.
        start: Index of a row.
    """
    last = len(steps.inputs) - 1
    if _tree(sequence).decided and last:
        state, past = before.state, slice(start, last)
        if state.numel() and start < last:
            keys, updates, decays, _ = (part[past] for part in steps)
            state = folded_state(state, keys, updates, decays)
        known = torch.cat([before.tail, steps.inputs[:last]])
        tail = known[len(known) - len(before.tail) :]
        sequence.kv.put_state(layer, LayerState(state, tail))
        steps = RecurrentSteps(*(part[last:] for part in steps))
    sequence.kv.put_steps(layer, steps)


def _parts(tree: RowTree, count: int) -> Iterator[tuple[slice, Tensor]]:
    """Yield ranges of rows that are computed together, and the mask within each.

    A tree is one range. A decided chain may be long, so it is computed from state to state.
    """
    size = _PART_ROWS if tree.decided else count
    for start in range(0, count, size):
        rows = slice(start, min(start + size, count))
        yield rows, tree.mask[rows, rows]
