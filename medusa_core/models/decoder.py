"""The decoder that all families share: it embeds, runs one block, and projects.

In what they differ, `Traits` say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.errors import CheckpointError
from medusa_core.kv.cache import KvCache
from medusa_core.models.attention import choose_attention
from medusa_core.models.checkpoint import Checkpoint
from medusa_core.models.config import ModelConfig
from medusa_core.models.linear import Linear, make_linear
from medusa_core.models.norm import HeadNorm, RmsNorm
from medusa_core.models.precision import Precision
from medusa_core.models.rope import Rope, interleave_rows, rotate


@dataclass(frozen=True, slots=True)
class Block:
    """Weights of one transformer block; projections of the same input are fused."""

    attention_norm: RmsNorm
    qkv: Linear
    qk_norm: HeadNorm | None
    output: Linear
    mlp_norm: RmsNorm
    gate_up: Linear
    down: Linear


class Decoder:
    """A target.

    Attributes:
        config: Its sizes.
        embedding: Token vectors. [vocabulary, hidden]
        lm_head: Projection to the vocabulary; Medusa heads may share it.
        final_norm: What the projection and the heads read passes through it.
        num_parameters: Parameters, tied ones counted once.
        nbytes: Bytes of the weights.
    """

    def __init__(self, config: ModelConfig, precision: Precision, checkpoint: Checkpoint) -> None:
        self.config = config
        reader = _Reader(config, precision, checkpoint)
        self.embedding = reader.weight("model.embed_tokens", config.vocab_size, config.hidden_size)
        self._blocks = [reader.block(index) for index in range(config.num_layers)]
        self.final_norm = reader.norm("model.norm")
        self.lm_head = self._read_lm_head(reader, checkpoint)
        self.num_parameters = reader.num_parameters
        self.nbytes = reader.nbytes
        self._rope = Rope(config, precision.cache, precision.device)
        self._attend = choose_attention(precision.device)
        self._cache_dtype = precision.cache

    def _read_lm_head(self, reader: _Reader, checkpoint: Checkpoint) -> Linear:
        # Some files tie the two without saying so, by leaving the projection out.
        if self.config.tie_embeddings or "lm_head.weight" not in checkpoint.names:
            if not self.config.tie_embeddings:
                raise CheckpointError(
                    "The weights lack the tensor lm_head.weight.", "Download the model again."
                )
            return reader.linear_of(self.embedding)
        return reader.linear_of(
            reader.weight("lm_head", self.config.vocab_size, self.config.hidden_size)
        )

    def embed(self, token_ids: Tensor) -> Tensor:
        """[n] → [n, hidden]"""
        return self.embedding.index_select(0, token_ids)

    def rotations(self, positions: Tensor, num_positions: int) -> Tensor:
        """Position factors for `block`; see `Rope.rotations`."""
        return self._rope.rotations(positions, num_positions)

    def block(
        self, index: int, x: Tensor, rotations: Tensor, mask: Tensor | None, kv: KvCache
    ) -> Tensor:
        """Run one block.

        Args:
            index: Which block.
            x: [n, hidden]
            rotations: From `rotations`, for the rows' positions.
            mask: Additive attention mask, or None; see `attend_by_products`.
            kv: Cache with n rows reserved; takes the block's keys and values.

        Returns:
            [n, hidden]
        """
        weights = self._blocks[index]
        qkv = weights.qkv(weights.attention_norm(x))
        if weights.qk_norm is not None:
            qkv = weights.qk_norm(qkv)
        turned = rotate(qkv, rotations)
        num_q = self.config.num_heads
        q, fresh = turned[:, :num_q], turned[:, num_q:]
        keys, values = kv.write(index, fresh)
        mixed = self._attend(q.to(self._cache_dtype), keys, values, mask)
        x = weights.output.plus(mixed.to(x.dtype), x)
        gate, up = weights.gate_up(weights.mlp_norm(x)).chunk(2, dim=-1)
        return weights.down.plus(F.silu(gate).mul_(up), x)


class _Reader:
    """Reads and fuses weights, and counts them."""

    def __init__(self, config: ModelConfig, precision: Precision, checkpoint: Checkpoint) -> None:
        self._config = config
        self._precision = precision
        self._checkpoint = checkpoint
        self.num_parameters = 0
        self.nbytes = 0

    def vector(self, name: str, size: int) -> Tensor:
        return self._read(name, (size,))

    def norm(self, name: str) -> RmsNorm:
        weight = self.vector(f"{name}.weight", self._config.hidden_size)
        return RmsNorm(weight, self._config.rms_norm_eps)

    def weight(self, name: str, rows: int, columns: int) -> Tensor:
        return self._read(f"{name}.weight", (rows, columns))

    def linear_of(self, weight: Tensor, bias: Tensor | None = None) -> Linear:
        return make_linear(weight, bias)

    def block(self, index: int) -> Block:
        config, prefix = self._config, f"model.layers.{index}"
        traits = config.traits
        hidden = config.hidden_size
        inner = config.num_heads * config.head_dim
        return Block(
            attention_norm=self.norm(f"{prefix}.input_layernorm"),
            qkv=self._qkv(f"{prefix}.self_attn"),
            qk_norm=self._qk_norm(f"{prefix}.self_attn") if traits.qk_norm else None,
            output=self._fused([f"{prefix}.self_attn.o_proj"], hidden, inner, traits.output_bias),
            mlp_norm=self.norm(f"{prefix}.post_attention_layernorm"),
            gate_up=self._fused(
                [f"{prefix}.mlp.gate_proj", f"{prefix}.mlp.up_proj"],
                config.intermediate_size,
                hidden,
                traits.mlp_bias,
            ),
            down=self._fused(
                [f"{prefix}.mlp.down_proj"], hidden, config.intermediate_size, traits.mlp_bias
            ),
        )

    def _qkv(self, prefix: str) -> Linear:
        config = self._config
        sizes = {
            "q_proj": config.num_heads * config.head_dim,
            "k_proj": config.num_kv_heads * config.head_dim,
            "v_proj": config.num_kv_heads * config.head_dim,
        }
        weights, biases = [], []
        for name, rows in sizes.items():
            weight = self.weight(f"{prefix}.{name}", rows, config.hidden_size)
            bias = self.vector(f"{prefix}.{name}.bias", rows) if config.traits.qkv_bias else None
            turns = name != "v_proj"
            weights.append(interleave_rows(weight, config.head_dim) if turns else weight)
            if bias is not None:
                biases.append(interleave_rows(bias, config.head_dim) if turns else bias)
        return make_linear(torch.cat(weights), torch.cat(biases) if biases else None)

    def _qk_norm(self, prefix: str) -> HeadNorm:
        config = self._config
        size = config.head_dim
        q, k = (
            interleave_rows(self.vector(f"{prefix}.{name}.weight", size), size)
            for name in ("q_norm", "k_norm")
        )
        weight = torch.cat([q.expand(config.num_heads, -1), k.expand(config.num_kv_heads, -1)])
        return HeadNorm(weight, config.rms_norm_eps)

    def _fused(self, names: list[str], rows: int, columns: int, has_bias: bool) -> Linear:
        weights = [self.weight(name, rows, columns) for name in names]
        biases = [self.vector(f"{name}.bias", rows) for name in names] if has_bias else []
        return make_linear(torch.cat(weights), torch.cat(biases) if biases else None)

    def _read(self, name: str, shape: tuple[int, ...]) -> Tensor:
        tensor = self._checkpoint.tensor(name, shape, self._precision.compute)
        self.num_parameters += tensor.numel()
        self.nbytes += tensor.nbytes
        return tensor.to(self._precision.device)


# Written by old programs, and computed anew by all; and what belongs to others.
_HARMLESS = re.compile(r".*rotary_emb\.inv_freq|medusa_heads?\..*")


def build_decoder(config: ModelConfig, precision: Precision, checkpoint: Checkpoint) -> Decoder:
    """Build a target from its weights.

    Raises:
        CheckpointError: A tensor is missing, misshapen, or none that this family has.
    """
    decoder = Decoder(config, precision, checkpoint)
    unread = sorted(name for name in checkpoint.unread if not _HARMLESS.fullmatch(name))
    if config.tie_embeddings and "lm_head.weight" in unread:
        unread.remove("lm_head.weight")  # the embedding again
    if unread:
        listed = ", ".join(unread[:8]) + (", ..." if len(unread) > 8 else "")
        raise CheckpointError(
            f"A {config.model_type} model has no place for {len(unread)} of the tensors: {listed}.",
            "Without them it would be another model: choose a checkpoint of a supported kind.",
        )
    return decoder
