"""Trainable layers of draft heads, run by the blocks of the models."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from medusa_core.heads.draft_blocks import BlockReader, only_keys_values
from medusa_core.models.config import ModelConfig, parse_config
from medusa_core.models.quant.linear import DenseLinear
from medusa_core.models.row_order import interleave_rows
from medusa_core.runtime.backends.block import Attention, Block
from medusa_core.runtime.backends.norm import RmsNorm

_PARTS = ("q_norm", "k_norm", "mlp_norm", "q", "k", "v", "o", "gate", "up", "down")


class Norm(nn.Module):
    """Trainable weight of an RMS norm, which computes in float32 under autocast, too."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self._eps = eps

    def forward(self, x: Tensor) -> Tensor:
        """Normalize the last dimension."""
        return RmsNorm(self.weight, self._eps)(x).view(x.shape)


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
        modules = {"attention_norm": self.input_norm} | {one: getattr(self, one) for one in _PARTS}
        weights = {part: one.weight for part, one in modules.items() if one is not None}
        # Fused weights are copies of parameters, which change after each step.
        reader = BlockReader(self.config, weights.get, lambda weight, _: TrainedLinear(weight))
        return reader.read("")

    def only_kv(self, block: Block) -> Attention:
        """Return attention that projects to keys and values alone."""
        assert block.attention is not None
        k = interleave_rows(self.k.weight, self.config.head_dim)
        weight = torch.cat([k, self.v.weight])
        return only_keys_values(block.attention, TrainedLinear(weight))


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
