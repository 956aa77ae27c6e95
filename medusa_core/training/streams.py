"""Speculative streams in training: stream embeddings and adapters learn, the target is frozen.

Computes what `heads.streams` does, at many positions of whole texts at once. Rows of queries and
keys have the order of the loaded target's layers.

Source: Speculative Streaming (Bhendawade et al. 2024), section 3.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from medusa_core.heads.streams import (
    EMBEDDINGS,
    StreamSizes,
    adapted_block,
    keys_values,
)
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.combined_linear import AdaptedLinear
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.runtime.backends.block import Block
from medusa_core.runtime.backends.caches import PassCache, SequenceRows
from medusa_core.runtime.backends.decoder import Decoder, rope_configs
from medusa_core.runtime.backends.norm import HeadNorm, RmsNorm
from medusa_core.runtime.backends.rope import Rope
from medusa_core.runtime.backends.torch_blocks import PassContext, run_block
from medusa_core.training.draft_layers import TrainedLinear
from medusa_core.training.matrices import dequantize_linear

_VECTOR_SIZE = 0.1  # initial scale of stream embeddings, relative to states


class TappedText(NamedTuple):
    """A text, and the positions at which streams draft.

    Attributes:
        deep: Inputs of the last layers at every token, concatenated. [length, layers · hidden]
        places: int64 [n]
    """

    deep: Tensor
    places: Tensor


class StreamAdapter(nn.Module):
    """A LoRA on one layer; it adds nothing at first.

    Attributes:
        gain: Multiplier of the output. Without it, the adapters of layers with large outputs would
            learn too slowly at a common learning rate.
    """

    def __init__(self, rank: int, outputs: int, inputs: int, gain: float = 1.0) -> None:
        super().__init__()
        self.gain = gain
        self.inner = nn.Parameter(torch.randn(rank, inputs) / math.sqrt(inputs))
        self.outer = nn.Parameter(torch.zeros(outputs, rank))

    def forward(self, x: Tensor) -> Tensor:
        """Return what the adapter adds to the layer's output."""
        return F.linear(F.linear(x, self.inner), self.outer) * self.gain

    def adapt(self, base: QuantLinear) -> AdaptedLinear:
        """Return a layer with the adapter added."""
        up = TrainedLinear(self.outer * self.gain)
        whole = (slice(0, len(self.inner)), 0, len(self.outer))
        return AdaptedLinear([base, TrainedLinear(self.inner), up], [whole])


class StreamsModule(nn.Module):
    """Streams beside the last layers of a target.

    Attributes:
        sizes: Sizes of the streams.
        lm_head: The target's output projection, frozen. [vocabulary, hidden]
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
        """Initialize untrained streams.

        Args:
            sizes: Sizes of the streams, which fit the target.
            config: Sizes of the target.
            decoder: The target; weights are copied.
            lm_head: Its output projection.
            precision: Dtypes and device of the target.
            size: Scale of the first stream layer's inputs, and of stream embeddings.
        """
        super().__init__()
        self.sizes, self._size = sizes, size
        self._config = config
        self.vectors = nn.Parameter(_VECTOR_SIZE * torch.randn(sizes.num_streams, sizes.hidden))
        gains: dict[str, float] = {}

        def frozen(index: int) -> Block:
            """Return a dequantized copy of the target's block."""
            layer = sizes.first_layer + index

            def copied(name: str, linear: QuantLinear) -> QuantLinear:
                """Dequantize a linear layer to float32, and note its gain."""
                weight, bias = dequantize_linear(linear, *sizes.widths[name], precision)
                gains[f"layers.{layer}.{name}"] = output_gain(weight)
                return TrainedLinear(weight.float(), bias.float())

            return _norms_in_float32(adapted_block(decoder.blocks[layer], copied))

        # Copies, so that the target's memory can be released.
        self._blocks = [frozen(index) for index in range(sizes.num_layers - sizes.first_layer)]
        self._final_norm = RmsNorm(decoder.final_norm.weight, decoder.final_norm.eps)
        self.adapters = nn.ModuleDict(
            {
                _key(name): StreamAdapter(sizes.rank, outputs, inputs, gains.get(name, 1.0))
                for name, (outputs, inputs) in sizes.adapters.items()
            }
        )
        self.lm_head: Tensor
        self.register_buffer("lm_head", lm_head, persistent=False)

    def states(self, texts: Sequence[TappedText]) -> Tensor:
        """Run all streams at some positions.

        Args:
            texts: Texts with positions; results are concatenated.

        Returns:
            States after the final norm. [positions, streams, hidden]
        """
        sizes = self.sizes
        width, num_streams = sizes.hidden, sizes.num_streams
        entering = torch.cat([text.deep[text.places, :width] for text in texts])
        start = entering + self._adapter("stream_init")(entering)
        x = (start[:, None] + self._size * self.vectors).flatten(0, 1)
        ahead = torch.arange(1, num_streams + 1, device=x.device)
        positions = torch.cat([text.places for text in texts])[:, None] + ahead
        context = self._context(positions.flatten(), max(len(text.deep) for text in texts))
        sequences, first = [], 0
        for text in texts:
            rows = slice(first, first + len(text.places) * num_streams)
            cache = PassCache(x.device, self._keys_values(text.deep))
            sequences.append(SequenceRows(rows, self._mask(text, context.group), cache))
            first = rows.stop
        for index, block in enumerate(self._blocks):
            x = run_block(index, self._adapted(index, block), x, context, sequences)
        return self._final_norm(x).view(*positions.shape, width)

    def tensors(self) -> dict[str, Tensor]:
        """Return the trained tensors by the names of `StreamSizes.tensors`."""
        tensors: dict[str, Tensor] = {EMBEDDINGS: self._size * self.vectors.detach()}
        for name in self.sizes.adapters:
            adapter = self._adapter(name)
            tensors[f"{name}.lora_A"] = adapter.inner.detach()
            tensors[f"{name}.lora_B"] = adapter.gain * adapter.outer.detach()
        return tensors

    def _adapted(self, index: int, block: Block) -> Block:
        """Return a block with its adapters."""
        layer = self.sizes.first_layer + index

        def adapt(name: str, linear: QuantLinear) -> QuantLinear:
            """Return a linear layer with its adapter."""
            return self._adapter(f"layers.{layer}.{name}").adapt(linear)

        return adapted_block(block, adapt)

    def _context(self, positions: Tensor, length: int) -> PassContext:
        """Return the context of streams of texts of at most this length."""
        config, device = self._config, positions.device
        ropes = [Rope(each, torch.float32, device) for each in rope_configs(config)]
        return PassContext.of_layers(
            *(config, positions, length + self.sizes.num_streams, ropes, torch.float32),
            group_size=self.sizes.num_streams,
            is_causal=True,
        )

    @torch.no_grad()
    def _keys_values(self, deep: Tensor) -> list[Tensor]:
        """Return the target's keys and values of a text, by layer. [length, 2 · kv heads, dim]"""
        context = self._context(torch.arange(len(deep), device=deep.device), len(deep))
        entering = deep.chunk(len(self._blocks), dim=1)
        return [
            keys_values(block, x, context) for block, x in zip(self._blocks, entering, strict=True)
        ]

    def _mask(self, text: TappedText, group: int) -> Tensor:
        """Return the mask that hides the text after each place. [group · n · streams, length]"""
        later = torch.arange(len(text.deep), device=text.deep.device) > text.places[:, None]
        mask = torch.zeros(later.shape, device=later.device).masked_fill_(later, float("-inf"))
        return mask.repeat_interleave(self.sizes.num_streams, dim=0).repeat(group, 1)

    def _adapter(self, name: str) -> StreamAdapter:
        """Return an adapter with its type."""
        adapter = self.adapters[_key(name)]
        assert isinstance(adapter, StreamAdapter)
        return adapter


def _norms_in_float32(block: Block) -> Block:
    """Return a block whose norms don't round their output to the target's dtype."""
    attention = block.attention
    assert attention is not None
    if isinstance(norm := attention.qk_norm, HeadNorm):
        head_norm = HeadNorm(norm.weight.float(), norm.norm.eps)
        attention = replace(attention, qk_norm=head_norm)
    pre, pre_mlp = (
        None if one is None else RmsNorm(one.weight, one.eps)
        for one in (block.pre_norm, block.pre_mlp_norm)
    )
    return replace(block, mixers=(attention,), pre_norm=pre, pre_mlp_norm=pre_mlp)


def output_gain(matrix: Tensor) -> float:
    """Return about how much larger a matrix's outputs are than its inputs."""
    return power_of_two(float(matrix.pow(2).mean().sqrt()) * math.sqrt(matrix.shape[1]))


def power_of_two(size: float) -> float:
    """Return the nearest power of two, so that scaling by it is exact."""
    return 2.0 ** round(math.log2(max(size, 1e-6)))


def _key(name: str) -> str:
    """Return a name that is valid in torch's modules."""
    return name.replace(".", "-")
