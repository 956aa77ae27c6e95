"""EAGLE heads at run time: one or more layers that draft token by token.

A P-EAGLE head drafts all tokens in one pass: after the root's row come rows of MASK, which read a
learned state instead of the target's; attention among them is causal.

Sources: EAGLE (Li et al. 2024a), section 3.1; EAGLE-3 (Li et al. 2025), section 3; P-EAGLE
(arXiv 2602.01469); the speculators project's `models/peagle`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.heads.chained import LlamaHead
from medusa_core.heads.eagle_parts import EagleParts
from medusa_core.heads.medusa import BuildLinear, SharedWeights
from medusa_core.heads.ranked import DraftVocabulary
from medusa_core.heads.tensor_reader import ReadTensor
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.token_table import DenseTable

_NORMS = ("vector_norm", "state_norm", "last_norm", "features_norm")


class EagleHead(LlamaHead):
    """A loaded EAGLE head.

    Attributes:
        reads_final: Whether it reads the target's final hidden state (EAGLE-1, 2), not `taps`.
        masked: P-EAGLE's learned state of MASK rows, `fused`; else None. [1, hidden]
        mask_token_id: Token of MASK rows.
    """

    def __init__(
        self,
        parts: EagleParts,
        taps: tuple[int, ...],
        read_part: ReadTensor,
        shared_weights: SharedWeights,
        build_linear: BuildLinear,
        precision: Precision,
    ) -> None:
        """Read the weights.

        Args:
            parts: Tensor names and settings.
            taps: Target layers whose inputs it reads.
            read_part: Reads a part in the compute dtype on the device; None if it is missing.
            shared_weights: Weights of the target that it shares.
            build_linear: Builds a linear layer from a weight and a bias, in the heads' format.
            precision: Dtypes and device.
        """
        each = (f"feature_norm_{index}" for index in range(parts.num_features))
        super().__init__(
            parts.layer, taps, (*_NORMS, *each), read_part, shared_weights, build_linear, precision
        )
        self.reads_final, self._parts = not parts.is_third, parts
        own = read_part("lm_head") if parts.num_columns else None
        self._lm_head = None if own is None else build_linear(own, None)
        self.num_columns = parts.num_columns or shared_weights.vocab_size
        drafted = read_part("drafted_tokens") if parts.num_columns else None
        self.vocabulary = DraftVocabulary(shared_weights.vocab_size, drafted)
        embedding = read_part("embedding")
        self._own_embedding: DenseTable | None = None
        if parts.embeds(shared_weights.embedding.shape[1]) and embedding is not None:
            self._own_embedding = self._embedding = DenseTable(embedding)
        self.mask_token_id, masked = parts.mask_token_id, read_part("masked_state")
        self.masked = None if masked is None else self.fused(masked.view(1, -1))

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Linear layers of its own, with a reduced LM head."""
        return (*super().linears, *([] if self._lm_head is None else [self._lm_head]))

    @property
    def nbytes(self) -> int:
        """Bytes of its weights, without shared weights and caches."""
        own = [one for one in (self._own_embedding, self.masked) if one is not None]
        return super().nbytes + sum(tensor.nbytes for tensor in own)

    def features(self, states: Tensor, deep: Tensor | None) -> Tensor:
        """Return the final hidden states, or the concatenated inputs of `taps`."""
        read = states if self.reads_final else deep
        assert read is not None  # the runner returns the inputs of `taps`
        return read.to(self._precision.device, self._precision.compute)

    def fused(self, features: Tensor) -> Tensor:
        """Project features to the width of the layer, normalized if the head does so."""
        if self.reads_final:
            return features
        if (norm := self._norms.get("features_norm")) is not None:
            features = norm(features)
        if "feature_norm_0" in self._norms:
            apart = features.chunk(self._parts.num_features, dim=-1)
            normed = [self._norms[f"feature_norm_{i}"](part) for i, part in enumerate(apart)]
            features = torch.cat(normed, dim=-1)
        return self._fc(features)

    def _layer_inputs(self, read: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Combine states and token embeddings by `fc` (EAGLE 1), or concatenate them (EAGLE 3)."""
        if not self._parts.is_third:
            x = self._fc(torch.cat([vectors, read], dim=-1))
            return x, x
        normed = self._norms["state_norm"](read)
        residual = normed if self._parts.norms_residual else read
        return torch.cat([self._norms["vector_norm"](vectors), normed], dim=-1), residual

    def _next_states(self, states: Tensor) -> Tensor:
        """Return the states that the next step reads, maybe normalized."""
        return self._norms["last_norm"](states) if self._parts.feeds_normed else states

    def scores(self, states: Tensor, first_columns: int = 0) -> Tensor:
        """Compute the logits by its own LM head, or the target's."""
        if self._lm_head is None:
            return super().scores(states, first_columns)
        normed = states if self._parts.feeds_normed else self._norms["last_norm"](states)
        return self._lm_head(normed).to(torch.promote_types(normed.dtype, torch.float32))
