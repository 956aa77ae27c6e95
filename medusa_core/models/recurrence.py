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

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

_PART_ROWS = 64  # of a decided chain: what is computed grows with the square of them


class LayerState(NamedTuple):
    """What a recurrent layer holds of the committed rows.

    Attributes:
        state: [heads, key_dim, value_dim], float32 or float64
        tail: The last inputs of its convolution. [width − 1, channels]
    """

    state: Tensor
    tail: Tensor


class RecurrentSteps(NamedTuple):
    """What the rows of a pass do to a layer's state.

    Attributes:
        keys: [n, key heads, key_dim]
        updates: What each row writes along its key. [n, heads, value_dim]
        decays: Logarithms of what the state before a row is multiplied with. [n, heads]
        inputs: Of the convolution. [n, channels]
    """

    keys: Tensor
    updates: Tensor
    decays: Tensor
    inputs: Tensor


class RowTree(Protocol):
    """Which rows of one sequence follow which."""

    @property
    def sees(self) -> Tensor:
        """Row i sees row j: itself and its ancestors. [n, n], bool"""

    @property
    def is_chain(self) -> bool:
        """Each row follows the one before it."""

    @property
    def decided(self) -> bool:
        """A chain of which all rows will be committed."""

    def ancestors(self, width: int) -> Tensor:
        """The last inputs of each row's path, as places in the tail and the rows behind it.

        [n, width], int64; the row itself is the last.
        """


class RecurrentCache(Protocol):
    """Where recurrent layers find their states."""

    def state(self, layer: int) -> LayerState:
        """The committed state of a layer."""

    def put_steps(self, layer: int, steps: RecurrentSteps) -> None:
        """Take what the reserved rows do to it."""


class RecurrentRows(Protocol):
    """The rows of one sequence; see `decoder.SequenceRows`."""

    @property
    def tree(self) -> RowTree: ...

    @property
    def kv(self) -> RecurrentCache: ...


def convolve(
    inputs: Tensor, tail: Tensor, weight: Tensor, bias: Tensor | None, tree: RowTree
) -> Tensor:
    """Causal convolution of every channel by itself, along each row's own path.

    Args:
        inputs: [n, channels]
        tail: Inputs of the last committed rows. [width − 1, channels]
        weight: That of the row itself is the last. [channels, width]
        bias: [channels], or None.
        tree: Which row follows which.

    Returns:
        [n, channels]; equal bits whatever rows stand beside.
    """
    count, width = len(inputs), weight.shape[1]
    known = torch.cat([tail.to(inputs.dtype), inputs])
    places = None if tree.is_chain else tree.ancestors(width)
    made = None
    for tap in range(width):
        rows = known[tap : tap + count] if places is None else known[places[:, tap]]
        product = rows * weight[:, tap]
        made = product if made is None else made.add_(product)
    assert made is not None  # of a width of at least one
    return made if bias is None else made.add_(bias)


def delta_rule(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    beta: Tensor,
    decays: Tensor,
    inputs: Tensor,
    sequence: RecurrentRows,
    layer: int,
) -> Tensor:
    """The gated delta rule over the rows of one sequence; the cache gets their steps.

    Args:
        q: Scaled. [n, key heads, key_dim]
        k: [n, key heads, key_dim]; a key head serves consecutive heads.
        v: [n, heads, value_dim]
        beta: How much of its value a row writes. [n, heads]
        decays: log a. [n, heads]
        inputs: Of the layer's convolution, for the cache. [n, channels]
        sequence: Whose rows they are.
        layer: Which layer of the cache.

    Returns:
        [n, heads, value_dim], in the state's dtype.
    """
    state = sequence.kv.state(layer).state
    q, k, v, beta, decays = (part.to(state.dtype) for part in (q, k, v, beta, decays))
    made, written = [], []
    for rows, sees in _parts(sequence.tree, len(q)):
        reach = _Reach.of(sees, decays[rows], k[rows])
        aim = beta[rows].t()[..., None] * (v[rows].transpose(0, 1) - reach.recalled(k[rows], state))
        updates = aim
        if len(sees) > 1:
            overlap = beta[rows].t()[..., None] * reach.products(k[rows])
            # The solver reads what lies below the diagonal: parents precede their children.
            updates = torch.linalg.solve_triangular(overlap, aim, upper=False, unitriangular=True)
        made.append(reach.recalled(q[rows], state) + reach.products(q[rows]) @ updates)
        written.append(updates.transpose(0, 1))
        if rows.stop < len(q):
            state = folded_state(state, k[rows], written[-1], decays[rows])
    sequence.kv.put_steps(layer, RecurrentSteps(k, torch.cat(written), decays, inputs))
    return torch.cat(made, dim=1).transpose(0, 1)


def state_space(
    q: Tensor,
    k: Tensor,
    x: Tensor,
    decays: Tensor,
    inputs: Tensor,
    sequence: RecurrentRows,
    layer: int,
) -> Tensor:
    """Mamba-2's state space over the rows of one sequence; the cache gets their steps.

    Args:
        q: C. [n, key heads (its groups), key_dim (its state size)]
        k: B. [n, key heads, key_dim]; a key head serves consecutive heads.
        x: Δ x. [n, heads, value_dim]
        decays: Δ A, which is log a. [n, heads]
        inputs: Of the layer's convolution, for the cache. [n, channels]
        sequence: Whose rows they are.
        layer: Which layer of the cache.

    Returns:
        [n, heads, value_dim], in the state's dtype, without D x.
    """
    state = sequence.kv.state(layer).state
    q, k, x, decays = (part.to(state.dtype) for part in (q, k, x, decays))
    made = []
    for rows, sees in _parts(sequence.tree, len(q)):
        reach = _Reach.of(sees, decays[rows], k[rows])
        own = reach.products(q[rows]) @ x[rows].transpose(0, 1)
        made.append(reach.recalled(q[rows], state) + own)
        if rows.stop < len(q):
            state = folded_state(state, k[rows], x[rows], decays[rows])
    sequence.kv.put_steps(layer, RecurrentSteps(k, x, decays, inputs))
    return torch.cat(made, dim=1).transpose(0, 1)


def short_convolution(
    inputs: Tensor, weight: Tensor, bias: Tensor | None, sequence: RecurrentRows, layer: int
) -> Tensor:
    """A layer's convolution where it has no other state; the cache gets its inputs.

    Args:
        inputs: [n, channels]
        weight: [channels, width]
        bias: [channels], or None.
        sequence: Whose rows they are.
        layer: Which layer of the cache.

    Returns:
        [n, channels]
    """
    nothing = inputs.new_zeros(len(inputs), 0, 0)
    made = convolve(inputs, sequence.kv.state(layer).tail, weight, bias, sequence.tree)
    sequence.kv.put_steps(layer, RecurrentSteps(nothing, nothing, nothing.flatten(1), inputs))
    return made


def folded_state(state: Tensor, keys: Tensor, updates: Tensor, decays: Tensor) -> Tensor:
    """The state behind rows of a chain.

    Args:
        state: That before them. [heads, key_dim, value_dim]
        keys: [n, key heads, key_dim]
        updates: [n, heads, value_dim]
        decays: [n, heads]

    Returns:
        [heads, key_dim, value_dim]
    """
    reached = decays.cumsum(0)
    left = torch.exp(reached[-1] - reached)  # of each row's product in the end
    heads = _by_key_head((updates * left[..., None]).transpose(0, 1), keys.shape[1])
    written = keys.permute(1, 2, 0).unsqueeze(1) @ heads
    return torch.addcmul(written.flatten(0, 1), torch.exp(reached[-1])[:, None, None], state)


class _Reach(NamedTuple):
    """How much of one row another one still finds.

    Attributes:
        keys: Of all rows. [key heads, n, key_dim]
        left: A_i / A_j where row i sees row j, else 0. [heads, n, n]
        decayed: A_i: what is left of the committed state at each row. [heads, n, 1]
    """

    keys: Tensor
    left: Tensor
    decayed: Tensor

    @classmethod
    def of(cls, sees: Tensor, decays: Tensor, keys: Tensor) -> _Reach:
        reached = (sees.to(decays.dtype) @ decays).t()  # log A. [heads, n]
        # Masked before the exponential, which grows without bound where i is no descendant of j.
        apart = (reached[:, :, None] - reached[:, None, :]).masked_fill_(~sees, float("-inf"))
        return cls(keys.transpose(0, 1), apart.exp_(), reached.exp()[..., None])

    def products(self, rows: Tensor) -> Tensor:
        """Of each row with the keys of all rows it sees. [n, key heads, dim] → [heads, n, n]"""
        overlap = rows.transpose(0, 1) @ self.keys.transpose(1, 2)
        return (_by_key_head(self.left, len(self.keys)) * overlap[:, None]).flatten(0, 1)

    def recalled(self, rows: Tensor, state: Tensor) -> Tensor:
        """What each row reads from the committed state. → [heads, n, value_dim]"""
        found = rows.transpose(0, 1).unsqueeze(1) @ _by_key_head(state, len(self.keys))
        return found.flatten(0, 1) * self.decayed


def _by_key_head(heads: Tensor, num_key_heads: int) -> Tensor:
    """[heads, ...] → [key heads, heads / key heads, ...]"""
    return heads.view(num_key_heads, len(heads) // num_key_heads, *heads.shape[1:])


def _parts(tree: RowTree, count: int) -> list[tuple[slice, Tensor]]:
    """Rows that are computed together, and which of them sees which.

    A tree is one part. A decided chain may be long, so it goes from state to state.
    """
    if not tree.decided or count <= _PART_ROWS:
        return [(slice(0, count), tree.sees)]
    lower = torch.ones(_PART_ROWS, _PART_ROWS, dtype=torch.bool, device=tree.sees.device).tril_()
    starts = range(0, count, _PART_ROWS)
    parts = [slice(start, min(start + _PART_ROWS, count)) for start in starts]
    return [(part, lower[: part.stop - part.start, : part.stop - part.start]) for part in parts]
