"""Plan the memory of a model on one device, with every layer there.

Weights, heads and KV cache are counted to the byte, from the same specs that the loader follows;
scratch is an upper estimate. Nothing here needs torch or a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from medusa_core.errors import RequestError
from medusa_core.i18n import tr
from medusa_core.loading.memory.budget import GIB, Budget
from medusa_core.messages import Fit, HeadsShape, MemoryPlan
from medusa_core.models.blocks.sizes import (
    PER_LAYER_NORM,
    PER_LAYER_PROJECTION,
    PER_LAYER_TABLE,
    block_tensors,
    kinds_of_blocks,
    lm_head_spec,
    num_cached_rows,
    per_layer_tensors,
)
from medusa_core.models.blocks.spec import BlockTensors
from medusa_core.models.blocks.tensors import LinearSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import rows_of
from medusa_core.models.lora.adapter_shape import (
    AdapterShape,
    unmerged_parts,
)
from medusa_core.models.quant.block_format import weight_formats
from medusa_core.models.quant.block_sizes import BLOCK_SIZES
from medusa_core.models.quant.choice import (
    DENSE_CACHES,
    PartFormats,
    dense_format_of,
)
from medusa_core.models.quant.format import (
    QuantSpec,
    quant_registry,
)
from medusa_core.runtime.backends.native_limits import why_not
from medusa_core.runtime.kv.size import (
    num_states,
    row_bytes,
    state_bytes,
    state_rows,
    whole_rows,
)
from medusa_core.system.native.cuda import MAX_SPLITS, MOST_STEP_ROWS

if TYPE_CHECKING:
    from medusa_core.models.through_transformers.sizes import TransformersSizes

FIRST_CHUNK_ROWS = 64  # quick on most devices, and the rows of the largest default tree
_CARD_CHUNK_ROWS = 512
_SCORED_ROWS = 64
_TIGHT_BYTES = GIB * 3 // 10  # another program's window may take as much
_ITEMSIZE = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
NO_ADAPTER = AdapterShape()


class DraftModel(NamedTuple):
    """Configuration and formats of a smaller model that drafts."""

    config: ModelConfig
    formats: PartFormats


_DEFAULT_CONTEXT, _LONG_CONTEXTS = 8192, (32_768, 16_384)


def plan_memory(
    config: ModelConfig,
    heads: HeadsShape,
    formats: PartFormats,
    budget: Budget,
    context_tokens: int,
    sessions: int = 1,
    draft_model: DraftModel | None = None,
    adapter: AdapterShape = NO_ADAPTER,
    off_device: int = 0,
) -> MemoryPlan:
    """Plan a target and its drafters on a device.

    Args:
        config: Configuration of the target.
        heads: Sizes of the heads.
        formats: Formats of all parts.
        budget: Memory of the device.
        context_tokens: Longest prompt plus answer.
        sessions: Conversations that have room for such a context at once.
        draft_model: A model that drafts; None for none.
        adapter: LoRA adapter of the target.
        off_device: Bytes of the target's weights that are elsewhere.
    """
    context = min(context_tokens, config.context_tokens)
    models = [(config, formats)] if draft_model is None else [(config, formats), draft_model]
    ram = sum(_ram_bytes(*model) for model in models)
    weights, *drafts = (weights_bytes(*model) - _ram_bytes(*model) for model in models)
    weights += adapter_bytes(config, adapter, formats) - off_device
    in_heads = heads_bytes(config, heads, formats) + sum(drafts)
    fixed = weights + in_heads + budget.runtime_bytes + budget.other_bytes + budget.reserved_bytes

    def caches(tokens: int) -> int:
        """Bytes of one session's caches of target, heads and draft model."""
        own = heads.cache_row * whole_rows(tokens) * _ITEMSIZE[formats.cache]
        for sizes, kinds in models:
            own += kv_bytes(sizes, kinds, min(tokens, sizes.context_tokens))
        return own

    states = sum(states_bytes(*model, context) for model in models)
    in_adapter = adapter_scratch_bytes(config, adapter, formats)

    def scratch(tokens: int) -> int:
        """Bytes of the temporary tensors of a step of target, draft model and adapter."""
        each = (scratch_bytes(*model, min(tokens, model[0].context_tokens)) for model in models)
        return in_adapter + sum(each)

    def needs(tokens: int) -> int:
        """Bytes that depend on the context size: the caches of all sessions, and scratch."""
        return sessions * caches(tokens) + scratch(tokens)

    free = budget.total_bytes - fixed - needs(context)
    return MemoryPlan(
        weights_bytes=weights,
        heads_bytes=in_heads,
        kv_bytes=sessions * caches(context),
        state_bytes=sessions * states,
        scratch_bytes=scratch(context),
        runtime_bytes=budget.runtime_bytes,
        other_bytes=budget.other_bytes,
        free_bytes=free,
        total_bytes=budget.total_bytes,
        ram_bytes=ram,
        context_tokens=context,
        max_context=_longest(config.context_tokens, budget.total_bytes - fixed, needs),
        fit=fit_of(free),
        is_live=budget.is_live,
        draft_model_bytes=sum(drafts),
        cache_type=cache_type(config, formats),
        reserved_bytes=budget.reserved_bytes,
    )


def default_plan(plan_for: Callable[[int], MemoryPlan], config: ModelConfig) -> MemoryPlan:
    """Plan the context that a model gets if no length is requested.

    That is its own context, up to 32,768 tokens, provided that the cache takes at most a quarter of
    the memory that weights leave free; 8,192 tokens may take more.

    Args:
        plan_for: Plans a context, given its length in tokens.
        config: Configuration of the target.
    """
    for tokens in _LONG_CONTEXTS:
        if config.default_context > _DEFAULT_CONTEXT:
            plan = plan_for(min(tokens, config.default_context))
            if plan.fit is Fit.FITS and 4 * plan.kv_bytes <= plan.kv_bytes + plan.free_bytes:
                return plan
    return plan_for(min(_DEFAULT_CONTEXT, config.default_context))


def _ram_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of embedding tables that stay in host memory beside a card."""
    tokens = embedding_bytes(config, formats) if formats.embedding_in_ram else 0
    is_on_host = formats.per_layer != "device" and formats.device != "cpu"
    return tokens + (per_layer_table_bytes(config, formats) if is_on_host else 0)


@lru_cache(maxsize=256)
def weights_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of the target's weights, token embeddings included."""
    if not config.has_native_family:
        return _transformers_bytes(config, formats)
    item = max(4, _ITEMSIZE[formats.compute])  # norms are computed in 32 bits at least
    # GGUF files mix block types from layer to layer.
    every = ((block_tensors(config, index), 1) for index in range(config.num_layers))
    in_linears = sum(
        count * sum(part_bytes(part, config, formats) for part in block.linears)
        for block, count in (every if formats.keeps_blocks else kinds_of_blocks(config))
    )
    vectors = item * sum(count * _vector_numbers(block) for block, count in kinds_of_blocks(config))
    last_norm = (config.hidden_size + 1) * item
    lm_head = 0
    if not formats.shares_embedding(config.tie_embeddings):
        part = lm_head_spec(config)
        lm_head = (
            _stored_bytes(part, config, formats)
            if formats.keeps_blocks
            else _matrix_bytes(part, formats.lm_head, formats)
        )
    tables = embedding_bytes(config, formats) + per_layer_table_bytes(config, formats)
    return in_linears + vectors + last_norm + lm_head + tables + _per_layer_bytes(config, formats)


def _transformers_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of the weights of a model that runs through transformers."""
    sizes = _sizes_of(config)
    in_matrices = sum(
        formats.linears.nbytes(rows, columns, formats.device) for rows, columns in sizes.matrices
    )
    return in_matrices + sizes.num_others * _ITEMSIZE[formats.compute] + sizes.buffer_bytes


def _sizes_of(config: ModelConfig) -> TransformersSizes:
    """Sizes of a model that runs through transformers, which is imported only now."""
    from medusa_core.models.through_transformers.sizes import sizes_of  # slow

    return sizes_of(config)


def _vector_numbers(block: BlockTensors) -> int:
    """Numbers of a block outside of linear parts; a norm stores its epsilon with its weight."""
    others = sum(math.prod(shape) for shape in block.others.values())
    return sum(size + 1 for size in block.norms.values()) + others


def adapter_bytes(config: ModelConfig, adapter: AdapterShape, formats: PartFormats) -> int:
    """Bytes of an adapter that isn't merged into the weights."""
    numbers = 0
    for part in unmerged_parts(config, adapter, formats.keeps_blocks):
        pairs = [(piece, adapter.pairs.get(piece.name)) for piece in part.pieces]
        numbers += part.columns * adapter.inner(part)
        numbers += sum(piece.rows * pair.rank for piece, pair in pairs if pair is not None)
    return numbers * _ITEMSIZE[formats.compute]


def adapter_scratch_bytes(config: ModelConfig, adapter: AdapterShape, formats: PartFormats) -> int:
    """Bytes of the widest activation between the two matrices of an adapter."""
    unmerged = unmerged_parts(config, adapter, formats.keeps_blocks)
    inner = max(map(adapter.inner, unmerged), default=0)
    return chunk_rows(formats.device) * inner * max(4, _ITEMSIZE[formats.compute])


def experts_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of all experts among the weights; 0 for models of transformers, where it is unknown."""
    if not config.has_native_family:
        return 0
    layers = (block_tensors(config, index) for index in range(config.num_layers))
    parts = (part for block in layers for part in block.experts)
    return sum(part_bytes(part, config, formats) for part in parts)


def embedding_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of the token embeddings in memory."""
    shape = (config.vocab_size, config.hidden_size)
    if formats.embedding_on_disk:
        return _row_cache_bytes(*shape, formats)
    return formats.embedding.nbytes(*shape, formats.device)


def _row_cache_bytes(rows: int, columns: int, formats: PartFormats) -> int:
    """Bytes of the decoded rows that an embedding table caches."""
    row = formats.embedding.nbytes(1, columns, formats.device)
    return row * num_cached_rows(rows, columns, row // columns)


def per_layer_table_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of the table of per-layer embeddings in memory."""
    of = config.per_layer_embeddings
    if of is None:
        return 0
    columns = config.num_layers * of.width
    kept = _row_cache_bytes(of.vocab_size, columns, formats)
    if formats.per_layer == "disk":
        return kept
    kind = config.stored_type(f"{PER_LAYER_TABLE}.weight")
    if kind and formats.per_layer == "ram":
        return of.vocab_size * BLOCK_SIZES[kind].row_bytes(columns) + kept
    return formats.embedding.nbytes(of.vocab_size, columns, formats.device)


def _per_layer_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of projection and norm of per-layer embeddings."""
    found, item = per_layer_tensors(config), _ITEMSIZE[formats.compute]
    if not found:
        return 0
    # A norm is computed in 32 bits at least, and stores its epsilon.
    in_norm = (math.prod(found[PER_LAYER_NORM]) + 1) * max(4, item)
    return math.prod(found[PER_LAYER_PROJECTION]) * item + in_norm


def heads_bytes(config: ModelConfig, heads: HeadsShape, formats: PartFormats) -> int:
    """Bytes of heads; the first layers of all Medusa heads are one matrix."""
    if not heads.num_heads:
        return 0
    if heads.kind != "medusa":
        in_matrices = sum(
            formats.fitting(formats.heads, *matrix).nbytes(*matrix, formats.device)
            for matrix in heads.matrices
        )
        in_matrices += sum(
            formats.fitting(formats.dense, *matrix).nbytes(*matrix, formats.device)
            for matrix in heads.dense_matrices
        )
        item = _ITEMSIZE[formats.compute]
        plain = heads.num_biases * _bias_itemsize(formats) + heads.num_vector_numbers * item
        return in_matrices + plain + heads.num_norm_numbers * max(4, item) + 8 * heads.num_ids
    hidden, count, device = config.hidden_size, heads.num_heads, formats.device
    rows, biases = count * hidden, count * hidden * _bias_itemsize(formats)
    total = 0
    if heads.num_layers:
        width = 2 * hidden if heads.reads_root else hidden
        first = formats.fitting(formats.heads, rows, width).nbytes(rows, width, device)
        deeper = count * formats.fitting(formats.heads, hidden, hidden).nbytes(
            hidden, hidden, device
        )
        total += first + biases + (heads.num_layers - 1) * (deeper + biases)
    if heads.columns:
        columns = min(heads.columns, config.vocab_size)
        spec = formats.fitting(formats.heads, columns, hidden)
        number = 1 if heads.has_one_projection else count
        total += number * spec.nbytes(columns, hidden, formats.device)
    return total


def session_states_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of one session's recurrent states."""
    if not config.has_native_family:
        return _sizes_of(config).state_bytes
    return state_bytes(config, _ITEMSIZE[formats.compute])


def kv_bytes(config: ModelConfig, formats: PartFormats, context_tokens: int) -> int:
    """Bytes of the cache for a whole context, recurrent states included.

    On a CPU torch's operations keep keys and values in 32 bits at least, the compiled step in its
    compute dtype.
    """
    row, states = _cache_bytes(config, formats, context_tokens)
    return row * whole_rows(context_tokens) + states


def states_bytes(config: ModelConfig, formats: PartFormats, context_tokens: int) -> int:
    """Bytes of recurrent states among `kv_bytes`."""
    return _cache_bytes(config, formats, context_tokens)[1]


def _cache_bytes(config: ModelConfig, formats: PartFormats, context_tokens: int) -> tuple[int, int]:
    """Bytes of one token's keys and values, and of all recurrent states."""
    if not config.has_native_family:
        sizes, itemsize = _sizes_of(config), _ITEMSIZE[formats.compute]
        numbers = sum(2 * shape.num_kv_heads * shape.head_dim for shape in sizes.layers)
        # States are outside the pool, which lends no more than so many.
        num = num_states(0, whole_rows(context_tokens), context_tokens)
        return numbers * itemsize, num * sizes.state_bytes
    row = row_bytes(config, cache_itemsize(config, formats), formats.cache_format)
    of_session = row * state_rows(config, _ITEMSIZE[formats.compute], row)
    num = num_states(of_session, whole_rows(context_tokens), context_tokens)
    return row, num * of_session


def cache_itemsize(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of each number of keys and values."""
    return _ITEMSIZE[formats.cache if why_not(config, formats) else formats.compute]


def cache_type(config: ModelConfig, formats: PartFormats) -> str:
    """Name of the type of keys and values."""
    is_compute = not config.has_native_family or not why_not(config, formats)
    return formats.cache_format or DENSE_CACHES[formats.compute if is_compute else formats.cache]


def check_cache_type(wanted: str, config: ModelConfig, formats: PartFormats) -> None:
    """Refuse a type of keys and values that the device doesn't have.

    Args:
        wanted: As in `WeightFormats`.
        config: Configuration of the target.
        formats: Formats of all parts that were resolved.

    Raises:
        RequestError: Unquantized keys and values would have another type.
    """
    own = cache_type(config, formats)
    if wanted not in ("", "auto", own):
        raise RequestError(
            tr("The KV cache of this model on this device is {0}, not {1}.", own, wanted),
            tr("Choose auto, {0}, q8_0 or q4, or another --dtype.", own),
        )


def with_small_cache(
    plan: MemoryPlan, plan_for: Callable[[PartFormats], MemoryPlan], wanted: str, of: PartFormats
) -> MemoryPlan:
    """Plan keys and values in 8 bits if a plan fits only so, and their type was left open.

    Args:
        plan: Plan of the formats.
        plan_for: Plans the same with other formats.
        wanted: Type of keys and values in `WeightFormats`.
        of: Formats of all parts.
    """
    if plan.fit is not Fit.NO or wanted not in ("", "auto") or of.cache_format or of.attended:
        return plan
    small = plan_for(in_8_bits(of))
    return plan if small.fit is Fit.NO else replace(small, shrinks_cache=True)


def in_8_bits(formats: PartFormats) -> PartFormats:
    """Return formats with keys and values in 8 bits."""
    return replace(formats, cache_format="q8_0")


def chunk_rows(device: str) -> int:
    """Return the rows of a chunk of prefill on a type of device that has all layers.

    The time of a CPU grows with the rows; a card dequantizes 4-bit weights once for all of them.
    """
    return _CARD_CHUNK_ROWS if device == "cuda" else FIRST_CHUNK_ROWS


def scratch_bytes(
    config: ModelConfig,
    formats: PartFormats,
    context_tokens: int,
    prompt_rows: int = 0,
    scored_rows: int = _SCORED_ROWS,
    judged_rows: int = _SCORED_ROWS,
) -> int:
    """Return an upper estimate of a pass's activations, logits and masks in bytes.

    Args:
        config: Configuration of the target.
        formats: Formats of all parts.
        context_tokens: Longest prompt plus answer.
        prompt_rows: Rows of a chunk of prefill; 0 for those of `chunk_rows`.
        scored_rows: Rows of a pass whose logits are computed.
        judged_rows: The largest part of these that one sequence has; a rule copies their logits.
    """
    rows, item = prompt_rows or chunk_rows(formats.device), max(4, _ITEMSIZE[formats.compute])
    shapes = {shape for shape in map(rows_of, config.layers) if shape is not None}
    group = max((config.num_heads // shape.num_kv_heads for shape in shapes), default=1)
    widths = (config.mlp_width(layer) for layer in range(config.num_layers))
    width = max((config.intermediate_size, *widths))
    of = config.per_layer_embeddings
    per_layer = 0 if of is None else 4 * config.num_layers * of.width
    hidden = rows * (8 * config.hidden_size + 4 * width + per_layer) * item
    logits = (scored_rows + judged_rows) * config.vocab_size * item
    masks = (1 + max(1, len(shapes))) * group * rows * context_tokens * _ITEMSIZE[formats.compute]
    # A card's kernels keep no scores.
    scores = 0 if formats.device == "cuda" else config.num_heads * rows * context_tokens * item
    rotations = whole_rows(context_tokens) * config.head_dim * item
    # One layer's keys and values, where they are multiplied in another dtype.
    in_row = max((shape.num_kv_heads * shape.head_dim for shape in shapes), default=0)
    widened = 2 * in_row * whole_rows(context_tokens) * item
    is_card_other = formats.device == "cuda" and formats.cache != formats.compute
    is_read_packed = formats.cache_format == "q8_0" and not why_not(config, formats)
    widened *= is_card_other or (bool(formats.cache_format) and not is_read_packed)
    fixed = hidden + logits + rotations + _dequantized_bytes(config, formats)
    return fixed + masks + scores + widened + step_buffer_bytes(config, formats)


def step_buffer_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes that fused decoding steps keep on a card: activations, and attention of each split."""
    if formats.device != "cuda" or not formats.keeps_blocks:
        return 0
    split = MAX_SPLITS * config.num_heads * (config.head_dim + 2)
    heads = (2 * config.num_heads + 2 * config.num_kv_heads) * config.head_dim
    activations = 2 * config.hidden_size + heads + 2 * config.intermediate_size
    return MOST_STEP_ROWS * 4 * (split + activations)


def _dequantized_bytes(config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of the largest dequantized matrix: prefill on CUDA dequantizes one at a time."""
    if formats.device == "cpu" or formats.linears.is_dense:
        return 0
    if not config.has_native_family:
        return _sizes_of(config).largest_matrix * _ITEMSIZE[formats.compute]
    blocks = (block for block, _ in kinds_of_blocks(config))
    parts = (part for block in blocks for part in block.linears)
    largest = max((part.rows * part.columns for part in parts), default=0)
    return largest * _ITEMSIZE[formats.compute]


def part_bytes(part: LinearSpec, config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of a linear part of a block."""
    bias = part.rows * _bias_itemsize(formats) if part.has_bias else 0
    if formats.keeps_blocks:
        return _stored_bytes(part, config, formats) + bias
    return _matrix_bytes(part, _format_of(part, config, formats), formats) + bias


def _stored_bytes(part: LinearSpec, config: ModelConfig, formats: PartFormats) -> int:
    """Bytes of a part whose tensors stay in the file's block types."""
    total = 0
    for kind, pieces in groupby(
        part.pieces, lambda piece: config.stored_type(f"{piece.name}.weight")
    ):
        rows = sum(piece.rows for piece in pieces)
        spec = weight_formats().get(kind) if kind else dense_format_of(formats.compute)
        total += formats.fitting(spec, rows, part.columns).nbytes(
            rows, part.columns, formats.device
        )
    return total


def _format_of(part: LinearSpec, config: ModelConfig, formats: PartFormats) -> QuantSpec:
    """Return a part's format: on a card, parts joined of several tensors have plain scales."""
    is_stored_so = formats.linears.name == config.stored.card
    if not is_stored_so or part.is_one_tensor or part.stays_dense:
        return formats.linears
    return quant_registry().get("nf4")


def _matrix_bytes(part: LinearSpec, spec: QuantSpec, formats: PartFormats) -> int:
    """Bytes of a matrix in a format."""
    return formats.fitting_linear(part, spec).nbytes(part.rows, part.columns, formats.device)


def _bias_itemsize(formats: PartFormats) -> int:
    """Bytes of each number of a bias: the compiled CPU step adds in 32 bits."""
    item = _ITEMSIZE[formats.compute]
    return max(4, item) if formats.device == "cpu" else item


def _longest(most: int, room: int, needs: Callable[[int], int]) -> int:
    """Return the longest context whose needs fit the room; 0 if none does."""
    if needs(1) > room:
        return 0
    low, high = 1, most
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if needs(middle) <= room else (low, middle - 1)
    return low


def fit_of(free: int) -> Fit:
    """Return whether a plan that leaves `free` bytes fits."""
    if free < 0:
        return Fit.NO
    return Fit.TIGHT if free < _TIGHT_BYTES else Fit.FITS
