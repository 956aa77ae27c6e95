"""Runs blocks in torch's operations: the reference, training, and every device.

Sources: Gemma 2 and 3 (Gemma Team 2024, 2025), OLMo 2 (OLMo Team 2024), Granite 3 and 4 (IBM 2024,
2025), SmolLM3 (Hugging Face 2025), Gated Delta Networks (Yang et al. 2024), Gated Attention (Qiu et
al. 2025), Mamba-2 (Dao and Gu 2024), Falcon-H1 (TII 2025), LFM2 (Liquid AI 2025), GPT-OSS (OpenAI
2025); transformers' `Gemma4TextModel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.blocks.spec import AttentionSpec
from medusa_core.models.config import ModelConfig
from medusa_core.models.row_order import in_halves, strided_by_group
from medusa_core.runtime.backends.activation import Active, active_of
from medusa_core.runtime.backends.attention import (
    Attend,
    attend_by_products,
    attend_in_groups,
    choose_attention,
)
from medusa_core.runtime.backends.block import (
    Attention,
    Block,
    DeltaNet,
    Mamba2,
    Mixer,
    ParallelExperts,
    PerLayerGate,
    ShortConvolution,
)
from medusa_core.runtime.backends.caches import SequenceRows
from medusa_core.runtime.backends.cuda_blocks import CardAttention
from medusa_core.runtime.backends.experts import Mlp
from medusa_core.runtime.backends.norm import RmsNorm
from medusa_core.runtime.backends.recurrence import (
    convolve,
    delta_rule,
    short_convolution,
    state_space,
)
from medusa_core.runtime.backends.rope import fused_factors, rotate

_L2_EPS = 1e-6


class RopeTable(Protocol):
    """Table of rotations by position."""

    def rotations(self, num_positions: int) -> Tensor:
        """Return at least `num_positions` rotations. [positions, head_dim / 2], complex"""

    def identity(self, num_rows: int, size: int) -> Tensor:
        """Return rotations by 0. [num_rows, size], complex"""


@dataclass(slots=True)
class PassContext:
    """State of a pass that its blocks share.

    Attributes:
        positions: Positions of its rows. [n]
        num_positions: One more than the highest position that may occur.
        ropes: Rotary embeddings of the model, by index.
        group: Query heads per key head that the sequences' masks are repeated for.
        scores_dtype: Dtype of attention scores.
        attend: Attention on the model's device.
        attend_on_cpu: Attention where keys and values are in the computer's memory.
        active: Activation of MLPs.
        query_factors: Position-dependent factors of queries that rotate, or None. [n]
        per_layer: Per-layer embeddings of the rows. [n, layers, width], or None.
        card_attention: Attention by our own kernels where the device is a card that has them.
    """

    positions: Tensor
    num_positions: int
    ropes: Sequence[RopeTable]
    group: int
    scores_dtype: torch.dtype
    attend: Attend
    attend_on_cpu: Attend
    active: Active
    query_factors: Tensor | None = None
    per_layer: Tensor | None = None
    card_attention: CardAttention | None = None
    _factors: dict[tuple[int | None, float, int, int, int], Tensor] = field(default_factory=dict)
    _masks: dict[tuple[int | None, int, int | None], Tensor | None] = field(default_factory=dict)

    @classmethod
    def of_layers(
        cls,
        config: ModelConfig,
        positions: Tensor,
        num_positions: int,
        ropes: Sequence[RopeTable],
        scores_dtype: torch.dtype,
        group_size: int = 0,
        is_causal: bool = False,
    ) -> PassContext:
        """Return the context of layers outside a target, such as those of heads.

        Args:
            config: Sizes of the layers.
            positions: Positions of the rows. [n]
            num_positions: One more than the highest position that may occur.
            ropes: Rotary embeddings of the layers.
            scores_dtype: Dtype of attention scores.
            group_size: Rows of a group in training; 0 for none. See `attend_in_groups`.
            is_causal: Rows of a group see those before them only.
        """
        attend = choose_attention(positions.device)
        if group_size:
            attend = attend_in_groups(group_size, is_causal)
        group, active = config.num_heads // config.num_kv_heads, active_of(config.activation)
        return cls(positions, num_positions, ropes, group, scores_dtype, attend, attend, active)

    def only(self, rows: Tensor) -> PassContext:
        """Return the context of some of the rows. [k], int64"""
        vectors, queries = self.per_layer, self.query_factors
        return replace(
            self,
            positions=self.positions.index_select(0, rows),
            per_layer=None if vectors is None else vectors.index_select(0, rows),
            query_factors=None if queries is None else queries.index_select(0, rows),
            _factors={},
            _masks={},
        )

    def factors(self, spec: AttentionSpec) -> Tensor:
        """Return complex factors of fused rows: rotation, and the scale of queries.

        Returns:
            [n, q heads + own kv heads, head_dim / 2], complex
        """
        num_own, scale = spec.owned_kv_heads, spec.softmax_scale
        key = (spec.rope, scale, spec.num_heads, num_own, spec.head_dim)
        if key not in self._factors:
            rope = self.ropes[spec.rope or 0]
            if spec.rope is None:
                turn = rope.identity(len(self.positions), spec.head_dim // 2)
            else:
                turn = rope.rotations(self.num_positions).index_select(0, self.positions)
            factors = fused_factors(turn, spec.num_heads, num_own, scale)
            if self.query_factors is not None and spec.rope is not None:
                factors[:, : spec.num_heads] *= self.query_factors[:, None, None]
            self._factors[key] = factors
        return self._factors[key]

    def mask(self, spec: AttentionSpec, sequence: SequenceRows, width: int) -> Tensor | None:
        """Return the additive mask of a sequence's rows over `width` cache slots.

        Committed rows are in the columns of their positions, and the rows of a pass after them:
        those are never further back than any window.

        Returns:
            [query heads per key head · n, width], or None if all rows attend to all slots.
        """
        window, group = spec.sliding_window, spec.num_heads // spec.num_kv_heads
        if window is None and group == self.group:
            return sequence.mask
        key = (window, group, sequence.rows.start)
        if key not in self._masks:
            self._masks[key] = self._build_mask(window, group, sequence, width)
        return self._masks[key]

    def _build_mask(
        self, window: int | None, group: int, sequence: SequenceRows, width: int
    ) -> Tensor | None:
        """Repeat a sequence's mask for `group` heads; a window hides rows further back."""
        positions = self.positions[sequence.rows]
        seen = None if sequence.mask is None else sequence.mask[: len(positions)]
        if window is not None:
            columns = torch.arange(width, device=positions.device)
            hidden = columns <= (positions - window)[:, None]
            lost = torch.zeros(hidden.shape, dtype=self.scores_dtype, device=hidden.device)
            lost = lost.masked_fill_(hidden, float("-inf"))
            seen = lost if seen is None else seen + lost
        return None if seen is None else seen.repeat(group, 1)


def run_block(
    index: int,
    block: Block,
    x: Tensor,
    context: PassContext,
    sequences: Sequence[SequenceRows],
    only_row: int | None = None,
    residual: Tensor | None = None,
) -> Tensor:
    """Run one block.

    Args:
        index: Index of the layer in the caches.
        block: The block.
        x: [n, hidden]
        context: Context of the pass.
        sequences: Range, mask and cache of each sequence.
        only_row: The one row of a single sequence whose output is needed; all rows update the
            cache.
        residual: Residual stream if mixers have another input, as in EAGLE's first
            layer. [n, hidden]

    Returns:
        [n, hidden], or [1, hidden]
    """
    kept = slice(None) if only_row is None else slice(only_row, only_row + 1)
    residual = x[kept] if residual is None else residual[kept]
    if block.mixers:
        normed = x if block.pre_norm is None else block.pre_norm(x)
        residual = _mixed(index, block, normed, residual, context, sequences, only_row)
    if block.mlp is not None:
        residual = _through_mlp(block, residual, context.active)
    if block.per_layer is not None:
        assert context.per_layer is not None  # the model has a table of them
        residual = _per_layer(block.per_layer, residual, context.per_layer[kept, index])
    return residual if block.scale is None else residual * block.scale


def _mixed(
    index: int,
    block: Block,
    normed: Tensor,
    residual: Tensor,
    context: PassContext,
    sequences: Sequence[SequenceRows],
    only_row: int | None,
) -> Tensor:
    """Add the branches to the residual. [n, hidden], or one row"""
    convolution, kernels = None, None
    if block.convolutions is not None:
        assert len(sequences) == 1  # rows of several would be mixed
        assert only_row is None
        convolution = block.convolutions[0]
        normed, kernels = convolution.before(normed)
    scale = block.spec.residual_multiplier
    is_plain = block.post_norm is None and scale == 1 and convolution is None
    if is_plain and len(block.mixers) == 1 and block.mixers[0].spec.output_multiplier == 1:
        (mixer,) = block.mixers
        made = _mix(index, mixer, normed, context, sequences, only_row)
        return mixer.output.plus(made.to(residual.dtype), residual)
    total = None
    for mixer in block.mixers:
        made = _mix(index, mixer, normed, context, sequences, only_row)
        made = _times(mixer.output(made.to(residual.dtype)), mixer.spec.output_multiplier)
        total = made if total is None else total + made
    assert total is not None  # a block without mixers doesn't come here
    if convolution is not None and kernels is not None:
        total = convolution.after(total, kernels)
    return _plus(residual, total, block.post_norm, scale)


def _through_mlp(block: Block, x: Tensor, active: Active) -> Tensor:
    """Add the MLP, or experts, to the residual. [n, hidden]"""
    mlp, spec = block.mlp, block.spec
    assert mlp is not None
    normed = x if block.pre_mlp_norm is None else block.pre_mlp_norm(x)
    scale = spec.residual_multiplier * spec.mlp_multiplier
    if block.convolutions is not None:
        normed, kernels = block.convolutions[1].before(normed)
        made = block.convolutions[1].after(mlp(normed, active), kernels)
        return _plus(x, made, block.post_mlp_norm, scale)
    experts, norm = block.parallel_experts, block.post_mlp_norm
    if isinstance(mlp, Mlp) and experts is None and norm is None and scale == 1:
        return mlp.plus(normed, active, x)
    made = mlp(normed, active)
    if experts is not None:
        made = _with_experts(experts, x, made, active)
    return _plus(x, made, block.post_mlp_norm, scale)


def _with_experts(parallel: ParallelExperts, x: Tensor, made: Tensor, active: Active) -> Tensor:
    """Add the outputs of an MLP and of the experts in parallel to it. [n, hidden]"""
    routed = parallel.experts(parallel.pre_norm(x), active, parallel.router_norm(x))
    return parallel.post_mlp_norm(made) + parallel.post_norm(routed)


def _per_layer(gate: PerLayerGate, x: Tensor, vectors: Tensor) -> Tensor:
    """[n, hidden], [n, width] → [n, hidden]"""
    opened = F.gelu(gate.gate(x), approximate="tanh")
    return x + gate.norm(gate.projection(opened * vectors))


def _plus(x: Tensor, output: Tensor, norm: RmsNorm | None, scale: float) -> Tensor:
    """Add a block's output, normalized and scaled, to the residual. [n, hidden]"""
    return x + _times(output if norm is None else norm(output), scale)


def _mix(
    index: int,
    mixer: Mixer,
    normed: Tensor,
    context: PassContext,
    sequences: Sequence[SequenceRows],
    only_row: int | None,
) -> Tensor:
    """Run a mixer up to its output projection. [n, inner], or one row"""
    x = _times(normed, mixer.spec.input_multiplier)
    if isinstance(mixer, Attention):
        return attend_block(index, mixer, x, context, sequences, only_row)
    if isinstance(mixer, DeltaNet):
        return _delta_net(index, mixer, x, sequences, only_row)
    if isinstance(mixer, Mamba2):
        return _mamba(index, mixer, x, sequences, only_row)
    return _short_convolution(index, mixer, x, sequences, only_row)


def project(attention: Attention, x: Tensor, context: PassContext) -> tuple[Tensor, Tensor | None]:
    """Project rows to queries, keys and values, normalised and rotated.

    Args:
        attention: The attention.
        x: [n, hidden]
        context: Context of the pass.

    Returns:
        [n, q heads + own kv heads, head_dim] in float32 or float64, and the logits of the output
        gate [n, q heads · head_dim] or None.
    """
    spec, rows, gate = attention.spec, attention.qkv(x), None
    if spec.is_gated:
        rows, gate = rows[:, : -spec.inner], rows[:, -spec.inner :]
    if spec.k_eq_v:
        keys = rows[:, spec.inner :].view(len(rows), -1, spec.head_dim)
        rows = torch.cat([rows, in_halves(keys).flatten(1)], dim=1)
    if attention.qk_norm is not None:
        rows = attention.qk_norm(rows)
    if attention.v_norm is not None and spec.kv_layer is None:
        width = spec.num_kv_heads * spec.head_dim
        values = rows[:, -width:].reshape(-1, spec.head_dim)
        rows = torch.cat([rows[:, :-width], attention.v_norm(values).view(len(rows), -1)], dim=1)
    rotated = rotate(rows, context.factors(spec))
    if attention.head_scales is not None:
        rotated = rotated * attention.head_scales
    return rotated, gate


def attend_block(
    index: int,
    attention: Attention,
    x: Tensor,
    context: PassContext,
    sequences: Sequence[SequenceRows],
    only_row: int | None,
) -> Tensor:
    """Attention of all sequences' rows over their caches.

    Where keys and values are in the computer's memory, the processor computes attention there:
    queries and new rows go down at once, and results come up.

    Returns:
        [n, q heads · head_dim], or [1, q heads · head_dim]
    """
    rotated, gate = project(attention, x, context)
    device, kv_device = rotated.device, sequences[0].kv.device_of(index)
    rotated = rotated.to(kv_device)
    made = [
        _attend(index, attention, rotated[one.rows], context, one, only_row) for one in sequences
    ]
    mixed = (made[0] if len(made) == 1 else torch.cat(made)).to(device)
    if gate is None:
        return mixed
    if only_row is not None:
        gate = gate[only_row : only_row + 1]
    return mixed * torch.sigmoid(gate.to(mixed.dtype))


def _attend(
    index: int,
    attention: Attention,
    rotated: Tensor,
    context: PassContext,
    sequence: SequenceRows,
    only_row: int | None,
) -> Tensor:
    """Attention of one sequence's rows. [n, q heads · head_dim], or one row"""
    spec = attention.spec
    q = rotated[:, : spec.num_heads]
    if spec.kv_layer is None:
        found = sequence.kv.write(index, rotated[:, spec.num_heads :])
    else:
        found = sequence.kv.read(spec.kv_layer)
    dtype, is_here = context.scores_dtype, q.device.type == context.positions.device.type
    if is_here and context.card_attention is not None and context.card_attention.takes(q, found[0]):
        mask = context.mask(spec, sequence, found[0].shape[1])
        if only_row is not None:
            row = slice(only_row, only_row + 1)
            q, mask = q[row], None if mask is None else mask[row]
        cap = spec.attn_logit_softcapping
        return context.card_attention(q, *found, mask, attention.sinks, cap)
    if not is_here:  # a processor is slow at narrow numbers
        dtype = torch.promote_types(dtype, torch.float32)
    keys, values = (part.to(dtype) for part in found)
    mask = context.mask(spec, sequence, keys.shape[1])
    if only_row is not None:
        mask = None if mask is None else mask[only_row :: len(q)]
        q = q[only_row : only_row + 1]
    mask = None if mask is None else mask.to(q.device, dtype)
    q = q.to(dtype)
    if attention.sinks is not None or spec.attn_logit_softcapping is not None:
        cap = spec.attn_logit_softcapping
        return attend_by_products(q, keys, values, mask, attention.sinks, cap)
    return (context.attend if is_here else context.attend_on_cpu)(q, keys, values, mask)


def _delta_net(
    index: int,
    net: DeltaNet,
    x: Tensor,
    sequences: Sequence[SequenceRows],
    only_row: int | None,
) -> Tensor:
    """Run a gated delta net up to its output projection.

    Args:
        index: Index of the layer.
        net: The layer's weights.
        x: Normed hidden states. [n, hidden]
        sequences: Rows of each sequence, with its recurrent state.
        only_row: Only row to return; None for all.

    Returns:
        [n, heads · value_dim], or [1, heads · value_dim]
    """
    shape, wide = net.spec.state, net.rate.dtype
    projected, gates = net.in_proj(x), net.gates(x).to(wide)
    inputs, z = projected[:, : shape.channels], projected[:, shape.channels :]
    beta, dt = gates.chunk(2, dim=-1)
    beta, decays = torch.sigmoid(beta), net.rate * F.softplus(dt + net.dt_bias)
    made = [
        _delta_net_of(index, net, inputs[one.rows], beta[one.rows], decays[one.rows], one)
        for one in sequences
    ]
    read = made[0] if len(made) == 1 else torch.cat(made)
    if only_row is not None:
        read, z = read[only_row : only_row + 1], z[only_row : only_row + 1]
    normed = net.norm(read.reshape(-1, shape.value_dim)).to(wide)
    gated = normed.view(len(read), -1) * F.silu(z.to(wide))
    groups = net.spec.output.grouped_heads
    return gated if groups is None else strided_by_group(gated, groups)


def _delta_net_of(
    index: int, net: DeltaNet, inputs: Tensor, beta: Tensor, decays: Tensor, sequence: SequenceRows
) -> Tensor:
    """Readout of one sequence's rows. [n, heads, value_dim]"""
    shape, tail = net.spec.state, sequence.kv.state(index).tail
    mixed = F.silu(convolve(inputs.to(net.rate.dtype), tail, net.conv, None, sequence.tree))
    keys = shape.num_key_heads * shape.key_dim
    q, k, v = torch.split(mixed, [keys, keys, shape.num_heads * shape.value_dim], dim=-1)
    q, k = (_unit(part.view(len(part), -1, shape.key_dim)) for part in (q, k))
    v = v.view(len(v), -1, shape.value_dim)
    return delta_rule(q * shape.key_dim**-0.5, k, v, beta, decays, inputs, sequence, index)


def _unit(heads: Tensor) -> Tensor:
    """L2-normalize vectors. [n, heads, key_dim]"""
    return heads * torch.rsqrt(heads.square().sum(-1, keepdim=True) + _L2_EPS)


def _mamba(
    index: int, mamba: Mamba2, x: Tensor, sequences: Sequence[SequenceRows], only_row: int | None
) -> Tensor:
    """Run a Mamba-2 mixer up to its output projection; as `_delta_net`."""
    projected = mamba.in_proj(x).to(mamba.rate.dtype)
    if mamba.factors is not None:
        projected = projected * mamba.factors
    spec, shape = mamba.spec, mamba.spec.state
    sizes = [shape.num_heads * shape.value_dim, shape.channels, shape.num_heads]
    gate, inputs, steps = torch.split(projected, sizes, dim=-1)
    steps = F.softplus(steps + mamba.dt_bias).clamp(spec.time_step_min, spec.time_step_max)
    made = [_mamba_of(index, mamba, inputs[one.rows], steps[one.rows], one) for one in sequences]
    mixed = made[0] if len(made) == 1 else torch.cat(made)
    if only_row is not None:
        mixed, gate = (part[only_row : only_row + 1] for part in (mixed, gate))
    gate = F.silu(gate)
    return mixed * gate if mamba.norm is None else mamba.norm(mixed, gate)


def _mamba_of(
    index: int, mamba: Mamba2, inputs: Tensor, steps: Tensor, sequence: SequenceRows
) -> Tensor:
    """Readout of one sequence's rows. [n, heads · value_dim]"""
    shape, count = mamba.spec.state, len(inputs)
    inner, width = shape.num_heads * shape.value_dim, shape.num_key_heads * shape.key_dim
    tail = sequence.kv.state(index).tail
    mixed = F.silu(convolve(inputs, tail, mamba.conv, mamba.conv_bias, sequence.tree))
    x, b, c = torch.split(mixed, [inner, width, width], dim=-1)
    x = x.view(count, shape.num_heads, shape.value_dim)
    b, c = (part.view(count, shape.num_key_heads, shape.key_dim) for part in (b, c))
    written, decays = x * steps.unsqueeze(-1), steps * mamba.rate
    read = state_space(c, b, written, decays, inputs, sequence, index)
    return (read + x * mamba.skip.unsqueeze(-1)).reshape(count, inner)


def _short_convolution(
    index: int,
    weights: ShortConvolution,
    x: Tensor,
    sequences: Sequence[SequenceRows],
    only_row: int | None,
) -> Tensor:
    """[n, hidden] → [n, hidden], or one row"""
    input_gate, output_gate, inner = weights.in_proj(x).chunk(3, dim=-1)
    inputs = input_gate * inner
    made = [
        short_convolution(inputs[one.rows], weights.conv, weights.bias, one, index)
        for one in sequences
    ]
    mixed = output_gate * (made[0] if len(made) == 1 else torch.cat(made))
    return mixed if only_row is None else mixed[only_row : only_row + 1]


def _times(x: Tensor, factor: float) -> Tensor:
    """Multiply by a factor; the same tensor for 1."""
    return x if factor == 1 else x * factor
