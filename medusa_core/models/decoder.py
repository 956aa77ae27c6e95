"""The decoder of Llama and its relatives: it embeds, runs one block, and projects.

In what these differ, `Traits` say. A family that differs in more has a decoder of its own in its
file, which overrides what it must.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.models.attention import choose_attention
from medusa_core.models.config import ModelConfig
from medusa_core.models.norm import HeadNorm, RmsNorm
from medusa_core.models.parts import EMBEDDING, FINAL_NORM, block_parts, lm_head_part
from medusa_core.models.plain_block import PlainBlock, PlainTokens, PositionTable
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.rope import Rope, interleave_rows, rotate
from medusa_core.models.row_tree import RowTree
from medusa_core.models.token_table import TokenTable
from medusa_core.models.weights import Weights

LINEARS = ("qkv", "output", "gate_up", "down")  # of a block


class LayerState(NamedTuple):
    """What a recurrent layer remembers of all committed rows.

    Attributes:
        state: [heads, key_dim, value_dim], float32 or float64
        tail: The last inputs of its convolution. [conv_width − 1, channels], likewise
    """

    state: Tensor
    tail: Tensor


class RecurrentSteps(NamedTuple):
    """What rows would change in a recurrent layer: S becomes decay · S + key · updateᵀ.

    Attributes:
        keys: [n, key heads, key_dim]
        updates: [n, heads, value_dim]
        decays: Logarithms. [n, heads]
        inputs: Of the convolution. [n, channels]
    """

    keys: Tensor
    updates: Tensor
    decays: Tensor
    inputs: Tensor


class LayerCache(Protocol):
    """Where a block stores what it remembers, and reads that of all rows before."""

    def write(self, layer: int, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Store the reserved rows of one layer; see `kv.tensor.TensorCache.write`."""

    def read(self, layer: int) -> tuple[Tensor, Tensor]:
        """What `write` gave for a layer in this pass."""

    def device_of(self, layer: int) -> torch.device:
        """Where the keys and values of a layer lie in this pass."""

    def state(self, layer: int) -> LayerState:
        """The state of a recurrent layer behind all committed rows; it isn't to be changed."""

    def put_state(self, layer: int, state: LayerState) -> None:
        """Take the state behind all rows of a decided chain but the last."""

    def put_steps(self, layer: int, steps: RecurrentSteps) -> None:
        """Take the steps of all rows of a pass; of a decided chain that of the last row."""


class SequenceRows(NamedTuple):
    """The rows of one sequence in a pass.

    Attributes:
        rows: Which of the pass they are.
        mask: Additive attention mask, or None; see `attend_by_products`.
        kv: Cache with as many rows reserved; takes what is remembered of them.
        tree: How they depend on each other; None in models that don't ask.
    """

    rows: slice
    mask: Tensor | None
    kv: LayerCache
    tree: RowTree | None = None


class AnyBlock(Protocol):
    """Weights of one block of any family."""

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """All its linear layers."""


@dataclass(frozen=True, slots=True)
class Block:
    """Weights of one transformer block; projections of the same input are fused."""

    attention_norm: RmsNorm
    qkv: QuantLinear
    qk_norm: HeadNorm | None
    output: QuantLinear
    mlp_norm: RmsNorm
    gate_up: QuantLinear
    down: QuantLinear

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (self.qkv, self.output, self.gate_up, self.down)


class Decoder:
    """A target.

    Attributes:
        config: Its sizes.
        blocks: Weights of its blocks; empty where a family keeps others.
        embedding: Token vectors; on torch's device `meta` where they stay in their file.
            [vocabulary, hidden]
        lm_head: Projection to the vocabulary; Medusa heads may share it.
        final_norm: What the projection and the heads read passes through it.
        linears: All linear layers.
        num_parameters: Parameters, tied ones counted once.
        nbytes: Bytes of the weights.
    """

    def __init__(self, config: ModelConfig, precision: Precision, weights: Weights) -> None:
        self.config = config
        self.embedding = weights.embedding()
        self._token_table: Tensor | TokenTable | None = None
        if self.embedding.is_meta:
            self._token_table = weights.token_table(EMBEDDING, *self.embedding.shape)
        self.blocks: list[Block] = []
        of_blocks = [linear for block in self.read_blocks(weights) for linear in block.linears]
        self.final_norm = self.read_norm(weights, FINAL_NORM, config.hidden_size)
        self.lm_head = weights.lm_head(lm_head_part(config), self.embedding)
        self.linears = [*of_blocks, self.lm_head]
        self.num_parameters = weights.num_parameters
        self.nbytes = weights.nbytes
        self._device = self.final_norm.weight.device
        self._rope = Rope(config, precision.scores, precision.device)
        self.attend_to(precision.attended)
        self._compute = precision.compute
        self._scores_dtype = precision.scores

    def read_blocks(self, weights: Weights) -> Sequence[AnyBlock]:
        """Read the weights of all blocks, and keep them."""
        count = self.config.num_layers
        self.blocks = [_read_block(self.config, weights, index) for index in range(count)]
        return self.blocks

    def read_norm(self, weights: Weights, name: str, size: int) -> RmsNorm:
        """A norm."""
        vector = weights.vector(name, size) + self.config.traits.norm_offset
        return RmsNorm(vector, self.config.rms_norm_eps)

    def logits(self, hidden: Tensor) -> Tensor:
        """The scores behind states. [n, hidden] → [n, vocabulary]"""
        return self.lm_head(hidden)

    @property
    def embeds_here(self) -> bool:
        """Do the token vectors lie on the model's device?"""
        return self.embedding.device == self._device

    def embed(self, token_ids: Tensor) -> Tensor:
        """[n] → [n, hidden], where `embeds_here`."""
        return self.embedding.index_select(0, token_ids).to(self._compute)

    def offloaded_vectors(self, token_ids: Sequence[int]) -> Tensor | None:
        """Token vectors in the computer's memory, for the caller to bring to the model's device.

        Returns:
            [n, hidden], or None where `embeds_here`.

        Raises:
            CheckpointError: They stay in their file, which can't be read.
        """
        found = self.stored_vectors(token_ids)
        return None if found is None else found.to(self._compute)

    def stored_vectors(self, token_ids: Sequence[int]) -> Tensor | None:
        """As `offloaded_vectors`, but the numbers as `embedding` has them."""
        if self.embeds_here:
            return None
        table = self._token_table
        if table is None or isinstance(table, Tensor):
            return self.embedding.index_select(0, torch.tensor(token_ids))
        return table.rows(token_ids).to(self.embedding.dtype)

    @property
    def looked_up_width(self) -> int:
        """Numbers of a row of `offloaded_vectors`; 0 where that gives None."""
        return 0 if self.embeds_here else self.config.hidden_size

    def entering(self, token_ids: Tensor, looked_up: Tensor | None) -> Tensor:
        """What enters the first layer.

        Args:
            token_ids: Of the rows of a pass. [n], on the model's device.
            looked_up: Of `offloaded_vectors` for them, brought to the device.

        Returns:
            [n, hidden]
        """
        return self.embed(token_ids) if looked_up is None else looked_up

    def keep(self, rows: Tensor) -> None:
        """Only these rows of a pass go on. [k], int64"""

    def turns(self, num_positions: int) -> Tensor:
        """The rotation of every pair at every position. [positions, head_dim / 2], complex"""
        return self._rope.turns(num_positions)

    def position_tables(self, num_positions: int) -> tuple[PositionTable, ...]:
        """What so many positions do; `plain_block` says which of the tables serves a block."""
        return (PositionTable(self._rope.turns(num_positions)),)

    def brought(self, token_ids: Sequence[int]) -> Tensor | None:
        """What tokens bring to each layer besides what enters the first; None for nothing.

        Returns:
            [n, layers · width]
        """
        return None

    def plain_tokens(self) -> PlainTokens | None:
        """What makes vectors for all layers of it, as plain data."""
        return None

    def plain_block(self, index: int) -> PlainBlock:
        """A block as plain data."""
        block, config = self.blocks[index], self.config
        weight = None if block.qk_norm is None else block.qk_norm.weight
        return PlainBlock(
            linears={name: getattr(block, name) for name in LINEARS},
            norms=(block.attention_norm, None, block.mlp_norm, None),
            q_norm=None if weight is None else weight[0],
            k_norm=None if weight is None else weight[config.num_heads],
            table=0,
            query_scale=config.head_dim**-0.5,
            window=None,  # no more context is offered than it shows
            attention_cap=None,
            num_kv_heads=config.num_kv_heads,
            head_dim=config.head_dim,
            inner=config.intermediate_size,
        )

    def rotations(self, positions: Tensor, num_positions: int) -> Tensor:
        """Position factors for `block`; see `Rope.rotations`."""
        return self._rope.rotations(positions, num_positions)

    def block(
        self,
        index: int,
        x: Tensor,
        rotations: Tensor,
        sequences: Sequence[SequenceRows],
        only_row: int | None = None,
    ) -> Tensor:
        """Run one block.

        Args:
            index: Which block.
            x: [n, hidden]
            rotations: From `rotations`, for the rows' positions.
            sequences: Whose the rows are, in their order.
            only_row: The one row of a single sequence that goes on; of the others only keys and
                values are needed.

        Returns:
            [n, hidden], or [1, hidden]
        """
        weights = self.blocks[index]
        qkv = weights.qkv(weights.attention_norm(x))
        if weights.qk_norm is not None:
            qkv = weights.qk_norm(qkv)
        mixed = self.mixed(index, rotate(qkv, rotations), sequences, only_row)
        if only_row is not None:
            x = x[only_row : only_row + 1]
        x = weights.output.plus(mixed.to(x.dtype), x)
        gate, up = weights.gate_up(weights.mlp_norm(x)).chunk(2, dim=-1)
        return weights.down.plus(F.silu(gate).mul_(up), x)

    def mixed(
        self, index: int, turned: Tensor, sequences: Sequence[SequenceRows], only_row: int | None
    ) -> Tensor:
        """What each row takes from its sequence in one layer.

        Where keys and values lie below a card, attention is computed there by the processor:
        queries and new rows go down at once, and results come up.

        Args:
            index: Which layer.
            turned: Queries, keys and values. [n, q heads + 2 · kv heads, head_dim]
            sequences: As in `block`.
            only_row: As in `block`.

        Returns:
            [n, q heads · head_dim], or [1, q heads · head_dim]
        """
        here, there = turned.device, sequences[0].kv.device_of(index)
        turned = turned.to(there)
        found = [self._mixed_of(index, turned[its.rows], its, only_row) for its in sequences]
        return (found[0] if len(found) == 1 else torch.cat(found)).to(here)

    def _mixed_of(
        self, index: int, turned: Tensor, its: SequenceRows, only_row: int | None
    ) -> Tensor:
        num_q = self.config.num_heads
        found = its.kv.write(index, turned[:, num_q:])
        return self._seen(index, turned[:, :num_q], found, its, only_row)

    def _seen(
        self,
        index: int,
        q: Tensor,
        found: tuple[Tensor, Tensor],
        its: SequenceRows,
        only_row: int | None,
    ) -> Tensor:
        """What queries take from the keys and values that a cache gave, where these lie."""
        dtype = self._scores_dtype
        if q.device.type != self._device.type:  # a processor is slow at narrow numbers
            dtype = torch.promote_types(dtype, torch.float32)
        keys, values = (part.to(dtype) for part in found)
        mask = self.mask_of(index, its, keys.shape[1])
        if only_row is not None:
            mask = None if mask is None else mask[only_row :: len(q)]
            q = q[only_row : only_row + 1]
        mask = None if mask is None else mask.to(q.device, dtype)
        return self.attend(index, q.to(dtype), keys, values, mask)

    def attend_to(self, attended: int) -> None:
        """Take the values of so many rows from now on; 0 for all."""
        self._attend = choose_attention(self._device, attended)
        self._attend_below = choose_attention(torch.device("cpu"), attended)

    def mask_of(self, index: int, its: SequenceRows, width: int) -> Tensor | None:
        """The mask of a sequence's rows in one layer, over `width` slots."""
        return its.mask

    def attend(
        self, index: int, q: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None
    ) -> Tensor:
        """Attention of one layer; see `attend_by_products`."""
        is_here = q.device.type == self._device.type
        return (self._attend if is_here else self._attend_below)(q, keys, values, mask)


def _read_block(config: ModelConfig, weights: Weights, index: int) -> Block:
    parts = block_parts(config, index)
    # Experts and other mixers aren't usual.
    assert parts.mlp is not None
    assert parts.qkv is not None
    assert parts.output is not None
    hidden, eps = config.hidden_size, config.rms_norm_eps
    return Block(
        attention_norm=RmsNorm(weights.vector(f"{parts.prefix}.input_layernorm", hidden), eps),
        qkv=weights.linear(parts.qkv),
        qk_norm=_read_qk_norm(config, weights, f"{parts.prefix}.self_attn")
        if config.traits.qk_norm
        else None,
        output=weights.linear(parts.output),
        mlp_norm=RmsNorm(weights.vector(f"{parts.prefix}.post_attention_layernorm", hidden), eps),
        gate_up=weights.linear(parts.mlp.gate_up),
        down=weights.linear(parts.mlp.down),
    )


def _read_qk_norm(config: ModelConfig, weights: Weights, prefix: str) -> HeadNorm:
    size = config.head_dim
    q, k = (
        interleave_rows(weights.vector(f"{prefix}.{name}", size), *config.head_rows)
        for name in ("q_norm", "k_norm")
    )
    weight = torch.cat([q.expand(config.num_heads, -1), k.expand(config.num_kv_heads, -1)])
    return HeadNorm(weight, config.rms_norm_eps)
