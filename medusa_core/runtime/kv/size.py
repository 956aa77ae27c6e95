"""How large a cache is. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Collection

from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import RowShape, StateShape, rows_of

RING_UNITS = 3  # of cached rows below the device: one that is computed with, two ahead
PAGE_BYTES = 4096  # direct reads begin and end at such multiples
STAGING_BYTES = 4 << 20  # for rows on their way from a disk, and to it, half of it each
ROUND_ROWS = 16  # caches lie in multiples of this, as panels of the compiled step do
STEP_ROWS = 64  # rows of a pass that a state can take back
_GROUP = 64
_SPARE_ROWS = 64  # for the tree behind a full context, and a slot for padding rows
_STATES_BYTES = 256 << 20  # for states, where a whole context has room once
_LEAST_STATES, _MOST_STATES = 2, 16  # sessions whose states these may be
_CHECKPOINT_BYTES = 64 << 20  # for earlier states of a session, if these are enough for the least
# Behind the system prompt, at the beginning of the last question, and behind the prompt.
_LEAST_CHECKPOINTS, _MOST_CHECKPOINTS = 3, 8


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
    shapes = map(rows_of, config.layers)
    return sum(_shape_bytes(shape, itemsize, cache) for shape in shapes if shape is not None)


def offloaded_row_bytes(
    config: ModelConfig, itemsize: int, cache: str, layers: Collection[int]
) -> int:
    """Bytes of a row in some layers, those whose rows lie below the device.

    Args:
        config: Sizes of the target.
        itemsize: Bytes of a plain number.
        cache: `q4`; empty for plain numbers.
        layers: They.
    """
    return sum(_layer_row_bytes(config, itemsize, cache, layer) for layer in layers)


def tail_slots(tree_rows: int) -> int:
    """Slots for the rows behind the last whole block, and for those of a step behind them."""
    return _rounded_up(ROUND_ROWS - 1 + tree_rows)


def tail_bytes(
    config: ModelConfig,
    itemsize: int,
    cache: str,
    layers: Collection[int],
    sessions: int,
    tree_rows: int,
) -> int:
    """Bytes of the last rows of layers whose rows lie on a disk, in memory.

    Args:
        config: Sizes of the target.
        itemsize: Bytes of a plain number.
        cache: `q4`; empty for plain numbers.
        layers: They.
        sessions: Sessions that have a slot.
        tree_rows: Most rows of a step of one sequence.
    """
    row = offloaded_row_bytes(config, itemsize, cache, layers)
    return sessions * tail_slots(tree_rows) * row


def ring_bytes(
    config: ModelConfig,
    itemsize: int,
    cache: str,
    layers: Collection[int],
    batch: int,
    num_rows: int,
) -> int:
    """Bytes through which rows on a disk come to memory, at their most.

    Args:
        config: Sizes of the target.
        itemsize: Bytes of a plain number.
        cache: `q4`; empty for plain numbers.
        layers: Whose rows lie on a disk.
        batch: Sequences that are computed at once.
        num_rows: Most rows of a session.
    """
    row = max((_layer_row_bytes(config, itemsize, cache, layer) for layer in layers), default=0)
    if not row:
        return 0
    ring = brought_bytes(config, itemsize, cache, layers, batch, num_rows)
    return ring + 2 * staging_bytes(row, num_rows)


def brought_bytes(
    config: ModelConfig,
    itemsize: int,
    cache: str,
    layers: Collection[int],
    batch: int,
    num_rows: int,
) -> int:
    """Bytes through which rows of one home come to attention; the arguments are as before."""
    row = max((_layer_row_bytes(config, itemsize, cache, layer) for layer in layers), default=0)
    return RING_UNITS * batch * region_bytes(row, num_rows)


def region_bytes(row: int, num_rows: int) -> int:
    """Bytes that so many rows of so many bytes take on a disk, or in a buffer: whole pages."""
    return -(-num_rows * row // PAGE_BYTES) * PAGE_BYTES


def staging_bytes(row: int, num_rows: int) -> int:
    """Bytes that rows on their way from or to a disk lie in: a block at least.

    Args:
        row: Bytes of a row in a layer, at most.
        num_rows: Most rows of a session.
    """
    block, whole = (region_bytes(row, rows) + 2 * PAGE_BYTES for rows in (ROUND_ROWS, num_rows))
    return max(block, min(STAGING_BYTES // 2, whole))


def _layer_row_bytes(config: ModelConfig, itemsize: int, cache: str, layer: int) -> int:
    shape = rows_of(config.layers[layer])
    return 0 if shape is None else _shape_bytes(shape, itemsize, cache)


def _shape_bytes(shape: RowShape, itemsize: int, cache: str) -> int:
    return 2 * shape.num_kv_heads * head_bytes(shape.head_dim, itemsize, cache)


def head_bytes(head_dim: int, itemsize: int, cache: str = "") -> int:
    """Bytes of a head's numbers of one slot."""
    return packed_bytes(head_dim) if cache else head_dim * itemsize


def row_groups(
    config: ModelConfig, some: Collection[int] | None = None
) -> dict[RowShape, list[int]]:
    """The layers that hold keys and values, those of a shape together.

    Args:
        config: Sizes of the target.
        some: Only these layers, of every shape, which may be none; None for all.
    """
    groups: dict[RowShape, list[int]] = {}
    for layer, shape in enumerate(map(rows_of, config.layers)):
        if shape is not None:
            groups.setdefault(shape, []).extend([layer] * (some is None or layer in some))
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
    """Earlier states that a session keeps: as many as take little room, and some in any case."""
    one = num_layers * itemsize * (shape.state_size + shape.tail_size)
    return min(_MOST_CHECKPOINTS, max(_LEAST_CHECKPOINTS, _CHECKPOINT_BYTES // one))


def state_itemsize(compute_itemsize: int) -> int:
    """Bytes of a number of a state: 32 bits at least."""
    return max(4, compute_itemsize)


def state_rows(config: ModelConfig, compute_itemsize: int, row: int) -> int:
    """Number of KV rows of `row` bytes that take as much memory as a session's states."""
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
