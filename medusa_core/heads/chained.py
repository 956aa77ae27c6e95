"""A head of one layer that goes on from the target's states, token by token, with its own cache.

Place i of its cache stands for the pair of the target's state at token i and token i + 1: from it
the head makes the state at token i + 1, and from that what may be token i + 2. Behind its own
guesses it goes on from its own states. EAGLE's heads are such, and the layers that some targets
hold to predict further tokens.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.heads.cached import CachedHeads
from medusa_core.heads.medusa import MakeLinear, SharedWeights
from medusa_core.heads.part_tensors import TakeTensor, need
from medusa_core.models.activation import active_of
from medusa_core.models.attention import choose_attention
from medusa_core.models.blocks.block import Attention, Block, Branch, linears_of
from medusa_core.models.blocks.caches import SequenceRows
from medusa_core.models.blocks.torch_blocks import PassContext, run_block
from medusa_core.models.config import ModelConfig
from medusa_core.models.experts import Mlp
from medusa_core.models.norm import HeadNorm, RmsNorm
from medusa_core.models.precision import Precision
from medusa_core.models.quant.first_outputs import beginning_of
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.rope import Rope, interleave_rows
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.tensor import TensorCache


class ChainedHead(CachedHeads):
    """See the module.

    Attributes:
        num_heads: One.
        taps: Layers of the target whose entering states it reads.
        num_columns: From how many tokens it drafts.
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
        super().__init__(layer, precision)
        self.taps = taps
        self.num_columns = shared_weights.vocab_size
        self._layer, self._shared_weights = layer, shared_weights
        self._cuts: dict[int, QuantLinear] = {}  # of the target's projection

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
        return beginning_of(self._shared_weights.lm_head, most, self._cuts)

    def tokens(self, columns: Tensor) -> Tensor:
        """The tokens of some columns."""
        return columns


class LlamaHead(ChainedHead):
    """A head whose layers are Llama's own, but for what attention of the first one reads."""

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
            layer: Sizes of its layers, as of a target with as many.
            taps: Layers of the target that it reads.
            norms: Parts outside of layers that are norms, as far as it has them.
            take: A part's tensor in the compute dtype on the device; None where there is none.
                Parts of layers behind the first are called `N.part`.
            shared_weights: What the target lends it.
            make: Makes a layer of a weight and a bias, in the heads' format.
            precision: Where and in which dtype it runs.
        """
        super().__init__(layer, taps, shared_weights, precision)
        self._fc = make(need(take, "fc"), take("fc_bias"))
        self._blocks = [_block(layer, index, take, make) for index in range(layer.num_layers)]
        self._active = active_of(layer.traits)
        self._norms: dict[str, RmsNorm] = {}
        for name in norms:
            if (weight := take(name)) is not None:
                self._norms[name] = RmsNorm(weight, layer.rms_norm_eps)
        self._embedding = shared_weights.embedding
        self._rope = Rope(layer, precision.scores, precision.device)
        self._attend = choose_attention(precision.device)
        self._group = layer.num_heads // layer.num_kv_heads

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Its own matrices."""
        return (self._fc, *linears_of(self._blocks))

    @property
    def nbytes(self) -> int:
        norms, held = list(self._norms.values()), sum(linear.nbytes for linear in self.linears)
        for block in self._blocks:
            norms += [norm for norm in (block.pre_norm, block.pre_mlp_norm) if norm is not None]
            attention = block.attention
            if attention is not None and isinstance(attention.qk_norm, HeadNorm):
                norms.append(attention.qk_norm.norm)
                held += attention.qk_norm.weight.nbytes
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
        device, scores = self._precision.device, self._precision.scores
        vectors = self._embedding[torch.tensor(token_ids, device=self._embedding.device)]
        x, residual = self._joined(read, vectors.to(device, self._precision.compute))
        context = PassContext(
            positions=torch.tensor(positions, device=device),
            num_positions=kv.capacity + 1,
            ropes=[self._rope],
            group=self._group,
            scores_dtype=scores,
            attend=self._attend,
            attend_on_cpu=self._attend,
            active=self._active,
        )
        kv.reserve_slots(torch.tensor(slots, device=device), width)
        if mask is not None:
            mask = mask.to(scores).repeat(self._group, 1)
        sequences, count = [SequenceRows(slice(0, len(x)), mask, kv)], len(x)
        for index, block in enumerate(self._blocks):
            only = count - 1 if only_last and index == len(self._blocks) - 1 else None
            around = residual if index == 0 else None
            x = run_block(index, block, x, context, sequences, only, around)
        return self._left(x)

    @abstractmethod
    def _joined(self, read: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """What attention reads of states and token vectors, and what goes around it."""

    @abstractmethod
    def _left(self, states: Tensor) -> Tensor:
        """What a step leaves behind, and the next one reads."""


def _head_norm(layer: ModelConfig, prefix: str, take: TakeTensor) -> HeadNorm | None:
    """The norm of every query and key head, before they are turned; None where there is none."""
    q_norm, k_norm = take(f"{prefix}q_norm"), take(f"{prefix}k_norm")
    if q_norm is None or k_norm is None:
        return None
    size, turned = layer.head_rows
    q, k = (interleave_rows(norm, size, turned) for norm in (q_norm, k_norm))
    every = [q.expand(layer.num_heads, -1), k.expand(layer.num_kv_heads, -1)]
    wide = torch.promote_types(q.dtype, torch.float32)
    return HeadNorm(torch.cat(every).to(wide), layer.rms_norm_eps)


def _block(config: ModelConfig, index: int, take: TakeTensor, make: MakeLinear) -> Block:
    """Read a block of Llama; the first has no norm, as its input is its own."""
    prefix = f"{index}." if index else ""

    def own(name: str) -> Tensor:
        return need(take, f"{prefix}{name}")

    q, k = (interleave_rows(own(name), *config.head_rows) for name in ("q", "k"))
    biases = [take(f"{prefix}{name}_bias") for name in "qkv"]
    bias = None
    if all(one is not None for one in biases):
        turned = [interleave_rows(one, *config.head_rows) for one in biases[:2] if one is not None]
        bias = torch.cat([*turned, own("v_bias")])
    eps = config.rms_norm_eps
    gate_up = torch.cat([own("gate"), own("up")])
    attention = Attention(
        qkv=make(torch.cat([q, k, own("v")]), bias),
        output=make(own("o"), None),
        num_heads=config.num_heads,
        num_kv_heads=config.num_kv_heads,
        head_dim=config.head_dim,
        scale=config.head_dim**-0.5,
        rope=0,
        kv_layer=index,
        qk_norm=_head_norm(config, prefix, take),
    )
    return Block(
        branches=(Branch(attention),),
        mlp=Mlp(make(gate_up, None), make(own("down"), None), config.intermediate_size),
        pre_norm=RmsNorm(own("input_norm"), eps) if index else None,
        pre_mlp_norm=RmsNorm(own("mlp_norm"), eps),
    )
