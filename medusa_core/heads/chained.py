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
from medusa_core.heads.draft_blocks import BlockReader, norm_bytes, vector_bytes
from medusa_core.heads.medusa import MakeLinear, SharedWeights
from medusa_core.heads.part_tensors import TakeTensor, need
from medusa_core.models.blocks.block import linears_of
from medusa_core.models.blocks.caches import SequenceRows
from medusa_core.models.blocks.torch_blocks import PassContext, run_block
from medusa_core.models.config import ModelConfig
from medusa_core.models.norm import RmsNorm
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import cached_first_outputs
from medusa_core.models.rope import Rope
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
        return cached_first_outputs(self._shared_weights.lm_head, most, self._cuts)

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
        reader = BlockReader(layer, take, make)
        self._blocks = [
            reader.read(index, f"{index}." if index else "") for index in range(layer.num_layers)
        ]
        self._norms: dict[str, RmsNorm] = {}
        for name in norms:
            if (weight := take(name)) is not None:
                self._norms[name] = RmsNorm(weight, layer.rms_norm_eps)
        self._embedding = shared_weights.embedding
        self._rope = Rope(layer, precision.scores, precision.device)

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Its own matrices."""
        return (self._fc, *linears_of(self._blocks))

    @property
    def nbytes(self) -> int:
        held = sum(linear.nbytes for linear in self.linears)
        return held + norm_bytes(self._norms.values()) + vector_bytes(self._blocks)

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
        context = PassContext.of_layers(
            self._layer,
            torch.tensor(positions, device=device),
            kv.capacity + 1,
            [self._rope],
            scores,
        )
        kv.reserve_slots(torch.tensor(slots, device=device), width)
        if mask is not None:
            mask = mask.to(scores).repeat(context.group, 1)
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
