"""Speculative streams in training: vectors and adapters learn, the target's layers stay.

Everything is as `heads.streams` has it, over many places of whole texts at once. Rows of queries
and keys are in the order that the target's layers have here.

Source: Speculative Streaming (Bhendawade et al. 2024), section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from medusa_core.heads.streams import (
    EMBEDDINGS,
    LINEARS,
    LlamaWeights,
    StreamSizes,
    llama_weights,
)
from medusa_core.models.config import ModelConfig
from medusa_core.models.decoder import Decoder
from medusa_core.models.norm import RmsNorm
from medusa_core.models.precision import Precision
from medusa_core.training.matrices import matrix_of

_VECTOR_SIZE = 0.1  # of a stream's vector at first, of that of a state


class TappedText(NamedTuple):
    """A text, and at which of its places streams are wanted.

    Attributes:
        deep: What enters the last layers at every token, side by side. [length, layers · hidden]
        places: int64 [n]
    """

    deep: Tensor
    places: Tensor


class StreamAdapter(nn.Module):
    """What LoRA adds to a layer; nothing at first.

    Attributes:
        gain: By which what comes out is larger than what goes in, as the layer's own is: else what
            learns at one pace would be lost beside layers of large numbers.
    """

    def __init__(self, rank: int, outputs: int, inputs: int, gain: float = 1.0) -> None:
        super().__init__()
        self.gain = gain
        self.inner = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.outer = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(F.linear(x, self.inner), self.outer) * self.gain


class FrozenLayer(nn.Module):
    """A layer of the target in plain numbers, none of which learns.

    Attributes:
        eps: Of its norms.
        head_norm: Of every query and key head, or None. [heads, dim]
    """

    head_norm: Tensor | None

    def __init__(self, block: LlamaWeights, sizes: StreamSizes, precision: Precision) -> None:
        super().__init__()
        self.eps = float(block.attention_norm.eps)
        parts: dict[str, Tensor | None] = {
            "attention_norm": block.attention_norm.weight,
            "mlp_norm": block.mlp_norm.weight,
            "head_norm": None if block.qk_norm is None else block.qk_norm.weight,
        }
        for name in LINEARS:
            weight, bias = matrix_of(getattr(block, name), *sizes.widths[name], precision)
            parts[name], parts[f"{name}_bias"] = weight, bias
        for name, tensor in parts.items():
            kept = None if tensor is None else tensor.detach().float()
            self.register_buffer(name, kept, persistent=False)

    def linear(self, name: str, x: Tensor) -> Tensor:
        """One of its matrices."""
        bias = getattr(self, f"{name}_bias")
        y: Tensor = F.linear(x, getattr(self, name), bias)
        return y

    def normed(self, name: str, x: Tensor) -> Tensor:
        """One of its norms, in float32."""
        y: Tensor = rms(x, self.eps) * getattr(self, name)
        return y


class StreamsModule(nn.Module):
    """Streams beside the last layers of a target.

    Attributes:
        sizes: Of the streams.
        lm_head: The target's projection, frozen. [vocabulary, hidden]
    """

    def __init__(
        self,
        sizes: StreamSizes,
        config: ModelConfig,
        decoder: Decoder,
        lm_head: Tensor,
        precision: Precision,
        size: float = 1.0,
    ) -> None:
        """Make streams that have yet to learn anything.

        Args:
            sizes: Of the streams; they fit the target.
            config: Sizes of the target.
            decoder: The target; its numbers are copied.
            lm_head: Its projection.
            precision: In which the target runs, and where.
            size: Of a number of what enters the first of the last layers; vectors are as large.
        """
        super().__init__()
        self.sizes, self._size = sizes, size
        self._num_q, self._num_kv, self._dim = (
            config.num_heads,
            config.num_kv_heads,
            config.head_dim,
        )
        self.vectors = nn.Parameter(_VECTOR_SIZE * torch.randn(sizes.num_streams, sizes.hidden))
        of_streams = range(sizes.first_layer, sizes.num_layers)
        self._frozen = nn.ModuleList(
            FrozenLayer(llama_weights(decoder.blocks[layer]), sizes, precision)
            for layer in of_streams
        )
        gains = {
            f"layers.{layer}.{part}": gain_of(getattr(frozen, part))
            for layer, frozen in zip(of_streams, self._frozen, strict=True)
            for part in LINEARS
        }
        self.adapters = nn.ModuleDict(
            {
                _key(name): StreamAdapter(sizes.rank, outputs, inputs, gains.get(name, 1.0))
                for name, (outputs, inputs) in sizes.adapters.items()
            }
        )
        self.lm_head: Tensor
        self.final_norm: Tensor
        self.turns: Tensor
        self.register_buffer("lm_head", lm_head, persistent=False)
        norm: RmsNorm = decoder.final_norm
        self.register_buffer("final_norm", norm.weight.detach().float(), persistent=False)
        self._eps = norm.eps
        num_places = config.context_tokens + sizes.num_streams + 1
        turns = torch.view_as_real(decoder.rotations(num_places)[0][:num_places]).float().clone()
        self.register_buffer("turns", turns, persistent=False)

    def states(self, texts: Sequence[TappedText]) -> Tensor:
        """What streams leave behind the final norm.

        Args:
            texts: Of which; places of all follow each other.

        Returns:
            [places, streams, hidden]
        """
        sizes = self.sizes
        width, num_streams = sizes.hidden, sizes.num_streams
        entering = torch.cat([text.deep[text.places, :width] for text in texts])
        start = entering + self._adapter("stream_init")(entering)
        x = start[:, None] + self._size * self.vectors
        ahead = torch.arange(1, num_streams + 1, device=x.device)
        places = torch.cat([text.places for text in texts])[:, None] + ahead
        turns = self.turns[places].unsqueeze(2)
        for index in range(len(self._frozen)):
            x = self._layer(index, x, turns, texts)
        return self._last(x)

    def tensors(self) -> dict[str, Tensor]:
        """What was learned, by the names of `StreamSizes.tensors`; rows in the order of here."""
        tensors: dict[str, Tensor] = {EMBEDDINGS: self._size * self.vectors.detach()}
        for name in self.sizes.adapters:
            adapter = self._adapter(name)
            tensors[f"{name}.lora_A"] = adapter.inner.detach()
            tensors[f"{name}.lora_B"] = adapter.gain * adapter.outer.detach()
        return tensors

    def _layer(self, index: int, x: Tensor, turns: Tensor, texts: Sequence[TappedText]) -> Tensor:
        layer = self._frozen[index]
        assert isinstance(layer, FrozenLayer)
        number = self.sizes.first_layer + index

        def changed(name: str, rows: Tensor) -> Tensor:
            adapter: Tensor = self._adapter(f"layers.{number}.{name}")(rows)
            return layer.linear(name, rows) + adapter

        q, k, v = self._heads(layer, changed("qkv", layer.normed("attention_norm", x)), turns)
        counts = [len(text.places) for text in texts]
        pieces = zip(*(torch.split(part, counts) for part in (q, k, v)), strict=True)
        mixed = torch.cat(
            [
                self._attend(text.places, piece, self._main(layer, index, text.deep))
                for text, piece in zip(texts, pieces, strict=True)
            ]
        )
        x = x + changed("output", mixed)
        gate, up = changed("gate_up", layer.normed("mlp_norm", x)).chunk(2, dim=-1)
        return x + changed("down", F.silu(gate) * up)

    @torch.no_grad()
    def _main(self, layer: FrozenLayer, index: int, deep: Tensor) -> tuple[Tensor, Tensor]:
        """The target's own keys and values in a layer. [length, heads, dim] each"""
        width = self.sizes.hidden
        x = layer.normed("attention_norm", deep[:, index * width : (index + 1) * width])
        turns = self.turns[: len(x)].unsqueeze(1)
        _, k, v = self._heads(layer, layer.linear("qkv", x), turns)
        return k, v

    def _heads(
        self, layer: FrozenLayer, qkv: Tensor, turns: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, scaled, keys and values. [..., heads, dim] each"""
        rows = qkv.float().view(*qkv.shape[:-1], -1, self._dim)
        turned, values = torch.split(rows, [self._num_q + self._num_kv, self._num_kv], dim=-2)
        if layer.head_norm is not None:
            turned = rms(turned, layer.eps) * layer.head_norm
        a, b = turned.reshape(*turned.shape[:-1], -1, 2).unbind(-1)
        cosine, sine = turns.unbind(-1)
        turned = torch.stack([a * cosine - b * sine, b * cosine + a * sine], dim=-1).flatten(-2)
        q, k = torch.split(turned, [self._num_q, self._num_kv], dim=-2)
        return q / math.sqrt(self._dim), k, values

    def _attend(
        self,
        places: Tensor,
        own: tuple[Tensor, Tensor, Tensor],
        main: tuple[Tensor, Tensor],
    ) -> Tensor:
        """Attention of streams of one text: over its tokens up to theirs, and streams up to them.

        Args:
            places: Of the streams' tokens. [n]
            own: Queries, keys and values of streams. [n, streams, heads, dim]
            main: Keys and values of the text's tokens. [length, heads, dim]

        Returns:
            [n, streams, heads · dim]
        """
        group = self._num_q // self._num_kv
        q = own[0]
        k, v = (part.repeat_interleave(group, dim=2) for part in own[1:])
        keys, values = (part.repeat_interleave(group, dim=1) for part in main)
        length, num_streams = len(keys), q.shape[1]
        later = torch.arange(length, device=q.device) > places[:, None]
        to_main = torch.einsum("nshd,thd->hnst", q, keys)
        to_main = to_main.masked_fill(later[None, :, None], float("-inf"))
        to_own = torch.einsum("nshd,nuhd->hnsu", q, k)
        beyond = torch.ones(num_streams, num_streams, dtype=torch.bool, device=q.device).triu(1)
        to_own = to_own.masked_fill(beyond, float("-inf"))
        weights = torch.softmax(torch.cat([to_main, to_own], dim=-1), dim=-1)
        mixed = torch.einsum("hnst,thd->nshd", weights[..., :length], values)
        mixed = mixed + torch.einsum("hnsu,nuhd->nshd", weights[..., length:], v)
        return mixed.flatten(2)

    def _adapter(self, name: str) -> StreamAdapter:
        adapter = self.adapters[_key(name)]
        assert isinstance(adapter, StreamAdapter)
        return adapter

    def _last(self, x: Tensor) -> Tensor:
        return rms(x, self._eps) * self.final_norm


def gain_of(matrix: Tensor) -> float:
    """By which what a matrix makes is larger than what it is given, about."""
    return power_of_two(float(matrix.pow(2).mean().sqrt()) * math.sqrt(matrix.shape[1]))


def power_of_two(size: float) -> float:
    """The next one: what is multiplied by it is rounded as before."""
    return 2.0 ** round(math.log2(max(size, 1e-6)))


def rms(x: Tensor, eps: float) -> Tensor:
    """Normalize rows by their root mean square: x / √(mean(x²) + ε), in float32."""
    wide = x.float()
    return wide * (wide.pow(2).mean(-1, keepdim=True) + eps).rsqrt()


def _key(name: str) -> str:
    """A name as modules have it."""
    return name.replace(".", "-")
