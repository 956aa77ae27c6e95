"""The decoder of Gemma 4, in torch's operations.

Layers have heads of two sizes; the last ones read keys and values of earlier ones; and where a
model has per-layer embeddings, each token enters every layer once more, through a gate.

Sources: transformers' `Gemma4TextModel`; llama.cpp's `gemma4.cpp` (read, not copied).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import AnyBlock, Decoder, SequenceRows
from medusa_core.models.experts import ExpertMlps, Mlp, read_mlp
from medusa_core.models.families.gemma4_text import EXPERT_NORMS
from medusa_core.models.gemma4_block import (
    ExpertsBeside,
    Gemma4Block,
    PerLayerGate,
    normed_heads,
    with_window,
)
from medusa_core.models.layer_shapes import RowShape, rows_read
from medusa_core.models.norm import RmsNorm
from medusa_core.models.parts import (
    PER_LAYER_NORM,
    PER_LAYER_PROJECTION,
    PER_LAYER_TABLE,
    BlockParts,
    block_parts,
    norm_names,
)
from medusa_core.models.plain_block import PlainBlock, PlainTokens, PositionTable
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.rope import Rope, in_halves, interleave_rows, rotate_heads
from medusa_core.models.token_table import TokenTable
from medusa_core.models.traits_decoder import TraitsDecoder
from medusa_core.models.weights import Weights


@dataclass(frozen=True, slots=True)
class PerLayerWeights:
    """What makes a token's vectors for all layers.

    Attributes:
        table: Of the token itself: on the device [vocabulary, layers · width], or on the host.
        projection: Of what enters the first layer. → [layers · width]
        norm: Of that projection, each layer's part on its own.
        width: Numbers for one layer.
    """

    table: Tensor | TokenTable
    projection: QuantLinear
    norm: RmsNorm
    width: int


@dataclass(slots=True)
class _Gemma4Pass:
    """What the blocks of one pass share.

    Attributes:
        positions: Of its rows. [n]
        turns: Rotations of layers that see all. [n, head_dim / 2], complex
        local: Of layers with a window.
        masks: Additive masks by window, query heads that share keys, and sequence.
    """

    positions: Tensor
    turns: Tensor
    local: Tensor
    masks: dict[tuple[int | None, int, int | None], Tensor | None] = field(default_factory=dict)


class Gemma4Decoder(TraitsDecoder):
    """A Gemma 4; `rotations` begins a pass, then `entering`, then its blocks."""

    def __init__(self, config: ModelConfig, precision: Precision, weights: Weights) -> None:
        self._gemma_blocks: list[Gemma4Block] = []
        self._value_norms: dict[int, RmsNorm] = {}
        self._per_layer: PerLayerWeights | None = None
        super().__init__(config, precision, weights)
        self._local_rope = Rope(with_window(config), precision.scores, precision.device)
        self._gemma_pass: _Gemma4Pass | None = None
        self._vectors: Tensor | None = None  # of the pass, for all layers. [n, layers, width]

    @property
    def gemma_blocks(self) -> Sequence[Gemma4Block]:
        """Weights of all blocks."""
        return self._gemma_blocks

    def read_blocks(self, weights: Weights) -> Sequence[AnyBlock]:
        config = self.config
        ones = {shape.head_dim for _, shape in map(self._rows_read, range(config.num_layers))}
        self._gemma_blocks = [self._read_one(weights, index) for index in range(config.num_layers)]
        like = self._gemma_blocks[0].scale
        self._value_norms = {
            size: RmsNorm(like.new_ones(size), config.rms_norm_eps) for size in ones
        }
        if config.traits.per_layer is not None:
            self._per_layer = self._read_per_layer(weights, config.traits.per_layer.width)
        return self._gemma_blocks

    @property
    def looked_up_width(self) -> int:
        of_layers = self._host_table
        width = 0 if of_layers is None else self._width_of_all
        return super().looked_up_width + width

    def offloaded_vectors(self, token_ids: Sequence[int]) -> Tensor | None:
        vectors, table = super().offloaded_vectors(token_ids), self._host_table
        if table is None:
            return vectors
        of_layers = table.rows(token_ids).to(self._compute)
        return of_layers if vectors is None else torch.cat([vectors, of_layers], dim=1)

    def entering(self, token_ids: Tensor, looked_up: Tensor | None) -> Tensor:
        own = self._per_layer
        if own is None:
            return super().entering(token_ids, looked_up)
        if looked_up is None:
            x, of_layers = self.embed(token_ids), self._of_layers(token_ids)
        elif not self.embeds_here:
            x = looked_up[:, : self.config.hidden_size]
            rest = looked_up[:, self.config.hidden_size :]
            of_layers = rest if rest.shape[1] else self._of_layers(token_ids)
        else:
            x, of_layers = self.embed(token_ids), looked_up
        self._vectors = self._combined(own, x, of_layers)
        return x

    def keep(self, rows: Tensor) -> None:
        if self._vectors is not None:
            self._vectors = self._vectors.index_select(0, rows)

    def turns(self, num_positions: int) -> Tensor:
        self._local_rope.turns(num_positions)
        return super().turns(num_positions)

    def rotations(self, positions: Tensor, num_positions: int) -> Tensor:
        turns, local = (
            rope.turns(num_positions).index_select(0, positions)
            for rope in (self._rope, self._local_rope)
        )
        self._gemma_pass = _Gemma4Pass(positions, turns, local)
        return turns

    def position_tables(self, num_positions: int) -> tuple[PositionTable, ...]:
        ropes = (self._rope, self._local_rope)
        return tuple(PositionTable(rope.turns(num_positions)) for rope in ropes)

    def brought(self, token_ids: Sequence[int]) -> Tensor | None:
        return None if self._per_layer is None else self._of_layers(torch.tensor(token_ids))

    def plain_tokens(self) -> PlainTokens | None:
        own = self._per_layer
        return None if own is None else PlainTokens(own.projection, own.norm.weight, own.width)

    def plain_block(self, index: int) -> PlainBlock:
        block = self._gemma_blocks[index]
        assert isinstance(block.mlp, Mlp)  # its gate is compiled
        linears = {
            "qkv": block.qkv,
            "output": block.output,
            "gate_up": block.mlp.gate_up,
            "down": block.mlp.down,
        }
        if block.per_layer is not None:
            linears["token_gate"] = block.per_layer.gate
            linears["token_projection"] = block.per_layer.projection
        return PlainBlock(
            linears=linears,
            norms=block.norms,
            q_norm=block.q_norm.weight,
            k_norm=None if block.k_norm is None else block.k_norm.weight,
            v_norm=self._value_norms[block.rows.head_dim].weight,
            token_norm=None if block.per_layer is None else block.per_layer.norm.weight,
            table=0 if block.window is None else 1,
            query_scale=1.0,
            window=block.window,
            attention_cap=None,
            num_kv_heads=block.rows.num_kv_heads,
            head_dim=block.rows.head_dim,
            inner=self.config.mlp_width(index),
            shares_rows=block.owner != index,
            keys_are_values=block.keys_are_values,
            scale=float(block.scale),
        )

    def block(
        self,
        index: int,
        x: Tensor,
        rotations: Tensor,
        sequences: Sequence[SequenceRows],
        only_row: int | None = None,
    ) -> Tensor:
        now, weights = self._gemma_pass, self._gemma_blocks[index]
        assert now is not None  # of `rotations`
        turns = now.turns if weights.window is None else now.local
        turned = self._turned(weights, weights.projected(x), turns)
        mixed = self.mixed(index, turned, sequences, only_row)
        if only_row is not None:
            x = x[only_row : only_row + 1]
        x = weights.behind(x, mixed, self._active)
        if weights.per_layer is not None:
            assert self._vectors is not None  # of `entering`
            vectors = self._vectors[:, index]
            kept = vectors if only_row is None else vectors[only_row : only_row + 1]
            x = weights.per_layer(x, kept)
        return x * weights.scale

    def _turned(self, weights: Gemma4Block, projected: Tensor, turns: Tensor) -> Tensor:
        """Queries, and keys and values if they are its own. [n, heads, head_dim]"""
        num_q, (num_kv, size) = self.config.num_heads, _sizes(weights.rows)
        heads = projected.view(len(projected), -1, size)
        queries = normed_heads(weights.q_norm, heads[:, :num_q])
        if weights.k_norm is None:
            return rotate_heads(queries, turns)
        raw = heads[:, num_q : num_q + num_kv]
        values = in_halves(raw) if weights.keys_are_values else heads[:, num_q + num_kv :]
        keys = normed_heads(weights.k_norm, raw)
        turned = rotate_heads(torch.cat([queries, keys], dim=1), turns)
        values = normed_heads(self._value_norms[size], values)
        return torch.cat([turned, values.to(turned.dtype)], dim=1)

    def _mixed_of(
        self, index: int, turned: Tensor, its: SequenceRows, only_row: int | None
    ) -> Tensor:
        weights, num_q = self._gemma_blocks[index], self.config.num_heads
        if weights.owner == index:
            found = its.kv.write(index, turned[:, num_q:])
        else:
            found = its.kv.read(weights.owner)
        return self._seen(index, turned[:, :num_q], found, its, only_row)

    def attend(
        self, index: int, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
    ) -> Tensor:
        return Decoder.attend(self, index, q, keys, values, mask)

    def mask_of(self, index: int, its: SequenceRows, width: int) -> Tensor | None:
        """A layer's mask, with its rows repeated for the query heads that share a key head."""
        now, weights = self._gemma_pass, self._gemma_blocks[index]
        assert now is not None  # of `rotations`
        group = self.config.num_heads // weights.rows.num_kv_heads
        key = (weights.window, group, its.rows.start)
        if key not in now.masks:
            positions = now.positions[its.rows]
            seen = None if its.mask is None else its.mask[: len(positions)]
            if weights.window is not None:
                columns = torch.arange(width, device=positions.device)
                hidden = columns <= (positions - weights.window)[:, None]
                lost = torch.zeros(hidden.shape, dtype=self._scores_dtype, device=hidden.device)
                lost = lost.masked_fill_(hidden, float("-inf"))
                seen = lost if seen is None else seen + lost
            now.masks[key] = None if seen is None else seen.repeat(group, 1)
        return now.masks[key]

    @property
    def _host_table(self) -> TokenTable | None:
        """The table of per-layer embeddings where that is looked up on the host."""
        own = self._per_layer
        return None if own is None or isinstance(own.table, Tensor) else own.table

    @property
    def _width_of_all(self) -> int:
        """Numbers of a token for all layers."""
        return 0 if self._per_layer is None else self.config.num_layers * self._per_layer.width

    def _of_layers(self, token_ids: Tensor) -> Tensor:
        """What a token brings to all layers. [n] → [n, layers · width]"""
        assert self._per_layer is not None
        table = self._per_layer.table
        if isinstance(table, Tensor):
            return table.index_select(0, token_ids).to(self._compute)
        found = table.rows(token_ids.tolist())
        return found.to(token_ids.device, self._compute)

    def _combined(self, own: PerLayerWeights, x: Tensor, of_layers: Tensor) -> Tensor:
        """A token's vectors for all layers: its own, and of what enters. [n, layers, width]"""
        shape = (len(x), -1, own.width)
        projected = own.projection(x)
        projected = (projected * self.config.hidden_size**-0.5).reshape(-1, own.width)
        scaled = of_layers.to(projected.dtype) * math.sqrt(own.width)
        both = own.norm(projected).view(shape) + scaled.reshape(shape)
        return both * math.sqrt(0.5)

    def _rows_read(self, index: int) -> tuple[int, RowShape]:
        found = rows_read(self.config.layers, index)
        assert found is not None  # every layer attends
        return found

    def _read_one(self, weights: Weights, index: int) -> Gemma4Block:
        config, parts = self.config, block_parts(self.config, index)
        assert parts.qkv is not None
        assert parts.output is not None
        assert parts.mlp is not None
        first, second, third, fourth = (
            self.read_norm(weights, f"{parts.prefix}.{name}", config.hidden_size)
            for name in norm_names(config)
        )
        owner, rows = self._rows_read(index)
        attention = f"{parts.prefix}.self_attn"
        qkv, output = weights.linear(parts.qkv), weights.linear(parts.output)
        per_layer = self._read_gate(weights, parts)
        windows = config.traits.windows
        return Gemma4Block(
            norms=(first, second, third, fourth),
            owner=owner,
            rows=rows,
            window=windows[index],
            q_norm=self._head_norm(weights, f"{attention}.q_norm", rows.head_dim),
            k_norm=self._head_norm(weights, f"{attention}.k_norm", rows.head_dim)
            if owner == index
            else None,
            keys_are_values=index in config.traits.keys_are_values,
            qkv=qkv,
            output=output,
            mlp=read_mlp(weights, parts.mlp),
            experts=self._read_experts(weights, parts),
            per_layer=per_layer,
            scale=weights.named(f"{parts.prefix}.layer_scalar", 1),
        )

    def _head_norm(self, weights: Weights, name: str, size: int) -> RmsNorm:
        vector = interleave_rows(weights.vector(name, size), size)
        return RmsNorm(vector, self.config.rms_norm_eps)

    def _read_experts(self, weights: Weights, parts: BlockParts) -> ExpertsBeside | None:
        traits, hidden = self.config.traits.experts, self.config.hidden_size
        if traits is None or parts.router is None:
            return None
        before, behind_mlp, behind = (
            self.read_norm(weights, f"{parts.prefix}.{name}", hidden) for name in EXPERT_NORMS
        )
        scale = weights.named(f"{parts.prefix}.router.scale", hidden)
        scales = weights.named(f"{parts.prefix}.router.per_expert_scale", traits.count)
        mlps = [read_mlp(weights, mlp) for mlp in parts.experts]
        return ExpertsBeside(
            norms=(before, behind_mlp, behind),
            router_norm=RmsNorm(scale * hidden**-0.5, self.config.rms_norm_eps),
            mlps=ExpertMlps(traits, weights.linear(parts.router), mlps, scales=scales),
        )

    def _read_gate(self, weights: Weights, parts: BlockParts) -> PerLayerGate | None:
        if not parts.mixer:
            return None
        gate, projection = (weights.linear(part) for part in parts.mixer)
        name = f"{parts.prefix}.post_per_layer_input_norm"
        return PerLayerGate(
            gate, projection, self.read_norm(weights, name, self.config.hidden_size)
        )

    def _read_per_layer(self, weights: Weights, width: int) -> PerLayerWeights:
        config = self.config
        traits, total = config.traits.per_layer, config.num_layers * width
        assert traits is not None
        table = weights.token_table(PER_LAYER_TABLE, traits.vocab_size, total)
        norm = weights.named(PER_LAYER_NORM, width)
        return PerLayerWeights(
            table=table,
            projection=make_linear(weights.named(PER_LAYER_PROJECTION, total, config.hidden_size)),
            norm=RmsNorm(norm, config.rms_norm_eps),
            width=width,
        )


def _sizes(rows: RowShape) -> tuple[int, int]:
    return rows.num_kv_heads, rows.head_dim
