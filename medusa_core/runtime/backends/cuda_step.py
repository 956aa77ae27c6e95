"""Decoding steps on a card by kernels that fuse what lies between the products of a block.

A block takes nine launches: norm, QKV, rotation with the write to the cache, attention, merge of
its splits, output projection with the residual, norm, gate and up with the activation, and down
with the residual. Length, addresses of the cache and the tree's mask are in device memory, so that
one CUDA graph serves every cache and length.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.models.blocks.spec import Activation
from medusa_core.models.precision import Precision
from medusa_core.models.quant.card_linear import CardLinear, PreparedRows
from medusa_core.models.quant.combined_linear import JoinedLinear
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.runtime.backends.block import Attention, Block
from medusa_core.runtime.backends.caches import AddressedCache
from medusa_core.runtime.backends.cuda_blocks import (
    CardAttention,
    attention_kernel,
    fused_kernels_work,
    small_cache_works,
)
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.backends.experts import Mlp
from medusa_core.runtime.backends.norm import HeadNorm, RmsNorm, SplitQkNorm
from medusa_core.runtime.kv.size import head_bytes
from medusa_core.system.native.cuda import MAX_SPLITS, MOST_STEP_ROWS
from medusa_core.system.native.cuda.kernels import DTYPES, KV_DTYPES, PREPARED, QUANTIZED

_ACTIVATIONS = {Activation.SILU: 1, Activation.GELU_TANH: 2}  # of rows.cu
_HEADER = 3  # committed rows, slots of a head, nodes
_MARGIN = 1.01  # of bounds, for the rounding of weights and rows to halves
_MOST_DIMS = 256
_MEASURED_NODES = (1, 16)
_MEASURED_LAYERS = 4  # whose keys together exceed the L2 cache of most cards


class _Piece(NamedTuple):
    """Outputs of a fused projection that have one block type.

    Attributes:
        layer: Its weights.
        bias: [out], float32, or None for the layer's own.
        first: Its first output.
    """

    layer: CardLinear
    bias: Tensor | None
    first: int


@dataclass(frozen=True, slots=True)
class _FusedBlock:
    """A block whose projections are `CardLinear`s.

    Attributes:
        attention: Its attention.
        norms: Before attention, after it or None, before the MLP, and after it or None.
        head_norms: Weights of the norms of heads. [q heads + kv heads, head_dim], float32, or None
        eps: ε of these norms.
        qkv: Pieces of the fused projection.
        output: Pieces of the output projection.
        gate_up: Fused projections of the MLP.
        down: Pieces of the last one.
        slope: Factor of a row's norm in a bound of gate and up.
        offset: What is added to that.
    """

    attention: Attention
    norms: tuple[RmsNorm, RmsNorm | None, RmsNorm, RmsNorm | None]
    head_norms: Tensor | None
    eps: float
    qkv: tuple[_Piece, ...]
    output: tuple[_Piece, ...]
    gate_up: CardLinear
    down: tuple[_Piece, ...]
    slope: float
    offset: float


class FusedDecoder:
    """The blocks of a decoder by fused kernels.

    Attributes:
        num_addresses: Addresses of a cache that a step reads.
        splits: Parts into which attention splits the keys at most; bits of results depend on it.
    """

    def __init__(
        self,
        model: Decoder,
        precision: Precision,
        kernels: CardAttention,
        blocks: Sequence[_FusedBlock],
        value_bound: float,
    ) -> None:
        """Allocate the buffers of a step.

        Args:
            model: The target.
            precision: Its dtypes and device.
            kernels: The card's kernels.
            blocks: Its blocks.
            value_bound: No cached value exceeds it.
        """
        self._model, self._precision, self._blocks = model, precision, tuple(blocks)
        self._kernels, self._mma = kernels.kernels, kernels.has_tensor_cores
        self._dtype = DTYPES[precision.compute]
        self._cache_dtype = torch.uint8 if precision.cache_format else precision.cache
        self._activation = _ACTIVATIONS[model.config.activation.kind]
        self.num_addresses, self.splits = 2 * len(blocks), MAX_SPLITS
        first, hidden = blocks[0].attention.spec, model.config.hidden_size
        width = blocks[0].gate_up.outputs // 2
        heads = first.num_heads + 2 * first.num_kv_heads
        self._empty = torch.empty(0, dtype=precision.compute, device=precision.device)
        self._rows, self._update = self._prepared(hidden), self._numbers(hidden)
        self._attended, self._active = self._prepared(first.inner), self._prepared(width)
        self._writes_rows = self._mma or first.head_dim % 32 == 0  # quantized, else, by 32 numbers
        self._plain = self._numbers(0 if self._writes_rows else first.inner)
        self._qkv = self._numbers(heads * first.head_dim)
        self._q = self._numbers(first.inner).float()
        parts = (MOST_STEP_ROWS * first.num_heads * MAX_SPLITS, first.head_dim)
        self._sums = self._empty.new_empty(*parts, dtype=torch.float32)
        self._statistics = self._empty.new_empty(parts[0], 2, dtype=torch.float32)
        # The largest becomes at most 32,768; what a cache in float16 holds is no halves' limit.
        self._value_scale = 2.0 ** (math.ceil(math.log2(max(value_bound, 2.0**-100))) - 15)
        if precision.cache == torch.float16:
            self._value_scale = 1.0
        if self._mma:
            self._attended.scales.fill_(self._value_scale)

    @classmethod
    def of(cls, model: Decoder, precision: Precision) -> FusedDecoder | None:
        """Return the decoder with fused blocks; None where torch has to compute one of them."""
        kernels = model.card_attention
        config = model.config
        if kernels is None or precision.compute not in DTYPES or config.llama_4_scaling_beta:
            return None
        if precision.cache not in (torch.float16, torch.bfloat16) or model.per_layer is not None:
            return None
        if precision.cache_format not in ("", "q8_0") or precision.attended:
            return None
        if precision.cache_format and not small_cache_works(precision.device):
            return None
        if config.activation.kind not in _ACTIVATIONS or config.activation.gate_multiplier != 1:
            return None
        blocks = [fused for block in model.blocks if (fused := _pieces_of(block))]
        shapes = {(*_shape_of(block.attention), block.gate_up.outputs) for block in blocks}
        if len(blocks) < len(model.blocks) or len(shapes) > 1:
            return None
        if not fused_kernels_work(precision.device):
            return None
        bounded, value_bound = _with_bounds(blocks, config.hidden_size)
        return cls(model, precision, kernels, bounded, value_bound)

    @property
    def device(self) -> torch.device:
        """The card."""
        return self._precision.device

    @property
    def linears(self) -> Iterator[tuple[CardLinear, int]]:
        """All products of a step, with the `activation` of `CardLinear.multiply`."""
        for block in self._blocks:
            for piece in (*block.qkv, *block.output, *block.down):
                yield piece.layer, 0
            yield block.gate_up, self._activation
        if isinstance(self._model.lm_head, CardLinear):
            yield self._model.lm_head, 0

    def rows_of(
        self, layer: CardLinear, rows: int, activation: int
    ) -> tuple[PreparedRows, Tensor | PreparedRows]:
        """Allocate what a product of a step reads and writes, for measurements."""
        x = PreparedRows.empty(self._empty.new_zeros(rows, layer.columns), self._mma)
        y = self._empty.new_empty(rows, layer.outputs // 2 if activation else layer.outputs)
        x.scales.fill_(1)
        x.numbers.zero_()
        if not activation:
            return x, y
        active = PreparedRows.empty(y, self._mma)
        active.scales.fill_(1)
        return x, active

    @property
    def attention_shape(self) -> str:
        """What attention's times depend on, for people and as a key."""
        spec, cache = self._blocks[0].attention.spec, self._cache_dtype
        heads = f"{spec.num_heads} x {spec.num_kv_heads} x {spec.head_dim}"
        return f"attention {heads} {str(cache).removeprefix('torch.')}"

    def attention_work(self, num_keys: int) -> Callable[[int], None]:
        """Return attention of a node and a tree over `num_keys` keys, given a number of splits."""
        blocks = self._blocks[:_MEASURED_LAYERS]
        spec = blocks[0].attention.spec
        slots = num_keys + _MEASURED_NODES[-1]
        dtype, form = self._cache_dtype, self._precision.cache_format
        width = head_bytes(spec.head_dim, dtype.itemsize, form) // dtype.itemsize
        shape = (len(blocks), 2, spec.num_kv_heads, slots, width)
        cached = self._empty.new_zeros(shape, dtype=dtype)
        addresses = [part.data_ptr() for layer in cached for part in layer]
        addresses += [0] * (self.num_addresses - len(addresses))
        trees = []
        for rows in _MEASURED_NODES:
            ids, positions = [0] * rows, [num_keys] * rows
            own = [*ids, *positions, *range(num_keys, num_keys + rows)]
            words = [-1] * rows * -(-rows // 32)  # every node sees the others
            numbers = torch.tensor([num_keys, slots, rows, *addresses, *own, *words])
            trees.append((rows, numbers.to(self.device)))

        def attend(splits: int) -> None:
            """Attend in each of the layers."""
            self.splits = splits
            for index, block in enumerate(blocks[: len(cached)]):  # which keeps `cached`
                for rows, inputs in trees:
                    self._mix(index, block, rows, self._step_of(inputs, rows))

        return attend

    @property
    def buffers(self) -> tuple[Tensor, ...]:
        """All its buffers that a step writes."""
        plain = (self._update, self._plain, self._qkv, self._q, self._sums, self._statistics)
        rows = (self._rows.numbers, self._attended.numbers, self._active.numbers)
        scales = () if self._mma else (self._attended.scales,)  # else they are constant
        return *plain, *rows, self._rows.scales, self._active.scales, *scales

    def poison(self) -> None:
        """Fill all buffers with NaN, so that a check notices what a kernel doesn't write."""
        for buffer in self.buffers:
            buffer.fill_(torch.nan if buffer.is_floating_point() else 119)

    def addresses(self, kv: AddressedCache) -> list[int]:
        """Return what a step reads of a cache: slots of a head, then addresses of all layers."""
        layers = [kv.layer_addresses(layer) for layer in range(len(self._blocks))]
        return [layers[0].slots, *(at for layer in layers for at in (layer.keys, layer.values))]

    def num_inputs(self, rows: int) -> int:
        """Size of `inputs` for a step of `rows` rows."""
        return _HEADER + self.num_addresses + rows * (3 + -(-rows // 32))

    def run(self, x: Tensor, inputs: Tensor, states: Tensor, taps: Sequence[int]) -> None:
        """Compute all blocks and the final norm.

        Args:
            x: Embedded rows, which are overwritten. [n, hidden]
            inputs: Committed rows, slots of a head, nodes, addresses; then token ids, positions,
                slots and masks of all rows. int64 [num_inputs]
            states: Receives normalised outputs and tapped inputs. [n, 1 + taps, hidden]
            taps: Layers whose inputs are kept.
        """
        rows, update, tree = len(x), None, self._step_of(inputs, len(x))
        normed, active = _first(self._rows, rows), _first(self._active, rows)
        for index, block in enumerate(self._blocks):
            pre, post, pre_mlp, post_mlp = block.norms
            self._norm(x, pre, update, normed)
            if index in taps:
                states[:, 1 + taps.index(index)].copy_(x)
            mixed = self._attend(index, block, normed, tree)
            update = self._project(block.output, mixed, x, post)
            scales = active.scales if self._mma else None
            self._norm(x, pre_mlp, update, normed, scales, block.slope, block.offset)
            block.gate_up.multiply(normed, active, activation=self._activation)
            update = self._project(block.down, active, x, post_mlp)
        final = self._update[:rows] if taps else states.view(rows, -1)
        self._norm(x, self._model.final_norm, update, None, y=final)
        if taps:
            states[:, 0].copy_(final)
        if len(self._blocks) in taps:
            states[:, 1 + taps.index(len(self._blocks))].copy_(x)

    def _norm(
        self,
        x: Tensor,
        norm: RmsNorm,
        update: tuple[Tensor, RmsNorm] | None,
        rows: PreparedRows | None,
        product_scales: Tensor | None = None,
        slope: float = 0.0,
        offset: float = 0.0,
        y: Tensor | None = None,
    ) -> None:
        """Add a normalised update to `x`, and normalise it for the next product, or into `y`."""
        made, post = (None, None) if update is None else (update[0], update[1].weight)
        halves = (None, None) if rows is None or not self._mma else rows
        codes = (None, None) if rows is None or self._mma else rows
        self._kernels.launch(
            "norm_rows", len(x), 256, x, self._dtype, made, post, norm.weight,
            *halves, product_scales, *codes, y, x.shape[1], norm.eps, slope, offset,
        )  # fmt: skip

    def _attend(
        self,
        index: int,
        block: _FusedBlock,
        rows: PreparedRows,
        tree: tuple[Tensor, Tensor, Tensor, Tensor],
    ) -> PreparedRows:
        """Project rows, write keys and values, attend, and return prepared rows."""
        attention, (step, positions, slots, _) = block.attention.spec, tree
        count, head_dim = len(rows.numbers), attention.head_dim
        heads = attention.num_heads, attention.num_kv_heads
        qkv, q = self._qkv[:count], self._q[:count]
        for layer, bias, first in block.qkv:
            layer.multiply(rows, qkv[:, first : first + layer.outputs], bias=bias)
        rope = attention.rope
        table = None if rope is None else torch.view_as_real(self._model.ropes[rope].rotations(0))
        cache = KV_DTYPES[self._cache_dtype]
        self._kernels.launch(
            "rotate_rows", -(-count * (heads[0] + 2 * heads[1]) // 4), 128,
            qkv, self._dtype, block.head_norms, table, step, positions, slots, q, cache,
            index, count, *heads, head_dim, attention.softmax_scale, block.eps,
        )  # fmt: skip
        return self._mix(index, block, count, tree)

    def _mix(
        self,
        index: int,
        block: _FusedBlock,
        count: int,
        tree: tuple[Tensor, Tensor, Tensor, Tensor],
    ) -> PreparedRows:
        """Attend by rotated queries, and return prepared rows."""
        attention, (step, positions, _, visible) = block.attention.spec, tree
        heads, head_dim = (attention.num_heads, attention.num_kv_heads), attention.head_dim
        q, attended, cache = (
            self._q[:count],
            _first(self._attended, count),
            KV_DTYPES[self._cache_dtype],
        )
        group = count * heads[0] // heads[1]
        name = attention_kernel(head_dim, self._cache_dtype, self._mma)
        uses_mma = name != "attend_dot"
        grid = heads[1] * self.splits * -(-group // (64 if uses_mma else 16))
        arguments = (
            *(q, DTYPES[torch.float32], None, None, cache, 0, None, 0, 0, self._sums),
            *(self._statistics, count, *heads, 0, self.splits, step, visible, positions),
            *(attention.sliding_window or 0, index, attention.attn_logit_softcapping or 0.0),
        )
        self._kernels.launch(name, grid, 128, *arguments, *(() if uses_mma else (head_dim,)))
        sinks = block.attention.sinks
        mixed, kind = attended.numbers, PREPARED if self._mma else QUANTIZED
        if not self._writes_rows:
            mixed, kind = self._plain[:count], self._dtype
        code_scales = None if self._mma else attended.scales
        self._kernels.launch(
            "merge_splits", heads[1] * group, -(-head_dim // 32) * 32,
            self._sums, self._statistics, sinks, 0 if sinks is None else DTYPES[sinks.dtype],
            mixed, kind, code_scales, count, *heads, self.splits, head_dim, step,
            16 if uses_mma else 32, self._value_scale,
        )  # fmt: skip
        return attended if self._writes_rows else block.output[0].layer.prepare(mixed, attended)

    def _project(
        self, pieces: Sequence[_Piece], rows: PreparedRows, x: Tensor, post: RmsNorm | None
    ) -> tuple[Tensor, RmsNorm] | None:
        """Add a projection to `x`; if a norm comes first, return what the next one adds."""
        y = x if post is None else self._update[: len(x)]
        for layer, bias, first in pieces:
            part = y[:, first : first + layer.outputs]
            layer.multiply(rows, part, part if post is None else None, bias=bias)
        return None if post is None else (y, post)

    def _step_of(self, inputs: Tensor, rows: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return views of a step's inputs: all of them, positions, slots, attention masks."""
        numbers = inputs[_HEADER + self.num_addresses :]
        _, positions, slots = numbers[: 3 * rows].view(3, rows)
        return inputs, positions, slots, numbers[3 * rows :]

    def _numbers(self, width: int) -> Tensor:
        """Allocate a buffer for the rows of a step. [MOST_STEP_ROWS, width]"""
        return self._empty.new_empty(MOST_STEP_ROWS, width)

    def _prepared(self, width: int) -> PreparedRows:
        """Allocate rows in the layout that products read."""
        return PreparedRows.empty(self._numbers(width), self._mma)


def _first(rows: PreparedRows, count: int) -> PreparedRows:
    """Return the first prepared rows."""
    return PreparedRows(rows.numbers[:count], rows.scales[:count])


def _pieces_of(block: Block) -> _FusedBlock | None:
    """Return a block for the kernels, without its bounds; None if they can't compute it."""
    attention, mlp = block.attention, block.mlp
    if attention is None or not isinstance(mlp, Mlp) or len(block.mixers) > 1:
        return None
    spec, own = block.spec, attention.spec
    around = (spec.residual_multiplier, spec.mlp_multiplier)
    factors = (own.input_multiplier, own.output_multiplier, *around)
    others = (block.parallel_experts, block.per_layer, block.scale, block.convolutions)
    if any(factor != 1 for factor in factors) or any(other is not None for other in others):
        return None
    special = (own.is_gated, own.k_eq_v, not own.owned_kv_heads, not mlp.spec.has_gate)
    if any(special) or attention.head_scales is not None or attention.v_norm is not None:
        return None
    pre, pre_mlp, of_heads = block.pre_norm, block.pre_mlp_norm, _head_norms(attention)
    if pre is None or pre_mlp is None or pre.weight.dtype != torch.float32:
        return None
    if of_heads is None or own.head_dim > _MOST_DIMS:
        return None
    qkv, output, down = (
        tuple(_split(part)) for part in (attention.qkv, attention.output, mlp.down)
    )
    gate_up = mlp.gate_up  # in one launch, so that the kernel has both halves
    if not (qkv and output and down and isinstance(gate_up, CardLinear)):
        return None
    return _FusedBlock(
        attention,
        (pre, block.post_norm, pre_mlp, block.post_mlp_norm),
        *of_heads,
        qkv,
        output,
        gate_up,
        down,
        slope=0.0,
        offset=0.0,
    )


def _head_norms(attention: Attention) -> tuple[Tensor | None, float] | None:
    """Return the weights and ε of norms of heads; None if a norm spans more than one head."""
    norms, spec = attention.qk_norm, attention.spec
    if norms is None:
        return None, 0.0
    if isinstance(norms, HeadNorm):
        return norms.weight.float().contiguous(), norms.norm.eps
    if not isinstance(norms, SplitQkNorm):
        return None
    q, k = norms.q_norm, norms.k_norm
    if k is None or {len(q.weight), len(k.weight)} != {spec.head_dim}:
        return None
    counts = ((q, spec.num_heads), (k, spec.num_kv_heads))
    weights = torch.cat([norm.weight.float().expand(count, -1) for norm, count in counts])
    return weights.contiguous(), q.eps


def _split(linear: QuantLinear) -> Iterator[_Piece]:
    """Yield the pieces of a layer; none if the kernels can't multiply all of them."""
    if isinstance(linear, CardLinear):
        yield _Piece(linear, None, 0)
    elif isinstance(linear, JoinedLinear):
        layers = [layer for layer in linear.layers if isinstance(layer, CardLinear)]
        first, bias = 0, linear.bias
        for layer in layers if len(layers) == len(linear.layers) else ():
            own = None if bias is None else bias[first : first + layer.outputs].float()
            yield _Piece(layer, own, first)
            first += layer.outputs


def _shape_of(attention: Attention) -> tuple[int, int, int]:
    """Query heads, KV heads and head_dim."""
    return attention.spec.num_heads, attention.spec.num_kv_heads, attention.spec.head_dim


def _with_bounds(
    blocks: Sequence[_FusedBlock], hidden_size: int
) -> tuple[list[_FusedBlock], float]:
    """Bound the products of normalised rows, whose norm is at most √hidden · max |weight|.

    Returns:
        The blocks with bounds of gate and up, and a bound of all values.
    """
    numbers = []
    for block in blocks:
        attention, (pre, _, _, _) = block.attention.spec, block.norms
        norms = torch.cat([layer.row_norms() for layer, _, _ in block.qkv])
        of_values = norms[-attention.num_kv_heads * attention.head_dim :].max()
        biases = [layer.largest_bias(bias) for layer, bias, _ in block.qkv]
        row = pre.weight.abs().max() * math.sqrt(hidden_size)
        bound = row * of_values + torch.stack(biases).max()
        gate_up = block.gate_up
        numbers.append(torch.stack([bound, gate_up.row_norms().max(), gate_up.largest_bias()]))
    found = torch.stack(numbers).cpu().tolist()  # in one copy
    bounded = [
        replace(block, slope=_MARGIN * slope, offset=_MARGIN * offset)
        for block, (_, slope, offset) in zip(blocks, found, strict=True)
    ]
    return bounded, _MARGIN * max(bound for bound, _, _ in found)
