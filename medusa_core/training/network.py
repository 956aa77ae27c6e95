"""A trainable Llama with Hugging Face's parameter names."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from medusa_core.training.recipe import ModelSize


class RMSNorm(nn.Module):
    """Root-mean-square norm, computed in float32."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, hidden: Tensor) -> Tensor:
        """Normalise the last dimension; dtype is kept."""
        wide = hidden.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
        return (wide * self.weight.float()).to(hidden.dtype)


class Attention(nn.Module):
    """Multi-head attention with rotary positions."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        width = size.hidden_size
        self.num_heads = size.num_heads
        self.q_proj = nn.Linear(width, width, bias=False)
        self.k_proj = nn.Linear(width, width, bias=False)
        self.v_proj = nn.Linear(width, width, bias=False)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(
        self, hidden: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, cache: LayerCache | None
    ) -> Tensor:
        """Attend; [B, L, H] to [B, L, H]."""
        batch, length, width = hidden.shape
        shape = (batch, length, self.num_heads, width // self.num_heads)
        q = rotate(self.q_proj(hidden).view(shape).transpose(1, 2), cos, sin)
        k = rotate(self.k_proj(hidden).view(shape).transpose(1, 2), cos, sin)
        v = self.v_proj(hidden).view(shape).transpose(1, 2)
        if cache is not None:
            k, v = cache.append(k, v)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        result: Tensor = self.o_proj(out.transpose(1, 2).reshape(batch, length, width))
        return result


class Mlp(nn.Module):
    """Gated feed-forward layer."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(size.hidden_size, size.intermediate_size, bias=False)
        self.up_proj = nn.Linear(size.hidden_size, size.intermediate_size, bias=False)
        self.down_proj = nn.Linear(size.intermediate_size, size.hidden_size, bias=False)

    def forward(self, hidden: Tensor) -> Tensor:
        """[B, L, H] to [B, L, H]."""
        result: Tensor = self.down_proj(F.silu(self.gate_proj(hidden)) * self.up_proj(hidden))
        return result


class Block(nn.Module):
    """One transformer layer."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.self_attn = Attention(size)
        self.mlp = Mlp(size)
        self.input_layernorm = RMSNorm(size.hidden_size, size.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(size.hidden_size, size.rms_norm_eps)

    def forward(
        self, hidden: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, cache: LayerCache | None
    ) -> Tensor:
        """[B, L, H] to [B, L, H]."""
        hidden = hidden + self.self_attn(self.input_layernorm(hidden), cos, sin, mask, cache)
        result: Tensor = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return result


class Trunk(nn.Module):
    """Embedding, layers and the last norm."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(size.vocab_size, size.hidden_size)
        self.layers = nn.ModuleList(Block(size) for _ in range(size.num_layers))
        self.norm = RMSNorm(size.hidden_size, size.rms_norm_eps)

    def forward(
        self,
        input_ids: Tensor,
        cos: Tensor,
        sin: Tensor,
        mask: Tensor,
        caches: list[LayerCache] | None = None,
    ) -> Tensor:
        """Hidden states after the last norm, [B, L, H]."""
        hidden = self.embed_tokens(input_ids)
        for index, layer in enumerate(self.layers):
            cache = None if caches is None else caches[index]
            hidden = layer(hidden, cos, sin, mask, cache)
        result: Tensor = self.norm(hidden)
        return result


class PebbleNetwork(nn.Module):
    """A Llama with tied embeddings; its state dict is what transformers expects."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.size = size
        self.model = Trunk(size)

    def hidden_states(
        self,
        input_ids: Tensor,
        mask: Tensor,
        positions: Tensor | None = None,
        caches: list[LayerCache] | None = None,
    ) -> Tensor:
        """Hidden states after the last norm.

        Args:
            input_ids: int64 [B, L].
            mask: bool, broadcastable to [B, heads, L, keys]; True where attention is allowed.
            positions: int64 [B, L]; 0..L-1 by default.
            caches: one per layer while generating.

        Returns:
            [B, L, H].
        """
        if positions is None:
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        cos, sin = rotary_tables(positions, self.size)
        result: Tensor = self.model(input_ids, cos, sin, mask, caches)
        return result

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token, [..., H] to [..., V]."""
        return F.linear(hidden, self.model.embed_tokens.weight)


class LayerCache:
    """Keys and values of one layer, in room allocated once."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        self.keys = keys
        self.values = values
        self.length = 0

    def append(self, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Store new keys and values [B, heads, L, d]; returns all of them so far."""
        stop = self.length + k.shape[2]
        self.keys[:, :, self.length : stop] = k
        self.values[:, :, self.length : stop] = v
        self.length = stop
        return self.keys[:, :, :stop], self.values[:, :, :stop]

    def keep(self, rows: Tensor) -> None:
        """Keep only these rows of the batch."""
        self.keys, self.values = self.keys[rows], self.values[rows]


def rotary_tables(positions: Tensor, size: ModelSize) -> tuple[Tensor, Tensor]:
    """Cosines and sines, [B, 1, L, head_dim] each (both halves alike, as in Hugging Face)."""
    evens = torch.arange(0, size.head_dim, 2, device=positions.device)
    exponents = evens.float() / size.head_dim
    angles = positions[..., None].float() * size.rope_theta**-exponents
    angles = torch.cat((angles, angles), dim=-1)[:, None]
    return angles.cos(), angles.sin()


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate [B, heads, L, d] by its positions; dtype is kept."""
    first, second = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-second, first), dim=-1) * sin).to(x.dtype)


def initialise(network: PebbleNetwork, seed: int) -> None:
    """Seeded weights; the projections back into the residual stream start at zero."""
    generator = torch.Generator().manual_seed(seed)
    for name, parameter in network.named_parameters():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            nn.init.zeros_(parameter)
        elif name.endswith("embed_tokens.weight"):
            nn.init.normal_(parameter, std=0.02, generator=generator)
        elif parameter.dim() == 2:
            std = 0.7 * parameter.shape[1] ** -0.5
            nn.init.normal_(parameter, std=std, generator=generator)


def num_parameters(network: nn.Module) -> int:
    """Number of trained values."""
    return sum(p.numel() for p in network.parameters())
