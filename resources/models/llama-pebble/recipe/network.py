"""A trainable Llama with Hugging Face's parameter names."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from recipe.attention import Visible, attend
from recipe.recipe import ModelSize


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

    def project(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Rotated queries and keys, and values: [B, L, H] to three [B, heads, L, d]."""
        batch, length, width = hidden.shape
        shape = (batch, length, self.num_heads, width // self.num_heads)
        q = rotate(self.q_proj(hidden).view(shape).transpose(1, 2), cos, sin)
        k = rotate(self.k_proj(hidden).view(shape).transpose(1, 2), cos, sin)
        return q, k, self.v_proj(hidden).view(shape).transpose(1, 2)

    def output(self, attended: Tensor) -> Tensor:
        """[B, heads, L, d] back to [B, L, H]."""
        batch, heads, length, width = attended.shape
        joined = attended.transpose(1, 2).reshape(batch, length, heads * width)
        result: Tensor = self.o_proj(joined)
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
        self, hidden: Tensor, cos: Tensor, sin: Tensor, visible: Visible, cache: LayerCache | None
    ) -> Tensor:
        """[B, L, H] to [B, L, H]."""
        q, k, v = self.before(hidden, cos, sin)
        if cache is not None:
            k, v = cache.append(k, v)
        return self.after(hidden, attend(q, k, v, visible))

    def before(self, hidden: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """All that comes before attention."""
        return self.self_attn.project(self.input_layernorm(hidden), cos, sin)

    def after(self, hidden: Tensor, attended: Tensor) -> Tensor:
        """All that comes after attention."""
        hidden = hidden + self.self_attn.output(attended)
        result: Tensor = hidden + self.mlp(self.post_attention_layernorm(hidden))
        return result

    def compile_parts(self) -> None:
        """Fuse what surrounds attention; attention's shapes change from batch to batch."""
        self.before = torch.compile(self.before, dynamic=False)  # type: ignore[method-assign]
        self.after = torch.compile(self.after, dynamic=False)  # type: ignore[method-assign]


class Trunk(nn.Module):
    """Embedding, layers and the last norm."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(size.vocab_size, size.hidden_size)
        self.layers = nn.ModuleList(Block(size) for _ in range(size.num_layers))
        self.norm = RMSNorm(size.hidden_size, size.rms_norm_eps)

    def compile_blocks(self) -> None:
        """Fuse the elementwise work of all layers; needs a C++ compiler."""
        for layer in self.layers:
            assert isinstance(layer, Block)
            layer.compile_parts()

    def forward(
        self,
        input_ids: Tensor,
        cos: Tensor,
        sin: Tensor,
        visible: Visible,
        caches: list[LayerCache] | None = None,
    ) -> Tensor:
        """Hidden states after the last norm, [B, L, H]."""
        hidden = self.embed_tokens(input_ids)
        for index, layer in enumerate(self.layers):
            cache = None if caches is None else caches[index]
            hidden = layer(hidden, cos, sin, visible, cache)
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
        visible: Visible,
        positions: Tensor | None = None,
        caches: list[LayerCache] | None = None,
    ) -> Tensor:
        """Hidden states after the last norm.

        Args:
            input_ids: int64 [B, L].
            visible: bool, broadcastable to [B, heads, L, keys], True where attention is allowed;
                or the lengths of the documents, row after row, each seeing itself alone.
            positions: int64 [B, L]; 0..L-1 by default.
            caches: one per layer while generating.

        Returns:
            [B, L, H].
        """
        if positions is None:
            positions = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        cos, sin = rotary_tables(positions, self.size)
        result: Tensor = self.model(input_ids, cos, sin, visible, caches)
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
