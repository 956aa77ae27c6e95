"""What a block remembers between passes, and the rows of one sequence in a pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor


class RowTree:
    """Rows of a token tree; a row comes after all rows that it attends to.

    Attributes:
        mask: Whether a row attends to another: itself and its ancestors. bool [n, n]
        is_chain: Whether each row attends to all rows before it.
        decided: Whether all rows will be committed, as in prefill; then they are a chain.
    """

    def __init__(self, mask: Tensor, is_chain: bool = False, decided: bool = False) -> None:
        self.mask = mask
        self.is_chain = is_chain
        self.decided = decided
        self._inputs: dict[int, Tensor] = {}

    @classmethod
    def chain(cls, num_rows: int, device: torch.device, decided: bool = False) -> RowTree:
        """Make a tree of consecutive rows."""
        ones = torch.ones(num_rows, num_rows, dtype=torch.bool, device=device)
        return cls(ones.tril_(), True, decided)

    def inputs(self, width: int) -> Tensor:
        """Return the inputs of a causal convolution for each row, its own last.

        Args:
            width: Width of the kernel.

        Returns:
            Indices into the last width − 1 committed inputs, followed by the rows' inputs.
            int64 [n, width]
        """
        if width not in self._inputs:
            self._inputs[width] = self._find_inputs(width)
        return self._inputs[width]

    def _find_inputs(self, width: int) -> Tensor:
        """Return `inputs`: a row, its ancestors, then the last committed inputs."""
        count, device = len(self.mask), self.mask.device
        numbers = torch.arange(count, device=device)
        # The parent is the last other row that a row attends to; −1 is the last committed row.
        parents = ((self.mask & (numbers != numbers[:, None])) * (numbers + 1)).amax(dim=1) - 1
        tail = torch.arange(-1, width - 2, device=device).clamp_(min=0)
        before = torch.cat([tail, parents + width - 1])
        columns = [numbers + width - 1]
        for _ in range(width - 1):
            columns.append(before[columns[-1]])
        return torch.stack(columns[::-1], dim=1)


class LayerState(NamedTuple):
    """State of a recurrent layer after all committed rows.

    Attributes:
        state: [heads, key_dim, value_dim], float32 or float64
        tail: Last inputs of its convolution. [conv_width − 1, channels], same dtype
    """

    state: Tensor
    tail: Tensor


class RecurrentSteps(NamedTuple):
    """Updates of a recurrent layer by the rows of a pass: S becomes decay · S + key · updateᵀ.

    Attributes:
        keys: [n, key heads, key_dim]
        updates: [n, heads, value_dim]
        decays: Logarithms. [n, heads]
        inputs: Inputs of the convolution. [n, channels]
    """

    keys: Tensor
    updates: Tensor
    decays: Tensor
    inputs: Tensor


class LayerCache(Protocol):
    """KV cache and recurrent states of one sequence, as a block uses them."""

    def write(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Store the reserved rows of one layer; see `kv.tensor.TensorCache.write`."""

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return what `write` gave for a layer in this pass."""

    def device_of(self, layer: int) -> torch.device:
        """Return the device that holds the keys and values of a layer in this pass."""

    def state(self, layer: int) -> LayerState:
        """Return the state of a recurrent layer after all committed rows; read-only."""

    def put_state(self, layer: int, state: LayerState) -> None:
        """Receive the state after all rows of a decided chain but the last."""

    def put_steps(self, layer: int, steps: RecurrentSteps) -> None:
        """Receive what each row of a pass changes in the recurrent state.

        Of a decided chain only the change of its last row.
        """


class LayerAddresses(NamedTuple):
    """Where a card finds the keys and values of a layer.

    Attributes:
        slots: Slots of a KV head.
        keys: Address of the first head's keys. [kv heads, slots, head_dim]
        values: The same of the values.
    """

    slots: int
    keys: int
    values: int


class AddressedCache(Protocol):
    """Cache of one sequence whose keys and values a card's kernels read and write."""

    def layer_addresses(self, layer: int) -> LayerAddresses: ...


class PassCache:
    """Keys and values of attention layers for one pass, after which they are gone.

    Keeps autograd's graph, unlike the caches of answers.
    """

    def __init__(self, device: torch.device, before: Sequence[Tensor] = ()) -> None:
        """Begin a pass.

        Args:
            device: Device of keys and values.
            before: Rows of each layer before those of the pass. [m, 2 · kv heads, head_dim]
        """
        self._device, self._before = device, before
        self._written: dict[int, tuple[Tensor, Tensor]] = {}

    def write(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Keep the rows of a layer, and return its keys and values; see `LayerCache`."""
        if self._before:
            rows = torch.cat([self._before[layer], rows])
        keys, values = rows.transpose(0, 1).chunk(2)
        self._written[layer] = keys, values
        return keys, values

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """Return what `write` gave for a layer."""
        return self._written[layer]

    def device_of(self, layer: int) -> torch.device:
        """Return the device of all keys and values."""
        return self._device

    def state(self, layer: int) -> LayerState:
        """Fail: only models without recurrent layers use this cache."""
        raise AssertionError("a layer with a state")

    def put_state(self, layer: int, state: LayerState) -> None:
        """Do nothing: the cache is used for one pass only."""

    def put_steps(self, layer: int, steps: RecurrentSteps) -> None:
        """Do nothing: the cache is used for one pass only."""


class SequenceRows(NamedTuple):
    """The rows of one sequence in a pass.

    Attributes:
        rows: Range of its rows in the pass.
        mask: Additive attention mask, or None; see `attend_by_products`.
        kv: Cache with as many rows reserved.
        tree: Dependencies between the rows; None for models without recurrent layers.
    """

    rows: slice
    mask: Tensor | None
    kv: LayerCache
    tree: RowTree | None = None


def causal_mask(before: int, count: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return the additive mask of rows that see all earlier rows, and their own in order.

    Args:
        before: Number of earlier rows.
        count: Number of rows.
        dtype: Dtype of the mask.
        device: Device of the mask.

    Returns:
        [count, before + count]
    """
    mask = torch.zeros(count, before + count, dtype=dtype, device=device)
    mask[:, before:] = mask.new_full((count, count), float("-inf")).triu(1)
    return mask
