"""Heads that draft token by token from the target's hidden states, with a KV cache of their own.

Row i of the cache is made of the target's state at token i and the embedding of token i + 1: the
head's output there approximates the target's state at token i + 1, and predicts token i + 2. After
its own drafts the head continues from its own states. EAGLE heads and multi-token-prediction (MTP)
layers work this way.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from medusa_core.heads.cached import CachedHeads
from medusa_core.heads.draft_blocks import BlockReader, norm_bytes, vector_bytes
from medusa_core.heads.medusa import BuildLinear, SharedWeights
from medusa_core.heads.tensor_reader import ReadTensor, need
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear, linears_of
from medusa_core.models.quant.linear import cached_first_outputs
from medusa_core.runtime.backends.caches import SequenceRows
from medusa_core.runtime.backends.norm import RmsNorm
from medusa_core.runtime.backends.rope import Rope
from medusa_core.runtime.backends.torch_blocks import PassContext, run_block
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.tensor import TensorCache


class ChainedHead(CachedHeads):
    """Interface of such heads.

    Attributes:
        num_heads: 1.
        taps: Target layers whose inputs it reads.
        num_columns: Size of its draft vocabulary.
    """

    num_heads = 1

    def __init__(
        self,
        layer: ModelConfig,
        taps: tuple[int, ...],
        shared_weights: SharedWeights,
        precision: Precision,
    ) -> None:
        """Prepare without weights.

        Args:
            layer: Sizes of its layers.
            taps: Target layers whose inputs it reads.
            shared_weights: Weights of the target that it shares.
            precision: Dtypes and device.
        """
        super().__init__(layer, precision)
        self.taps = taps
        self.num_columns = shared_weights.vocab_size
        self._layer, self._shared_weights = layer, shared_weights
        self._cuts: dict[int, QuantLinear] = {}  # of the target's output projection

    @abstractmethod
    def features(self, states: Tensor, deep: Tensor | None) -> Tensor:
        """Return the head's inputs for tokens that the target has processed.

        Args:
            states: Hidden states after the target's final norm. [n, hidden]
            deep: Inputs of `taps`, concatenated. [n, taps · hidden]

        Returns:
            [n, features]
        """

    def fused(self, features: Tensor) -> Tensor:
        """Project features to the width of the layer. [n, features] → [n, hidden]"""
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
        """Run the layer on some rows.

        Args:
            read: `fused` features, or output of `step` for the tokens before. [n, hidden]
            token_ids: Token after each state.
            positions: RoPE position of each row.
            slots: Cache slot of each row.
            mask: Additive attention mask [n, width], or None for full attention.
            width: Cache slots that are read, from the first on.
            kv: Cache from `new_cache`.
            only_last: Only the last row's output is needed; the others just fill the cache.

        Returns:
            States. [n, hidden], or [1, hidden]
        """

    def scores(self, states: Tensor, first_columns: int = 0) -> Tensor:
        """Compute the logits of the next token.

        Args:
            states: [n, hidden]
            first_columns: Compute so many first columns only, a multiple of 32; 0 for all.

        Returns:
            [n, columns], float32 or better
        """
        wide = torch.promote_types(self._precision.compute, torch.float32)
        return self._projection(first_columns)(states).to(wide)

    def _projection(self, first_columns: int) -> QuantLinear:
        """Return the target's output projection, or its first rows."""
        return cached_first_outputs(self._shared_weights.lm_head, first_columns, self._cuts)

    def tokens(self, columns: Tensor) -> Tensor:
        """Return the token ids of some columns."""
        return columns


class LlamaHead(ChainedHead):
    """A chained head of Llama layers; subclasses say what the first one reads."""

    def __init__(
        self,
        layer: ModelConfig,
        taps: tuple[int, ...],
        norms: Sequence[str],
        read_part: ReadTensor,
        shared_weights: SharedWeights,
        build_linear: BuildLinear,
        precision: Precision,
    ) -> None:
        """Read the weights.

        Args:
            layer: Sizes of its layers.
            taps: Target layers whose inputs it reads.
            norms: Names of possible norms outside the layers.
            read_part: Reads a part in the compute dtype on the device; None if it is missing.
                Parts of layers after the first are named `N.part`.
            shared_weights: Weights of the target that it shares.
            build_linear: Builds a linear layer from a weight and a bias, in the heads' format.
            precision: Dtypes and device.
        """
        super().__init__(layer, taps, shared_weights, precision)
        self._fc = build_linear(need(read_part, "fc"), read_part("fc_bias"))
        reader = BlockReader(layer, read_part, build_linear)
        self._blocks = [
            reader.read(f"{index}." if index else "") for index in range(layer.num_layers)
        ]
        self._norms: dict[str, RmsNorm] = {}
        for name in norms:
            if (weight := read_part(name)) is not None:
                self._norms[name] = RmsNorm(weight, layer.rms_norm_eps)
        self._embedding = shared_weights.embedding
        self._rope = Rope(layer, precision.scores, precision.device)

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Linear layers of its own."""
        return (self._fc, *linears_of(self._blocks))

    @property
    def nbytes(self) -> int:
        """Bytes of its weights, without shared weights and caches."""
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
        """Run the layers on some rows; see `ChainedHead.step`."""
        assert isinstance(kv, TensorCache)
        device, scores = self._precision.device, self._precision.scores
        vectors = self._embedding[torch.tensor(token_ids, device=self._embedding.device)]
        x, residual = self._layer_inputs(read, vectors.to(device, self._precision.compute))
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
        return self._next_states(x)

    @abstractmethod
    def _layer_inputs(self, read: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Return the input of the first layer's attention, and its residual.

        Args:
            read: States of the tokens before. [n, hidden]
            vectors: Token embeddings. [n, hidden]
        """

    @abstractmethod
    def _next_states(self, states: Tensor) -> Tensor:
        """Return the states that the next step reads, from the output of the last layer."""
