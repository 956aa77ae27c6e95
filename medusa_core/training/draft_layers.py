"""Trainable layers of draft heads, run by the blocks of the models."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from medusa_core.heads.draft_blocks import only_keys_values
from medusa_core.models.blocks.spec import MlpSpec
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.quant.linear import DenseLinear
from medusa_core.models.row_order import interleave_rows
from medusa_core.runtime.backends.block import Attention, Block
from medusa_core.runtime.backends.experts import Mlp
from medusa_core.runtime.backends.norm import RmsNorm, SplitQkNorm


class Norm(nn.Module):
    """Trainable weight of an RMS norm, which computes in float32 under autocast, too."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self._eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last dimension."""
        return RmsNorm(self.weight, self._eps)(x).view(x.shape)

    def norm(self, is_rotated: bool = False) -> RmsNorm:
        """Return the norm as blocks use it.

        Args:
            is_rotated: Whether its rows are rotated, so that they are in interleaved order.
        """
        weight = interleave_rows(self.weight, len(self.weight)) if is_rotated else self.weight
        return RmsNorm(weight, self._eps)


class TrainedLinear(DenseLinear):
    """Linear layer with trainable weights; the residual keeps its dtype under autocast."""

    def plus(self, x: Tensor, residual: Tensor) -> Tensor:
        """Add the product to a residual. [n, in], [n, out] → [n, out]"""
        return residual + self(x)


class DraftLayer(nn.Module):
    """Parameters of a Llama or Qwen3 layer, in the order in which they are published.

    Attributes:
        config: Sizes of the layer.
        input_norm: Norm before attention, if the layer has its own.
        q_norm: Norm of query heads, if there is one.
        k_norm: Norm of key heads, likewise.
    """

    mlp_norm: Norm

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.input_norm: Norm | None = None
        self.q_norm: Norm | None = None
        self.k_norm: Norm | None = None

    def _add_linears(self, width: int) -> None:
        """Add random projections, and an MLP that adds nothing at first.

        Args:
            width: Width of what attention reads.
        """
        config = self.config
        hidden, inner = config.hidden_size, config.intermediate_size
        queries, keys = (
            heads * config.head_dim for heads in (config.num_heads, config.num_kv_heads)
        )
        # Optimizer checkpoints number parameters in this order.
        self.q = nn.Linear(width, queries, bias=False)
        self.k = nn.Linear(width, keys, bias=False)
        self.v = nn.Linear(width, keys, bias=False)
        self.o = nn.Linear(queries, hidden, bias=False)
        self.gate = nn.Linear(hidden, inner, bias=False)
        self.up = nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)
        nn.init.zeros_(self.down.weight)

    def block(self) -> Block:
        """Return the layer as a block over the parameters as they are now."""
        (spec, *_), size = self.config.blocks, self.config.head_dim
        assert spec.attention is not None  # of a Llama-like layer
        assert isinstance(spec.mlp, MlpSpec)
        # Fused weights are copies of parameters, which change after each step.
        q, k = (interleave_rows(part.weight, size) for part in (self.q, self.k))
        gate_up = torch.cat([self.gate.weight, self.up.weight])
        attention = Attention(
            spec.attention,
            qkv=TrainedLinear(torch.cat([q, k, self.v.weight])),
            output=TrainedLinear(self.o.weight),
            qk_norm=self._qk_norm(),
        )
        return Block(
            spec,
            mixers=(attention,),
            mlp=Mlp(spec.mlp, TrainedLinear(gate_up), TrainedLinear(self.down.weight)),
            pre_norm=None if self.input_norm is None else self.input_norm.norm(),
            pre_mlp_norm=self.mlp_norm.norm(),
        )

    def only_kv(self, block: Block) -> Attention:
        """Return attention that projects to keys and values alone."""
        assert block.attention is not None
        k = interleave_rows(self.k.weight, self.config.head_dim)
        weight = torch.cat([k, self.v.weight])
        return only_keys_values(block.attention, TrainedLinear(weight))

    def _qk_norm(self) -> SplitQkNorm | None:
        """Return the norm of queries and keys; None without."""
        if self.q_norm is None or self.k_norm is None:
            return None
        widths = self.q.out_features, self.k.out_features
        return SplitQkNorm(self.q_norm.norm(True), self.k_norm.norm(True), *widths)


def draft_config(target: ModelConfig, model_type: str, num_layers: int = 1) -> ModelConfig:
    """Return sizes of draft layers for a target.

    Every query head has keys and values of its own: fewer couldn't pass on a whole state.
    """
    return parse_config(
        {
            "model_type": model_type,
            "vocab_size": target.vocab_size,
            "hidden_size": target.hidden_size,
            "intermediate_size": target.intermediate_size,
            "num_hidden_layers": num_layers,
            "num_attention_heads": target.num_heads,
            "num_key_value_heads": target.num_heads,
            "head_dim": target.head_dim,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "max_position_embeddings": target.context_tokens,
        },
        {},
    )


def layer_settings(config: ModelConfig) -> dict[str, object]:
    """Return the settings of draft layers in `config.json`."""
    return {
        "model_type": config.model_type,
        "num_hidden_layers": config.num_layers,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope.theta,
    }
