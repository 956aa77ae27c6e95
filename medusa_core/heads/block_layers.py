"""The layers of a block drafter: Qwen3's, whose places also see what the target made of each token.

What the target says of a token becomes keys and values in every layer; it passes through nothing
else of them. Places of a block see these, and each other.

Source: DFlash (arXiv 2602.06036), section 3.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.heads.block_convolution import BlockConvolution
from medusa_core.heads.block_settings import BlockSettings
from medusa_core.heads.medusa import MakeLinear
from medusa_core.heads.part_tensors import TakeTensor, need
from medusa_core.models.activation import active_of
from medusa_core.models.attention import choose_attention
from medusa_core.models.config import ModelConfig
from medusa_core.models.norm import RmsNorm
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.rope import Rope, in_halves, interleave_rows, rotate_heads
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
        attention_end: A norm of what attention makes, or None.
        mlp_end: So of what the MLP makes.
        scale: What leaves the layer is multiplied with. [1], or None
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
    attention_end: RmsNorm | None = None
    mlp_end: RmsNorm | None = None
    scale: Tensor | None = None

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Its matrices."""
        own = () if self.convolutions is None else self.convolutions
        projections = (convolution.projection for convolution in own)
        return (self.query, self.key_value, self.output, self.gate_up, self.down, *projections)

    @property
    def plain_bytes(self) -> int:
        """Bytes of its convolutions' kernels, and of its scale."""
        kernels = sum(one.kernels.nbytes for one in self.convolutions or ())
        return kernels + (0 if self.scale is None else self.scale.nbytes)

    @property
    def norms(self) -> tuple[RmsNorm, ...]:
        """Its norms."""
        always = (self.attention_norm, self.query_norm, self.key_norm, self.mlp_norm)
        ends = (self.attention_end, self.mlp_end)
        return (*always, *(norm for norm in ends if norm is not None))


class BlockLayers:
    """All layers.

    Attributes:
        layers: Their weights.
    """

    def __init__(
        self,
        config: ModelConfig,
        settings: BlockSettings,
        take: TakeTensor,
        make: MakeLinear,
        precision: Precision,
    ) -> None:
        """Take the weights.

        Args:
            config: Sizes of the layers, as of a target with so many.
            settings: What places see of each other, and how heads lie.
            take: A part's tensor in the compute dtype on the device; None where there is none.
            make: Makes a layer of a weight and a bias, in the heads' format.
            precision: Where and in which dtype they run.
        """
        self._config, self._precision = config, precision
        self._sight = tuple(zip(settings.windows, settings.are_causal, strict=True))
        self._in_pairs, self._take, self._make = settings.in_pairs, take, make
        self.layers = [self._read(index) for index in range(config.num_layers)]
        self._rope = Rope(config, precision.scores, precision.device)
        self._attend = choose_attention(precision.device)
        self._active = active_of(config.traits)
        self._group = config.num_heads // config.num_kv_heads
        scale = config.traits.attention_scale
        self._scale = config.head_dim**-0.5 if scale is None else scale

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
        scores = self._precision.scores
        around = layer.convolutions or (None, None)
        normed, added = _before(layer.attention_norm(x), around[0])
        queries = _normed(layer.query_norm, layer.query(normed))
        queries = rotate_heads(queries, turns).to(scores).mul_(self._scale)
        rows = kv.write(index, self._keys_values(layer, normed, turns))
        keys, values = (part.to(scores) for part in rows)
        mixed = self._attend(queries, keys, values, mask).to(x.dtype)
        x = _plus(x, layer.output, mixed, layer.attention_end, around[0], added)
        normed, added = _before(layer.mlp_norm(x), around[1])
        gate, up = layer.gate_up(normed).chunk(2, dim=-1)
        x = _plus(x, layer.down, self._active(gate, up), layer.mlp_end, around[1], added)
        return x if layer.scale is None else x * layer.scale

    def _keys_values(self, layer: BlockLayer, rows: Tensor, turns: Tensor) -> Tensor:
        """Keys, then values. [n, hidden] → [n, 2 · kv heads, head_dim]"""
        said, config = layer.key_value(rows), self._config
        if config.traits.keys_are_values:
            raw = said.view(len(said), -1, config.head_dim)
            keys, values = said, raw if self._in_pairs else in_halves(raw)
        else:
            keys, own = said.chunk(2, dim=-1)
            values = own.view(len(own), -1, config.head_dim)
        if config.traits.normalises_values:
            values = F.rms_norm(
                values.to(turns.real.dtype), values.shape[-1:], None, config.rms_norm_eps
            )
        turned = rotate_heads(_normed(layer.key_norm, keys), turns)
        return torch.cat([turned, values.to(turned.dtype)], dim=1)

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
        def part_of(part: str) -> Tensor:
            return need(self._take, f"{index}.{part}")

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
            return BlockConvolution(kernels, self._make(part_of(f"{part}_projection"), None))

        first, second = around("attention_convolution"), around("mlp_convolution")
        make, eps = self._make, self._config.rms_norm_eps

        def norm(part: str) -> RmsNorm | None:
            weight = self._take(f"{index}.{part}")
            return None if weight is None else RmsNorm(weight, eps)

        keys, values = self._turned("k", part_of("k")), self._take(f"{index}.v")
        return BlockLayer(
            attention_norm=RmsNorm(part_of("attention_norm"), eps),
            query=make(self._turned("q", part_of("q")), bias("q")),
            key_value=make(keys if values is None else torch.cat([keys, values]), bias("k", "v")),
            query_norm=RmsNorm(self._turned("q", part_of("q_norm")), eps),
            key_norm=RmsNorm(self._turned("k", part_of("k_norm")), eps),
            output=make(part_of("o"), bias("o")),
            mlp_norm=RmsNorm(part_of("mlp_norm"), eps),
            gate_up=make(torch.cat([part_of("gate"), part_of("up")]), None),
            down=make(part_of("down"), None),
            convolutions=None if first is None or second is None else (first, second),
            attention_end=norm("behind_attention_norm"),
            mlp_end=norm("behind_mlp_norm"),
            scale=self._take(f"{index}.scale"),
        )

    def _turned(self, part: str, rows: Tensor) -> Tensor:
        """Rows of queries or keys in the order in which they are turned."""
        if self._in_pairs or part not in ("q", "k"):
            return rows
        return interleave_rows(rows, *self._config.head_rows)


def _before(x: Tensor, around: BlockConvolution | None) -> tuple[Tensor, Tensor | None]:
    """What a half of a layer reads, and what its convolution needs behind it."""
    return (x, None) if around is None else around.before(x)


def _plus(
    x: Tensor,
    project: QuantLinear,
    made: Tensor,
    end: RmsNorm | None,
    around: BlockConvolution | None,
    added: Tensor | None,
) -> Tensor:
    """What a half of a layer makes, added to what entered it. [n, hidden]"""
    if end is None and around is None:
        return project.plus(made, x)
    made = project(made)
    if around is not None and added is not None:
        made = around.behind(made, added)
    return x + (made if end is None else end(made))


def _normed(norm: RmsNorm, rows: Tensor) -> Tensor:
    """Every head of rows on its own. [n, heads · head_dim] → [n, heads, head_dim]"""
    size = len(norm.weight)
    return norm(rows.reshape(-1, size)).view(len(rows), -1, size)
