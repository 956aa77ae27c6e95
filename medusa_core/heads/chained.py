"""A head of one layer that goes on from the target's states, token by token, with its own cache.

Place i of its cache stands for the pair of the target's state at token i and token i + 1: from it
the head makes the state at token i + 1, and from that what may be token i + 2. Behind its own
guesses it goes on from its own states. EAGLE's heads are such, and the layers that some targets
hold to predict further tokens.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.heads.medusa import MakeLinear, SharedWeights
from medusa_core.models.attention import choose_attention
from medusa_core.models.config import ModelConfig
from medusa_core.models.norm import HeadNorm, RmsNorm
from medusa_core.models.precision import Precision
from medusa_core.models.quant.first_outputs import first_outputs
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.models.rope import Rope, interleave_rows, rotate
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.system.native.pool import Workers

TakeTensor = Callable[[str], Tensor | None]


class ChainedLinears(NamedTuple):
    """The matrices of a head; those of one input are one."""

    fc: QuantLinear
    qkv: QuantLinear
    output: QuantLinear
    gate_up: QuantLinear
    down: QuantLinear


class ChainedHead(ABC):
    """See the module.

    Attributes:
        num_heads: One.
        taps: Layers of the target whose entering states it reads.
        num_columns: From how many tokens it drafts.
        caches: Room for its caches, once it is reserved.
    """

    num_heads = 1

    def __init__(
        self,
        layer: ModelConfig,
        taps: tuple[int, ...],
        shared_weights: SharedWeights,
        precision: Precision,
    ) -> None:
        """Begin.

        Args:
            layer: Sizes of its layer, as of a target with one.
            taps: Layers of the target that it reads.
            shared_weights: What the target lends it.
            precision: Where and in which dtype it runs.
        """
        self.taps = taps
        self.num_columns = shared_weights.vocab_size
        self.caches: CachePool | None = None
        self._layer, self._precision, self._shared_weights = layer, precision, shared_weights
        self._projections: dict[int, QuantLinear] = {}

    @property
    @abstractmethod
    def linears(self) -> tuple[QuantLinear, ...]:
        """Its own matrices."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that it holds, what the target lends it and its caches left out."""

    def share_workers(self, workers: Workers) -> None:
        for linear in self.linears:
            if isinstance(linear, NativeLinear):
                linear.share_workers(workers)

    def reserve(self, num_rows: int) -> None:
        """Reserve room for so many rows of all conversations together.

        Raises:
            OutOfMemoryError: The device has no room.
        """
        precision = self._precision
        self.caches = CachePool(self._layer, precision.cache, precision.device, num_rows)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> KvCache:
        """An empty cache of its own."""
        return TensorCache(self._layer, self._precision, capacity, memory=memory)

    @abstractmethod
    def features(self, states: Tensor, deep: Tensor | None) -> Tensor:
        """What it goes on from behind tokens that the target has read.

        Args:
            states: The target's states behind its final norm. [n, hidden]
            deep: What enters `taps`, side by side. [n, taps · hidden]

        Returns:
            [n, features]
        """

    def entered(self, features: Tensor) -> Tensor:
        """Features as the first step of a draft reads them. [n, features] → [n, hidden]"""
        return features

    @abstractmethod
    def step(
        self,
        read: Tensor,
        token_ids: Sequence[int],
        positions: Sequence[int],
        slots: Sequence[int],
        mask: Tensor | None,
        width: int,
        kv: KvCache,
        only_last: bool = False,
    ) -> Tensor:
        """Go on by one token from each of some states.

        Args:
            read: `entered` features, or states that came of this. [n, hidden]
            token_ids: The token behind each.
            positions: Place of each in the cache's order.
            slots: Where their keys and values go.
            mask: Which slot each sees: additive [n, width], or None where all are seen.
            width: Slots that are read, from the first on.
            kv: From `new_cache`.
            only_last: Of the others, which stand before the last one, only keys and values are
                needed.

        Returns:
            States. [n, hidden], or [1, hidden]
        """

    def scores(self, states: Tensor, most: int = 0) -> Tensor:
        """Scores of what may follow.

        Args:
            states: [n, hidden]
            most: Of how many of the first columns they are wanted, where fewer cost less; a
                multiple of 32. 0 for all.

        Returns:
            [n, columns], float32 or better
        """
        wide = torch.promote_types(self._precision.compute, torch.float32)
        return self._projection(most)(states).to(wide)

    def _projection(self, most: int) -> QuantLinear:
        """The target's projection, or the beginning of it."""
        whole = self._shared_weights.lm_head
        if most not in self._projections:
            self._projections[most] = first_outputs(whole, most) or whole if most else whole
        return self._projections[most]

    def tokens(self, columns: Tensor) -> Tensor:
        """The tokens of some columns."""
        return columns


class LlamaHead(ChainedHead):
    """A head whose layer is Llama's own, but for what its attention reads."""

    def __init__(
        self,
        layer: ModelConfig,
        taps: tuple[int, ...],
        norms: Sequence[str],
        take: TakeTensor,
        shared_weights: SharedWeights,
        make: MakeLinear,
        precision: Precision,
    ) -> None:
        """Take the weights.

        Args:
            layer: Sizes of its layer, as of a target with one.
            taps: Layers of the target that it reads.
            norms: Parts that are norms, as far as it has them.
            take: A part's tensor in the compute dtype on the device; None where there is none.
            shared_weights: What the target lends it.
            make: Makes a layer of a weight and a bias, in the heads' format.
            precision: Where and in which dtype it runs.
        """
        super().__init__(layer, taps, shared_weights, precision)
        self._linears = _linears(layer, take, make)
        self._norms: dict[str, RmsNorm] = {}
        for name in ("mlp_norm", *norms):
            if (weight := take(name)) is not None:
                self._norms[name] = RmsNorm(weight, layer.rms_norm_eps)
        self._head_norm = _head_norm(layer, take)
        self._embedding = shared_weights.embedding
        self._rope = Rope(layer, precision.scores, precision.device)
        self._attend = choose_attention(precision.device)
        self._group = layer.num_heads // layer.num_kv_heads

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Its own matrices."""
        return self._linears

    @property
    def nbytes(self) -> int:
        norms = list(self._norms.values())
        if self._head_norm is not None:
            norms.append(self._head_norm.norm)
        held = sum(linear.nbytes for linear in self.linears)
        held += 0 if self._head_norm is None else self._head_norm.weight.nbytes
        return held + sum(norm.weight.nbytes + norm.weight.itemsize for norm in norms)

    def step(
        self,
        read: Tensor,
        token_ids: Sequence[int],
        positions: Sequence[int],
        slots: Sequence[int],
        mask: Tensor | None,
        width: int,
        kv: KvCache,
        only_last: bool = False,
    ) -> Tensor:
        assert isinstance(kv, TensorCache)
        device, linears = self._precision.device, self._linears
        vectors = self._embedding[torch.tensor(token_ids, device=self._embedding.device)]
        x, residual = self._joined(read, vectors.to(device, self._precision.compute))
        factors = self._rope.rotations(torch.tensor(positions, device=device), kv.capacity + 1)
        qkv = linears.qkv(x)
        turned = rotate(qkv if self._head_norm is None else self._head_norm(qkv), factors)
        num_q = self._layer.num_heads
        kv.reserve_slots(torch.tensor(slots, device=device), width)
        scores = self._precision.scores
        keys, values = (part.to(scores) for part in kv.write(0, turned[:, num_q:]))
        if only_last:
            turned, residual = turned[-1:], residual[-1:]
            mask = None  # the last row sees all before it
        if mask is not None:
            mask = mask.to(scores).repeat(self._group, 1)
        mixed = self._attend(turned[:, :num_q].to(scores), keys, values, mask)
        x = linears.output.plus(mixed.to(x.dtype), residual)
        gate, up = linears.gate_up(self._norms["mlp_norm"](x)).chunk(2, dim=-1)
        return self._left(linears.down.plus(F.silu(gate) * up, x))

    @abstractmethod
    def _joined(self, read: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """What attention reads of states and token vectors, and what goes around it."""

    @abstractmethod
    def _left(self, states: Tensor) -> Tensor:
        """What a step leaves behind, and the next one reads."""


def _head_norm(layer: ModelConfig, take: TakeTensor) -> HeadNorm | None:
    """The norm of every query and key head, before they are turned; None where there is none."""
    q_norm, k_norm = take("q_norm"), take("k_norm")
    if q_norm is None or k_norm is None:
        return None
    size, turned = layer.head_rows
    q, k = (interleave_rows(norm, size, turned) for norm in (q_norm, k_norm))
    every = [q.expand(layer.num_heads, -1), k.expand(layer.num_kv_heads, -1)]
    wide = torch.promote_types(q.dtype, torch.float32)
    return HeadNorm(torch.cat(every).to(wide), layer.rms_norm_eps)


def _linears(layer: ModelConfig, take: TakeTensor, make: MakeLinear) -> ChainedLinears:
    def need(name: str) -> Tensor:
        tensor = take(name)
        assert tensor is not None  # whoever read the names has seen to it
        return tensor

    q, k = (interleave_rows(need(name), *layer.head_rows) for name in ("q", "k"))
    biases = [take(f"{name}_bias") for name in "qkv"]
    bias = None
    if all(one is not None for one in biases):
        turned = [interleave_rows(one, *layer.head_rows) for one in biases[:2] if one is not None]
        bias = torch.cat([*turned, need("v_bias")])
    return ChainedLinears(
        fc=make(need("fc"), take("fc_bias")),
        qkv=make(torch.cat([q, k, need("v")]), bias),
        output=make(need("o"), None),
        gate_up=make(torch.cat([need("gate"), need("up")]), None),
        down=make(need("down"), None),
    )
