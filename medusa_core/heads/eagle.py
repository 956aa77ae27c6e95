"""An EAGLE head in memory: a layer or more that go on from the target's states, token by token.

A P-EAGLE head guesses all tokens of a step at once: behind the root's row stand rows of MASK, which
read one learned state in place of the target's, and each sees those before it.

Sources: EAGLE (Li et al. 2024a), section 3.1; EAGLE-3 (Li et al. 2025), section 3; P-EAGLE
(arXiv 2602.01469); the speculators project's `models/peagle`.
"""

from __future__ import annotations

import torch
from torch import Tensor

from medusa_core.heads.chained import LlamaHead
from medusa_core.heads.eagle_parts import EagleParts
from medusa_core.heads.medusa import MakeLinear, SharedWeights
from medusa_core.heads.part_tensors import TakeTensor
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear

_NORMS = ("vector_norm", "state_norm", "last_norm", "features_norm")


class EagleHead(LlamaHead):
    """See the module, and `LlamaHead`.

    Attributes:
        reads_final: It reads the target's last state, not `taps`.
        masked: Of P-EAGLE, what rows of MASK read, `entered`; else None. [1, hidden]
        mask_token_id: The token of such rows.
    """

    def __init__(
        self,
        parts: EagleParts,
        taps: tuple[int, ...],
        take: TakeTensor,
        shared_weights: SharedWeights,
        make: MakeLinear,
        precision: Precision,
    ) -> None:
        """Take the weights; see `LlamaHead`.

        Args:
            parts: What the head is made of.
            taps: Layers of the target that it reads.
            take: A part's tensor in the compute dtype on the device; None where there is none.
            shared_weights: What the target lends it.
            make: Makes a layer of a weight and a bias, in the heads' format.
            precision: Where and in which dtype it runs.
        """
        each = (f"feature_norm_{index}" for index in range(parts.num_features))
        super().__init__(parts.layer, taps, (*_NORMS, *each), take, shared_weights, make, precision)
        self.reads_final, self._parts = not parts.is_third, parts
        own = take("lm_head") if parts.num_columns else None
        self._lm_head = None if own is None else make(own, None)
        self.num_columns = parts.num_columns or shared_weights.vocab_size
        self._token_ids = take("drafted_tokens") if parts.num_columns else None
        embedding = take("embedding")
        self._own_embedding = None
        if parts.embeds(shared_weights.embedding.shape[1]) and embedding is not None:
            self._own_embedding = self._embedding = embedding
        self.mask_token_id, masked = parts.mask_token_id, take("masked_state")
        self.masked = None if masked is None else self.entered(masked.view(1, -1))

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        return (*super().linears, *([] if self._lm_head is None else [self._lm_head]))

    @property
    def nbytes(self) -> int:
        own = [one for one in (self._own_embedding, self.masked) if one is not None]
        return super().nbytes + sum(tensor.nbytes for tensor in own)

    def features(self, states: Tensor, deep: Tensor | None) -> Tensor:
        read = states if self.reads_final else deep
        assert read is not None  # the runner tells of `taps`
        return read.to(self._precision.device, self._precision.compute)

    def entered(self, features: Tensor) -> Tensor:
        if self.reads_final:
            return features
        if (norm := self._norms.get("features_norm")) is not None:
            features = norm(features)
        if "feature_norm_0" in self._norms:
            apart = features.chunk(self._parts.num_features, dim=-1)
            normed = [self._norms[f"feature_norm_{i}"](part) for i, part in enumerate(apart)]
            features = torch.cat(normed, dim=-1)
        return self._fc(features)

    def _joined(self, read: Tensor, vectors: Tensor) -> tuple[Tensor, Tensor]:
        if not self._parts.is_third:
            x = self._fc(torch.cat([vectors, read], dim=-1))
            return x, x
        normed = self._norms["state_norm"](read)
        residual = normed if self._parts.norms_residual else read
        return torch.cat([self._norms["vector_norm"](vectors), normed], dim=-1), residual

    def _left(self, states: Tensor) -> Tensor:
        return self._norms["last_norm"](states) if self._parts.feeds_normed else states

    def scores(self, states: Tensor, most: int = 0) -> Tensor:
        if self._lm_head is None:
            return super().scores(states, most)
        normed = states if self._parts.feeds_normed else self._norms["last_norm"](states)
        return self._lm_head(normed).to(torch.promote_types(normed.dtype, torch.float32))

    def tokens(self, columns: Tensor) -> Tensor:
        return columns if self._token_ids is None else self._token_ids[columns]
