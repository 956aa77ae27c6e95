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
from medusa_core.heads.ranked import DraftVocabulary
from medusa_core.heads.tensor_reader import ReadTensor, need
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear, linears_of
from medusa_core.models.quant.linear import cached_first_outputs
from medusa_core.runtime.backends.caches import SequenceRows
from medusa_core.runtime.backends.native_layers import (
    HeadLayers,
    NativeLayers,
    TreeRows,
    native_layers,
)
from medusa_core.runtime.backends.norm import RmsNorm
from medusa_core.runtime.backends.rope import Rope
from medusa_core.runtime.backends.torch_blocks import PassContext, run_block
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.panel_cache import PanelCache
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.system.native.pool import Workers


class ChainedHead(CachedHeads):
    """Interface of such heads.

    Attributes:
        num_heads: 1.
        taps: Target layers whose inputs it reads.
        num_columns: Size of its draft vocabulary.
        vocabulary: Its tokens.
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
        self.vocabulary = DraftVocabulary(shared_weights.vocab_size)
        self._layer, self._shared_weights = layer, shared_weights
        self._cuts: dict[int, QuantLinear] = {}  # of the target's output projection
        self._compiled: NativeLayers | None = None

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

    def share_workers(self, workers: Workers) -> None:
        """Let the target's worker threads compute the head, too."""
        super().share_workers(workers)
        if self._compiled is not None:
            self._compiled.workers = workers

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> KvCache:
        """Return an empty cache, in the layout of the compiled step if that computes the layers."""
        if self._compiled is None:
            return super().new_cache(capacity, memory)
        return self._compiled.new_cache(self._precision.cache, capacity, memory)

    @abstractmethod
    def step(self, read: Tensor, rows: TreeRows, kv: KvCache, only_last: bool = False) -> Tensor:
        """Run the layers on some rows.

        Args:
            read: `fused` features, or output of `step` for the tokens before. [n, hidden]
            rows: The rows; each has the token after its state.
            kv: Cache from `new_cache`.
            only_last: Only the last row's output is needed; the others just fill the cache.

        Returns:
            States. [n, hidden], or [1, hidden]
        """

    def scores(self, states: Tensor, first_columns: int = 0) -> Tensor:
        """Compute the logits of the next token.

        Args:
            states: [n, hidden]
            first_columns: Number of first columns to compute, a multiple of 32; 0 for all.

        Returns:
            [n, columns], float32 or better
        """
        wide = torch.promote_types(self._precision.compute, torch.float32)
        return self._projection(first_columns)(states).to(wide)

    def _projection(self, first_columns: int) -> QuantLinear:
        """Return the target's output projection, or its first rows."""
        return cached_first_outputs(self._shared_weights.lm_head, first_columns, self._cuts)


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
        ones = RmsNorm(torch.ones(layer.hidden_size), layer.rms_norm_eps)  # isn't used
        described = HeadLayers(layer, self._blocks, [self._rope], ones)
        self._compiled = native_layers(described, linears_of(self._blocks), precision)

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Linear layers of its own."""
        return (self._fc, *linears_of(self._blocks))

    @property
    def nbytes(self) -> int:
        """Bytes of its weights, without shared weights and caches."""
        held = sum(linear.nbytes for linear in self.linears)
        return held + norm_bytes(self._norms.values()) + vector_bytes(self._blocks)

    def step(self, read: Tensor, rows: TreeRows, kv: KvCache, only_last: bool = False) -> Tensor:
        """Run the layers on some rows; see `ChainedHead.step`."""
        vectors = self._embedding.rows(torch.tensor(rows.token_ids))
        vectors = vectors.to(self._precision.device, self._precision.compute)
        x, residual = self._layer_inputs(read, vectors)
        if self._compiled is not None and isinstance(kv, PanelCache):
            own = None if x is residual else x.float()
            states = self._compiled.run(residual.float(), rows, kv, own, only_last)
            return self._next_states(states[:, 1])
        assert isinstance(kv, TensorCache)
        context = PassContext.of_layers(
            self._layer,
            row_positions(rows, x.device),
            kv.capacity + 1,
            [self._rope],
            self._precision.scores,
        )
        sequences = [reserved_rows(rows, kv, context)]
        for index, block in enumerate(self._blocks):
            only = len(x) - 1 if only_last and index == len(self._blocks) - 1 else None
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


def row_positions(rows: TreeRows, device: torch.device) -> Tensor:
    """Return the RoPE position of each new row. [n]"""
    return torch.tensor(rows.depths[rows.num_known :], device=device) + rows.position


def reserved_rows(rows: TreeRows, kv: TensorCache, context: PassContext) -> SequenceRows:
    """Reserve slots for new rows, and return these with the mask of their ancestors."""
    total, known, length = len(rows.parents), rows.num_known, kv.length
    device = context.positions.device
    kv.reserve_slots(torch.arange(length + known, length + total, device=device), length + total)
    if total == 1:
        return SequenceRows(slice(0, 1), None, kv)
    attended = torch.eye(total, dtype=torch.bool)
    for row, parent in enumerate(rows.parents):
        if parent >= 0:
            attended[row] |= attended[parent]
    mask = torch.zeros(total - known, length + total, dtype=context.scores_dtype)
    mask[:, length:].masked_fill_(~attended[known:], float("-inf"))
    mask = mask.to(device).repeat(context.group, 1)
    return SequenceRows(slice(0, total - known), mask, kv)
