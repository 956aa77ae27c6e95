"""How large a cache is. Nothing here needs torch."""

from __future__ import annotations

from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import RowShape, StateShape, rows_of

ROUND_ROWS = 16  # caches lie in multiples of this, as panels of the compiled step do
STEP_ROWS = 64  # rows of a pass that a state can take back
_GROUP = 64
_SPARE_ROWS = 64  # for the tree behind a full context, and a slot for padding rows
_STATES_BYTES = 256 << 20  # for states, where a whole context has room once
_LEAST_STATES, _MOST_STATES = 2, 16  # sessions whose states these may be
_CHECKPOINT_BYTES = 64 << 20  # for earlier states of a session; there is always one


def whole_rows(context_tokens: int) -> int:
    """Rows that all caches of a target have together: a whole context's."""
    return _rounded_up(context_tokens + _SPARE_ROWS)


def row_bytes(config: ModelConfig, itemsize: int, cache: str = "") -> int:
    """Bytes of a row: keys and values of one token in all layers.

    Args:
        config: Sizes of the target.
        itemsize: Bytes of a plain number.
        cache: `q4`; empty for plain numbers.
    """
    return sum(
        2 * shape.num_kv_heads * head_bytes(shape.head_dim, itemsize, cache)
        for shape in map(rows_of, config.layers)
        if shape is not None
    )


def head_bytes(head_dim: int, itemsize: int, cache: str = "") -> int:
    """Bytes of a head's numbers of one slot."""
    return packed_bytes(head_dim) if cache else head_dim * itemsize


def row_groups(config: ModelConfig) -> dict[RowShape, list[int]]:
    """The layers that hold keys and values, those of a shape together."""
    groups: dict[RowShape, list[int]] = {}
    for layer, shape in enumerate(map(rows_of, config.layers)):
        if shape is not None:
            groups.setdefault(shape, []).append(layer)
    return groups


def state_bytes(config: ModelConfig, compute_itemsize: int) -> int:
    """Bytes that a session's states take, with what brings them back; 0 without such layers.

    Args:
        config: Sizes of the target.
        compute_itemsize: Bytes of a number that the model computes in.
    """
    layers = config.state_layers
    if not layers:
        return 0
    shape, item = layers[0], state_itemsize(compute_itemsize)
    one = item * (shape.state_size + shape.tail_size)
    steps = item * STEP_ROWS * (shape.step_size + shape.channels)
    return len(layers) * ((1 + num_checkpoints(shape, len(layers), item)) * one + steps)


def num_checkpoints(shape: StateShape, num_layers: int, itemsize: int) -> int:
    """Earlier states that a session keeps: as many as take little room, and one in any case."""
    one = num_layers * itemsize * (shape.state_size + shape.tail_size)
    return min(8, max(1, _CHECKPOINT_BYTES // one))


def state_itemsize(compute_itemsize: int) -> int:
    """Bytes of a number of a state: 32 bits at least."""
    return max(4, compute_itemsize)


def state_rows(config: ModelConfig, compute_itemsize: int, row: int) -> int:
    """Rows of so many bytes that a session's states take the place of."""
    states = state_bytes(config, compute_itemsize)
    return _rounded_up(-(-states // row)) if states else 0


def num_states(of_session: int, num_rows: int, context_tokens: int) -> int:
    """Sessions whose states have room beside so many rows.

    Args:
        of_session: Bytes of one's states.
        num_rows: Of all caches.
        context_tokens: Longest text.
    """
    fitting = _STATES_BYTES // of_session if of_session else _LEAST_STATES
    usual = min(_MOST_STATES, max(_LEAST_STATES, fitting))
    return max(usual, usual * num_rows // whole_rows(context_tokens))


def packed_bytes(head_dim: int) -> int:
    """Bytes of a head's numbers of one slot in 4 bits, with scales."""
    return head_dim // 2 + 4 * (head_dim // group_size(head_dim))


def group_size(head_dim: int) -> int:
    """Numbers that share a scale in 4 bits: 64 where heads are that wide."""
    return next(size for size in range(min(_GROUP, head_dim), 0, -1) if head_dim % size == 0)


def _rounded_up(num_rows: int) -> int:
    return -(-num_rows // ROUND_ROWS) * ROUND_ROWS
