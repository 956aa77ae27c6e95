"""The layers of a block drafter: Qwen3's, whose places also see what the target made of each token.

What the target says of a token becomes keys and values in every layer; it passes through nothing
else of them. Places of a block see these, and each other.

Source: DFlash (arXiv 2602.06036), section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from medusa_core.heads.block_convolution import BlockConvolution
from medusa_core.heads.chained import TakeTensor
from medusa_core.heads.medusa import MakeLinear
from medusa_core.models.activation import active_of
from medusa_core.models.attention import choose_attention
from medusa_core.models.config import ModelConfig
from medusa_core.models.norm import RmsNorm
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.rope import Rope, interleave_rows, rotate_heads
from medusa_core.runtime.kv.tensor import TensorCache


@dataclass(frozen=True, slots=True)
class BlockLayer:
    """Weights of one layer; decided tokens have no use for queries, whose projection is apart.

    Attributes:
        attention_norm: Before attention.
        query: To queries.
        key_value: To keys and values.
        query_norm: Of every query head.
        key_norm: Of every key head.
        output: Behind attention.
        mlp_norm: Before the MLP.
        gate_up: Its first two projections.
        down: Its last one.
        convolutions: Around attention, and around the MLP; None for none.
    """

    attention_norm: RmsNorm
    query: QuantLinear
    key_value: QuantLinear
    query_norm: RmsNorm
    key_norm: RmsNorm
    output: QuantLinear
    mlp_norm: RmsNorm
    gate_up: QuantLinear
    down: QuantLinear
    convolutions: tuple[BlockConvolution, BlockConvolution] | None = None

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Its matrices."""
        own = () if self.convolutions is None else self.convolutions
        projections = (convolution.projection for convolution in own)
        return (self.query, self.key_value, self.output, self.gate_up, self.down, *projections)

    @property
    def kernel_bytes(self) -> int:
        """Bytes of its convolutions' kernels."""
        return sum(one.kernels.nbytes for one in self.convolutions or ())

    @property
    def norms(self) -> tuple[RmsNorm, ...]:
        """Its norms."""
        return (self.attention_norm, self.query_norm, self.key_norm, self.mlp_norm)


class BlockLayers:
    """All layers.

    Attributes:
        layers: Their weights.
    """

    def __init__(
        self,
        config: ModelConfig,
        windows: tuple[int | None, ...],
        are_causal: tuple[bool, ...],
        in_pairs: bool,
        take: TakeTensor,
        make: MakeLinear,
        precision: Precision,
    ) -> None:
        """Take the weights.

        Args:
            config: Sizes of the layers, as of a target with so many.
            windows: Of every layer how near a place must be to be seen; None for any.
            are_causal: Of every layer: a place sees none behind it in the block.
            in_pairs: Heads lie as the neighbouring pairs that are turned.
            take: A part's tensor in the compute dtype on the device; None where there is none.
            make: Makes a layer of a weight and a bias, in the heads' format.
            precision: Where and in which dtype they run.
        """
        self._config, self._precision = config, precision
        self._sight = tuple(zip(windows, are_causal, strict=True))
        self._in_pairs, self._take, self._make = in_pairs, take, make
        self.layers = [self._read(index) for index in range(config.num_layers)]
        self._rope = Rope(config, precision.scores, precision.device)
        self._attend = choose_attention(precision.device)
        self._active = active_of(config.traits)
        self._group = config.num_heads // config.num_kv_heads
        self._scale = config.head_dim**-0.5

    def inject(self, features: Tensor, place: int, kv: TensorCache) -> None:
        """Keep what the target says of consecutive tokens as keys and values of every layer.

        Args:
            features: Of each. [n, hidden]
            place: Of the first in the text.
            kv: Takes a row of each.
        """
        count = len(features)
        turns = self._turns(place, count, kv)
        kv.reserve(count)
        for index, layer in enumerate(self.layers):
            kv.write(index, self._keys_values(layer, features, turns))
        kv.commit(range(count))

    def __call__(self, x: Tensor, place: int, kv: TensorCache) -> Tensor:
        """Run a block; it leaves no rows behind.

        Args:
            x: Token vectors of its places. [n, hidden]
            place: Of the first in the text.
            kv: Rows of the tokens before it; it has room for the block.

        Returns:
            What leaves the last layer. [n, hidden]
        """
        turns = self._turns(place, len(x), kv)
        kv.reserve(len(x))  # and never committed
        masks: dict[tuple[int | None, bool], Tensor | None] = {}
        for index, layer in enumerate(self.layers):
            sight = self._sight[index]
            if sight not in masks:
                masks[sight] = self._mask(len(x), kv.length, *sight)
            x = self._layer(index, layer, x, turns, masks[sight], kv)
        return x

    def _layer(
        self,
        index: int,
        layer: BlockLayer,
        x: Tensor,
        turns: Tensor,
        mask: Tensor | None,
        kv: TensorCache,
    ) -> Tensor:
        scores, around = self._precision.scores, layer.convolutions
        normed = layer.attention_norm(x)
        if around is not None:
            normed, added = around[0].before(normed)
        queries = _normed(layer.query_norm, layer.query(normed))
        queries = rotate_heads(queries, turns).to(scores).mul_(self._scale)
        rows = kv.write(index, self._keys_values(layer, normed, turns))
        keys, values = (part.to(scores) for part in rows)
        mixed = self._attend(queries, keys, values, mask)
        if around is None:
            x = layer.output.plus(mixed.to(x.dtype), x)
            gate, up = layer.gate_up(layer.mlp_norm(x)).chunk(2, dim=-1)
            return layer.down.plus(self._active(gate, up), x)
        x = x + around[0].behind(layer.output(mixed.to(x.dtype)), added)
        normed, added = around[1].before(layer.mlp_norm(x))
        gate, up = layer.gate_up(normed).chunk(2, dim=-1)
        return x + around[1].behind(layer.down(self._active(gate, up)), added)

    def _keys_values(self, layer: BlockLayer, rows: Tensor, turns: Tensor) -> Tensor:
        """Keys, then values. [n, hidden] → [n, 2 · kv heads, head_dim]"""
        keys, values = layer.key_value(rows).chunk(2, dim=-1)
        turned = rotate_heads(_normed(layer.key_norm, keys), turns)
        return torch.cat([turned, values.view(turned.shape).to(turned.dtype)], dim=1)

    def _turns(self, place: int, count: int, kv: TensorCache) -> Tensor:
        """Rotations of consecutive places."""
        return self._rope.turns(max(kv.capacity, place + count))[place : place + count]

    def _mask(self, count: int, before: int, window: int | None, is_causal: bool) -> Tensor | None:
        """What places of a block see of the rows before it and of each other."""
        if window is None and not is_causal:
            return None
        device = self._precision.device
        slots = torch.arange(before + count, device=device)
        ahead = slots - slots[before:, None]  # how far a row lies behind a place
        hidden = ahead > 0 if is_causal else torch.zeros_like(ahead, dtype=torch.bool)
        if window is not None:
            hidden |= ahead.abs() >= window
        mask = torch.zeros(hidden.shape, dtype=self._precision.scores, device=device)
        return mask.masked_fill_(hidden, float("-inf")).repeat(self._group, 1)

    def _read(self, index: int) -> BlockLayer:
        def need(part: str) -> Tensor:
            tensor = self._take(f"{index}.{part}")
            assert tensor is not None  # whoever read the names has seen to it
            return tensor

        def bias(*parts: str) -> Tensor | None:
            found = [self._take(f"{index}.{part}_bias") for part in parts]
            own = [
                self._turned(p, one) for p, one in zip(parts, found, strict=True) if one is not None
            ]
            return torch.cat(own) if own else None

        def around(part: str) -> BlockConvolution | None:
            kernels = self._take(f"{index}.{part}_kernels")
            if kernels is None:
                return None
            return BlockConvolution(kernels, self._make(need(f"{part}_projection"), None))

        first, second = around("attention_convolution"), around("mlp_convolution")
        make, eps = self._make, self._config.rms_norm_eps
        keys = self._turned("k", need("k"))
        return BlockLayer(
            attention_norm=RmsNorm(need("attention_norm"), eps),
            query=make(self._turned("q", need("q")), bias("q")),
            key_value=make(torch.cat([keys, need("v")]), bias("k", "v")),
            query_norm=RmsNorm(self._turned("q", need("q_norm")), eps),
            key_norm=RmsNorm(self._turned("k", need("k_norm")), eps),
            output=make(need("o"), bias("o")),
            mlp_norm=RmsNorm(need("mlp_norm"), eps),
            gate_up=make(torch.cat([need("gate"), need("up")]), None),
            down=make(need("down"), None),
            convolutions=None if first is None or second is None else (first, second),
        )

    def _turned(self, part: str, rows: Tensor) -> Tensor:
        """Rows of queries or keys in the order in which they are turned."""
        if self._in_pairs or part not in ("q", "k"):
            return rows
        return interleave_rows(rows, *self._config.head_rows)


def _normed(norm: RmsNorm, rows: Tensor) -> Tensor:
    """Every head of rows on its own. [n, heads · head_dim] → [n, heads, head_dim]"""
    size = len(norm.weight)
    return norm(rows.reshape(-1, size)).view(len(rows), -1, size)
