"""Sizes of KV caches and recurrent states in bytes. Nothing here needs torch."""

from __future__ import annotations

from collections.abc import Collection

from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import KvShape, StateShape, rows_of

RING_UNITS = 3  # buffers of offloaded KV rows: one that is computed with, two ahead
PAGE_BYTES = 4096  # O_DIRECT reads whole pages
STAGING_BYTES = 4 << 20  # for rows that are read from a disk, or written, half of it each
ROUND_ROWS = 16  # caches have a multiple of it, which is a panel of the compiled step
STEP_ROWS = 64  # speculative rows whose steps of a recurrent state are kept
_GROUP, BLOCK = 64, 32  # elements that share a scale in 4 and in 8 bits
_SPARE_ROWS = 64  # for the tree after a full context, and a slot for padding rows
_STATES_BYTES = 256 << 20  # for recurrent states, in a pool of one whole context
_MIN_STATES, _MAX_STATES = 2, 16  # sessions with states
_CHECKPOINT_BYTES = 64 << 20  # for checkpoints of a session, unless the minimum takes more
# The minimum: after the system prompt, before the last question, and after the prompt.
_MIN_CHECKPOINTS, _MAX_CHECKPOINTS = 3, 8


def whole_rows(context_tokens: int) -> int:
    """Number of rows for a whole context and a tree after it."""
    return whole_blocks(context_tokens + _SPARE_ROWS)


def row_bytes(config: ModelConfig, itemsize: int, cache: str = "") -> int:
    """Bytes of a row: keys and values of one token in all layers.

    Args:
        config: Sizes of the target.
        itemsize: Bytes of an element that isn't quantized.
        cache: `q8_0` or `q4`, or empty for rows that aren't quantized.
    """
    groups = row_groups(config).items()
    return sum(len(layers) * _shape_bytes(shape, itemsize, cache) for shape, layers in groups)


def offloaded_row_bytes(
    config: ModelConfig, itemsize: int, cache: str, layers: Collection[int]
) -> int:
    """Bytes of a row in some layers; see `row_bytes`."""
    return sum(_layer_row_bytes(config, itemsize, cache, layer) for layer in layers)


def tail_slots(tree_rows: int) -> int:
    """Slots of a tail: for rows after the last whole block, and a tree after these."""
    return whole_blocks(ROUND_ROWS - 1 + tree_rows)


def tail_bytes(
    config: ModelConfig,
    itemsize: int,
    cache: str,
    layers: Collection[int],
    sessions: int,
    tree_rows: int,
) -> int:
    """Bytes of the tails in memory, of layers whose KV rows are on a disk.

    Args:
        config: Sizes of the target.
        itemsize: See `row_bytes`.
        cache: See `row_bytes`.
        layers: Indices of the layers.
        sessions: Sessions at once.
        tree_rows: Most speculative rows of one sequence in a step.
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
    """Bytes of all buffers for KV rows on a disk, including staging memory.

    Args:
        config: Sizes of the target.
        itemsize: See `row_bytes`.
        cache: See `row_bytes`.
        layers: Indices of the layers.
        batch: Sequences of a batch.
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
    """Bytes of the ring of buffers of one prefetcher; see `ring_bytes`."""
    row = max((_layer_row_bytes(config, itemsize, cache, layer) for layer in layers), default=0)
    return RING_UNITS * batch * region_bytes(row, num_rows)


def region_bytes(row: int, num_rows: int) -> int:
    """Bytes of `num_rows` rows of `row` bytes, rounded up to whole pages."""
    return -(-num_rows * row // PAGE_BYTES) * PAGE_BYTES


def staging_bytes(row: int, num_rows: int) -> int:
    """Bytes of staging memory for reading or writing a disk: at least one block.

    Args:
        row: Bytes of a row in the layer with the largest ones.
        num_rows: Most rows of a session.
    """
    block, whole = (region_bytes(row, rows) + 2 * PAGE_BYTES for rows in (ROUND_ROWS, num_rows))
    return max(block, min(STAGING_BYTES // 2, whole))


def _layer_row_bytes(config: ModelConfig, itemsize: int, cache: str, layer: int) -> int:
    """Bytes of a row in one layer; 0 if it has no rows of its own."""
    shape = rows_of(config.layers[layer])
    return 0 if shape is None else _shape_bytes(shape, itemsize, cache)


def _shape_bytes(shape: KvShape, itemsize: int, cache: str) -> int:
    """Bytes of a row of a shape."""
    return 2 * shape.num_kv_heads * head_bytes(shape.head_dim, itemsize, cache)


def head_bytes(head_dim: int, itemsize: int, cache: str = "") -> int:
    """Bytes of a head in one slot."""
    return packed_bytes(head_dim, cache) if cache else head_dim * itemsize


def row_groups(
    config: ModelConfig, some: Collection[int] | None = None
) -> dict[KvShape, list[int]]:
    """Group layers by the shape of their KV rows, without those that share another layer's rows.

    Args:
        config: Sizes of the target.
        some: Layers to list; None for all. Shapes without any of them get an empty list.
    """
    groups: dict[KvShape, list[int]] = {}
    for layer, shape in enumerate(map(rows_of, config.layers)):
        if shape is not None:
            groups.setdefault(shape, []).extend([layer] * (some is None or layer in some))
    if not groups and config.state_layers:
        # Pools count in rows. Without attention a row takes next to nothing, and holds nothing.
        groups[KvShape(1, ROUND_ROWS)] = [0]
    return groups


def state_bytes(config: ModelConfig, compute_itemsize: int) -> int:
    """Bytes of a session's recurrent states, with steps and checkpoints; 0 if there are none.

    Args:
        config: Sizes of the target.
        compute_itemsize: Bytes of an element of the model's activations.
    """
    layers = config.state_layers
    if not layers:
        return 0
    shape, item = layers[0], state_itemsize(compute_itemsize)
    one = item * (shape.state_size + shape.tail_size)
    steps = item * STEP_ROWS * (shape.step_size + shape.channels)
    return len(layers) * ((1 + num_checkpoints(shape, len(layers), item)) * one + steps)


def num_checkpoints(shape: StateShape, num_layers: int, itemsize: int) -> int:
    """Number of checkpoints of a session: as many as take little room, within limits."""
    one = num_layers * itemsize * (shape.state_size + shape.tail_size)
    return min(_MAX_CHECKPOINTS, max(_MIN_CHECKPOINTS, _CHECKPOINT_BYTES // one))


def state_itemsize(compute_itemsize: int) -> int:
    """Bytes of an element of a state: at least 32 bits, as errors accumulate in it."""
    return max(4, compute_itemsize)


def state_rows(config: ModelConfig, compute_itemsize: int, row: int) -> int:
    """Number of KV rows of `row` bytes with the size of a session's states."""
    states = state_bytes(config, compute_itemsize)
    return whole_blocks(-(-states // row)) if states else 0


def num_states(of_session: int, num_rows: int, context_tokens: int) -> int:
    """Number of sessions whose states are planned, in proportion to the rows of a pool.

    Args:
        of_session: Bytes of a session's states.
        num_rows: Rows of the pool.
        context_tokens: Longest context.
    """
    fitting = _STATES_BYTES // of_session if of_session else _MIN_STATES
    of_context = min(_MAX_STATES, max(_MIN_STATES, fitting))
    return max(of_context, of_context * num_rows // whole_rows(context_tokens))


def packed_bytes(head_dim: int, cache: str) -> int:
    """Bytes of a head in one slot in 8 or 4 bits, with scales.

    In 8 bits the number of scales is even, so that rows of a head are whole words.
    """
    if cache == "q8_0":
        return head_dim + 2 * (num_blocks(head_dim) + num_blocks(head_dim) % 2)
    return head_dim // 2 + 4 * (head_dim // group_size(head_dim))


def num_blocks(head_dim: int) -> int:
    """Blocks of a head that have a scale each in 8 bits; the last one may be shorter than 32."""
    return -(-head_dim // BLOCK)


def group_size(head_dim: int) -> int:
    """Elements that share a scale in 4 bits: 64, or the largest divisor of a narrower head."""
    return next(size for size in range(min(_GROUP, head_dim), 0, -1) if head_dim % size == 0)


def whole_blocks(num_rows: int) -> int:
    """Round a number of rows up to whole blocks of sixteen."""
    return -(-num_rows // ROUND_ROWS) * ROUND_ROWS
