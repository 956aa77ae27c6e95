"""A loaded target: embedding, blocks, final norm and output projection, in torch's operations."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from medusa_core.errors import CheckpointError, RequestError
from medusa_core.i18n import tr
from medusa_core.models.blocks.sizes import (
    EMBEDDING,
    FINAL_NORM,
    PER_LAYER_NORM,
    PER_LAYER_PROJECTION,
    PER_LAYER_TABLE,
    lm_head_spec,
)
from medusa_core.models.blocks.spec import BlockSpec
from medusa_core.models.checkpoints.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig, RopeConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear, linears_of
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.token_table import DenseTable, TokenTable
from medusa_core.models.weights import Weights
from medusa_core.runtime.backends.activation import active_of
from medusa_core.runtime.backends.attention import choose_attention
from medusa_core.runtime.backends.caches import SequenceRows
from medusa_core.runtime.backends.cuda_blocks import card_attention
from medusa_core.runtime.backends.host_mlp import HostParts
from medusa_core.runtime.backends.load import load_blocks
from medusa_core.runtime.backends.norm import RmsNorm
from medusa_core.runtime.backends.rope import Rope
from medusa_core.runtime.backends.torch_blocks import PassContext, run_block

# Tensors that may stay unread: RoPE tables, which are computed, and draft heads.
_HARMLESS = re.compile(r".*rotary_emb\.inv_freq|medusa_heads?\..*|model\.mtp_layers\..*|mtp\..*")

_LAYER = re.compile(r"model\.layers\.(\d{1,4})\.")


@dataclass(frozen=True, slots=True)
class PerLayerInputs:
    """Embeddings of a token that each layer has of its own (Gemma 3n and 4).

    Attributes:
        table: Embeddings of the token itself. [vocabulary, layers · width]
        projection: Projection of the input of the first layer. → [layers · width]
        norm: Norm of each layer's part of that projection.
        width: Width of one layer's embedding.
    """

    table: TokenTable
    projection: QuantLinear
    norm: RmsNorm
    width: int


class Decoder:
    """A target's embeddings, blocks and output projection.

    Attributes:
        config: Configuration of the model.
        blocks: Its blocks.
        ropes: Rotary embeddings; a block names one by its index.
        embedding: Token embeddings.
        lm_head: Output projection; Medusa heads may share it.
        final_norm: Norm before the output projection and the heads.
        per_layer: Per-layer embeddings, or None.
        linears: All linear layers.
        card_attention: Attention by our own kernels, or None.
        num_parameters: Parameters, tied ones counted once.
        nbytes: Bytes of the weights on its device.
    """

    def __init__(
        self,
        config: ModelConfig,
        precision: Precision,
        weights: Weights,
        host: HostParts | None = None,
    ) -> None:
        """Read the weights.

        Args:
            config: Configuration of the model.
            precision: Dtypes and device.
            weights: Reads the tensors.
            host: Parts that the processor computes beside a card; None for none.

        Raises:
            CheckpointError: A tensor is missing or has a wrong shape.
            RequestError: The model doesn't support sparse attention.
        """
        if precision.attended and any(map(_needs_all_scores, config.blocks)):
            raise RequestError(
                tr("Attention of {0} models takes all rows.", config.model_type),
                "Leave out --sparse-attention.",
            )
        self.config = config
        self.embedding = weights.token_table(EMBEDDING, config.vocab_size, config.hidden_size)
        self.blocks = load_blocks(config, weights, precision, host)
        self.per_layer = _read_per_layer(config, weights)
        self.final_norm = read_norm(config, weights, FINAL_NORM)
        self.lm_head = weights.lm_head(lm_head_spec(config), self.embedding)
        self.linears: list[QuantLinear] = [*linears_of(self.blocks), self.lm_head]
        self.num_parameters = weights.num_parameters
        self.num_parameters += 0 if host is None else host.weights.num_parameters
        self.nbytes = weights.nbytes
        self._device = self.final_norm.weight.device
        ropes = rope_configs(config)
        self.ropes = [Rope(each, precision.scores, precision.device) for each in ropes]
        self.attend_to(precision.attended)
        self._compute = precision.compute
        self._scores_dtype = precision.scores
        self._active = active_of(config.activation)

    def logits(self, hidden: Tensor) -> Tensor:
        """Project states to logits. [n, hidden] → [n, vocabulary]"""
        return scaled_logits(self.lm_head(hidden), self.config)

    @property
    def embeds_here(self) -> bool:
        """Whether the token embeddings are on the model's device."""
        return self._is_here(self.embedding)

    def embed(self, token_ids: Tensor) -> Tensor:
        """Embed tokens where `embeds_here`. [n] → [n, hidden]"""
        return self._scaled(self.embedding.rows(token_ids).to(self._compute))

    def offloaded_vectors(self, token_ids: Sequence[int]) -> Tensor | None:
        """Look up embeddings that are in the computer's memory or in a file.

        Returns:
            Rows that the caller copies to the device for `entering`. [n, looked_up_width], or
            None if all embeddings are on that device.

        Raises:
            CheckpointError: Their file can't be read.
        """
        ids = torch.tensor(token_ids)
        vectors = None if self.embeds_here else self.embed(ids)
        table = self._host_table
        if table is None:
            return vectors
        of_layers = table.rows(ids).to(self._compute)
        return of_layers if vectors is None else torch.cat([vectors, of_layers], dim=1)

    @property
    def looked_up_width(self) -> int:
        """Width of a row of `offloaded_vectors`; 0 if that returns None."""
        width = 0 if self.embeds_here else self.config.hidden_size
        if self._host_table is not None and self.per_layer is not None:
            width += self.config.num_layers * self.per_layer.width
        return width

    def begin(self, positions: Tensor, num_positions: int) -> PassContext:
        """Begin a pass.

        Args:
            positions: Positions of its rows. [n], int64
            num_positions: One more than the highest position that may occur.
        """
        config = self.config
        return PassContext(
            positions=positions,
            num_positions=num_positions,
            ropes=self.ropes,
            query_factors=self._query_scale(positions),
            group=config.num_heads // config.num_kv_heads,
            scores_dtype=self._scores_dtype,
            attend=self._attend,
            attend_on_cpu=self._attend_on_cpu,
            active=self._active,
            card_attention=self.card_attention,
        )

    def entering(self, token_ids: Tensor, looked_up: Tensor | None, context: PassContext) -> Tensor:
        """Return the input of the first layer, and give the context the per-layer embeddings.

        Args:
            token_ids: Tokens of the rows, on the model's device. [n]
            looked_up: Result of `offloaded_vectors` for them, on that device.
            context: Context of the pass.

        Returns:
            [n, hidden]
        """
        if self.embeds_here or looked_up is None:
            x, rest = self.embed(token_ids), looked_up
        else:
            x, rest = looked_up.tensor_split([self.config.hidden_size], dim=1)
        if self.per_layer is not None:
            has_rest = rest is not None and rest.shape[1] > 0
            of_layers = rest if has_rest and rest is not None else self._of_layers(token_ids)
            context.per_layer = self._per_layer_inputs(self.per_layer, x, of_layers)
        return x

    def block(
        self,
        index: int,
        x: Tensor,
        context: PassContext,
        sequences: Sequence[SequenceRows],
        only_row: int | None = None,
    ) -> Tensor:
        """Run one block; see `run_block`."""
        return run_block(index, self.blocks[index], x, context, sequences, only_row)

    def rotations(self, num_positions: int) -> list[Tensor]:
        """Return the table of each rope. [positions, head_dim / 2] each, complex"""
        return [rope.rotations(num_positions) for rope in self.ropes]

    def attn_temperature_scale(self, num_positions: int) -> Tensor | None:
        """Return the scale of rotated queries at every position, or None. [positions]"""
        return self._query_scale(torch.arange(num_positions))

    def per_layer_rows(self, token_ids: Sequence[int]) -> Tensor | None:
        """Look up per-layer embeddings. [n, layers · width], or None if the model has none."""
        return None if self.per_layer is None else self._of_layers(torch.tensor(token_ids))

    def attend_to(self, attended: int) -> None:
        """Attend only to the `attended` rows of the largest weights from now on; 0 for all."""
        self._attend = choose_attention(self._device, attended)
        self.card_attention = None if attended else card_attention(self._device)
        self._attend_on_cpu = choose_attention(torch.device("cpu"), attended)

    def _query_scale(self, positions: Tensor) -> Tensor | None:
        """Scale of queries by position for long contexts (Llama 4, Ministral 3). [n], or None"""
        beta = self.config.llama_4_scaling_beta
        if not beta:
            return None
        old = self.config.rope.original_context_tokens
        rounds = torch.div(positions, old, rounding_mode="floor")
        return 1 + beta * torch.log1p(rounds.to(self._scores_dtype))

    def _scaled(self, vectors: Tensor) -> Tensor:
        """Multiply embeddings by the factor of the model's configuration."""
        scale = self.config.embedding_multiplier
        return vectors if scale == 1 else vectors * torch.tensor(scale, dtype=vectors.dtype)

    @property
    def _host_table(self) -> TokenTable | None:
        """Table of per-layer embeddings if it is read on the host."""
        own = self.per_layer
        return None if own is None or self._is_here(own.table) else own.table

    def _is_here(self, table: TokenTable) -> bool:
        """Whether a table is a tensor on the model's device."""
        return isinstance(table, DenseTable) and table.device == self._device

    def _of_layers(self, token_ids: Tensor) -> Tensor:
        """Per-layer embeddings of tokens. [n] → [n, layers · width]"""
        assert self.per_layer is not None
        return self.per_layer.table.rows(token_ids).to(token_ids.device, self._compute)

    def _per_layer_inputs(self, own: PerLayerInputs, x: Tensor, of_layers: Tensor) -> Tensor:
        """Combine per-layer embeddings with the input of the first layer. [n, layers, width]"""
        shape = (len(x), -1, own.width)
        projected = own.projection(x)
        projected = (projected * self.config.hidden_size**-0.5).reshape(-1, own.width)
        scaled = of_layers.to(projected.dtype) * math.sqrt(own.width)
        both = own.norm(projected).view(shape) + scaled.reshape(shape)
        return both * math.sqrt(0.5)


def scaled_logits(logits: Tensor, config: ModelConfig) -> Tensor:
    """Apply a model's divisor and soft cap to the outputs of its LM head."""
    divisor, cap = config.logits_scaling, config.final_logit_softcapping
    logits = logits if divisor == 1 else logits / divisor
    return logits if cap is None else torch.tanh(logits / cap) * cap


def rope_configs(config: ModelConfig) -> tuple[ModelConfig, ...]:
    """Configurations of the ropes: of layers with full attention, then of those with a window."""
    local = config.local_rope
    if local is None:
        return (config,)
    return config, replace(config, rope=RopeConfig(local.theta), head_dim=local.head_dim)


def read_norm(config: ModelConfig, weights: Weights, name: str) -> RmsNorm:
    """Read a norm of the residual stream that belongs to no block."""
    return RmsNorm(
        weights.vector(name, config.hidden_size) + config.norm_offset, config.rms_norm_eps
    )


def _needs_all_scores(block: BlockSpec) -> bool:
    """Whether attention changes its scores in ways that fused kernels don't support."""
    attention = block.attention
    if attention is None:
        return False
    return bool(attention.sinks) or attention.attn_logit_softcapping is not None


def _read_per_layer(config: ModelConfig, weights: Weights) -> PerLayerInputs | None:
    """Read the table of per-layer embeddings, as in Gemma 4; None without one."""
    own = config.per_layer_embeddings
    if own is None:
        return None
    total = config.num_layers * own.width
    table = weights.token_table(PER_LAYER_TABLE, own.vocab_size, total)
    norm = weights.named(PER_LAYER_NORM, own.width)
    return PerLayerInputs(
        table=table,
        projection=make_linear(weights.named(PER_LAYER_PROJECTION, total, config.hidden_size)),
        norm=RmsNorm(norm, config.rms_norm_eps),
        width=own.width,
    )


def build_decoder(
    config: ModelConfig,
    precision: Precision,
    checkpoint: Checkpoint,
    weights: Weights,
    host: HostParts | None = None,
) -> Decoder:
    """Build a target from a checkpoint.

    Args:
        config: Configuration of the model.
        precision: Dtypes and device.
        checkpoint: Checkpoint from which `weights` reads.
        weights: Reads its tensors.
        host: Parts that the processor computes beside a card; None for none.

    Raises:
        CheckpointError: A tensor is missing, has a wrong shape, or isn't one of this family.
    """
    decoder = Decoder(config, precision, weights, host)
    unneeded = frozenset((*_unread(config), *_of_draft_layers(config, checkpoint)))
    unread = sorted(name for name in checkpoint.unread - unneeded if not _HARMLESS.fullmatch(name))
    if config.tie_embeddings and "lm_head.weight" in unread:
        unread.remove("lm_head.weight")  # equal to the embedding table
    if unread:
        listed = ", ".join(unread[:8]) + (", ..." if len(unread) > 8 else "")
        raise CheckpointError(
            tr(
                "A {0} model has no place for {1} of the tensors: {2}.",
                config.model_type,
                len(unread),
                listed,
            ),
            "Without them it would be another model: choose a checkpoint of a supported kind.",
        )
    return decoder


def _of_draft_layers(config: ModelConfig, checkpoint: Checkpoint) -> Iterator[str]:
    """Yield tensors of draft layers, which are numbered after the model's own in GLM."""
    for name in checkpoint.unread:
        match = _LAYER.match(name)
        if match is None or int(match[1]) < config.num_layers:
            continue
        if f"{match[0]}enorm.weight" in checkpoint.names:  # is never quantized
            yield name


def _unread(config: ModelConfig) -> Iterator[str]:
    """Yield tensors of the layers that no pass reads."""
    for index, block in enumerate(config.blocks):
        for name in () if block.attention is None else block.attention.unread:
            yield f"model.layers.{index}.{name}"
