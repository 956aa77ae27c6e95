"""Block drafters at run time: DFlash, DSpark and JetSpec.

Hidden states of several target layers are concatenated, projected and normalised; they become keys
and values of every layer of the drafter. One pass over a block, which is the last accepted token
followed by MASK tokens, gives the logits of all draft positions at once. With a Markov head they
also depend on the token before.

Sources: DFlash (arXiv 2602.06036), section 3; DSpark (arXiv 2607.05147), section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.heads.block_layers import BlockLayers
from medusa_core.heads.block_parts import DrafterParts
from medusa_core.heads.cached import CachedHeads
from medusa_core.heads.draft_blocks import norm_bytes
from medusa_core.heads.medusa import BuildLinear, SharedWeights
from medusa_core.heads.pair_heads import Confidence, MarkovHead, Selector
from medusa_core.heads.ranked import DraftVocabulary
from medusa_core.heads.tensor_reader import ReadTensor, need
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import cached_first_outputs
from medusa_core.models.quant.native_linear import share_threads
from medusa_core.runtime.backends.norm import RmsNorm
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.system.native.pool import Workers


class PositionScores(NamedTuple):
    """Logits of one draft position after some paths.

    Attributes:
        scores: One row per path, or one row for all. [paths, columns], float32 or better
        columns: Columns of the vocabulary that were scored; None for all. [columns]
        confidences: Acceptance probability per path, in [0, 1]; empty if the drafter has no
            confidence head.
    """

    scores: Tensor
    columns: Tensor | None = None
    confidences: Sequence[float] = ()


class DraftedBlock:
    """Result of one pass of a block drafter.

    Attributes:
        num_levels: Draft positions.
        depends_on_path: The scores of a position depend on the token before it.
    """

    def __init__(
        self,
        states: Tensor,
        scores: Tensor,
        first_columns: int,
        pair_scores: MarkovHead | Selector | None,
    ) -> None:
        """Keep the result.

        Args:
            states: Hidden states after the last norm. [positions, hidden]
            scores: Logits of each position by itself. [positions, columns]
            first_columns: Columns that were computed, from the first on; 0 for all.
            pair_scores: Head that adds scores for pairs of tokens, or None.
        """
        self.depends_on_path = pair_scores is not None
        self._states, self._scores, self._pair_scores = states, scores, pair_scores
        self._first_columns = first_columns

    def scores_after(self, level: int, token_ids: Sequence[int]) -> PositionScores:
        """Return the scores of a position after paths of one length.

        Args:
            level: Length of the paths.
            token_ids: Last token of each path; the root for empty paths.
        """
        own, pair_scores = self._scores[level : level + 1], self._pair_scores
        if pair_scores is None:
            return PositionScores(own)
        if isinstance(pair_scores, Selector):
            return PositionScores(*pair_scores(own[0], self._states[level : level + 1], token_ids))
        vectors = pair_scores.vectors(token_ids)
        cut = self._first_columns if own.shape[1] == self._first_columns else 0
        bias = pair_scores.bias(vectors, cut)[:, : own.shape[1]]
        scores = own + bias.to(own.dtype)
        confidence = pair_scores.confidence
        confidences = () if confidence is None else confidence(self._states[level], vectors)
        return PositionScores(scores, confidences=confidences)


class BlockHead(CachedHeads):
    """A loaded block drafter.

    Attributes:
        kind: dflash, dspark or jetspec.
        num_heads: 1.
        taps: Target layers whose inputs it reads.
        num_places: Positions of a block.
        num_drafts: Tokens drafted per block.
        num_columns: Size of its draft vocabulary.
        vocabulary: Its tokens.
    """

    num_heads = 1

    def __init__(
        self,
        parts: DrafterParts,
        read_part: ReadTensor,
        shared_weights: SharedWeights,
        build_linear: BuildLinear,
        precision: Precision,
    ) -> None:
        """Read the weights.

        Args:
            parts: Tensor names and settings.
            read_part: Reads a part in the compute dtype on the device; None if it is missing.
            shared_weights: Weights of the target that it shares.
            build_linear: Builds a linear layer from a weight and a bias, in the heads' format.
            precision: Dtypes and device.
        """
        super().__init__(parts.layers, precision)
        settings = parts.settings
        self.kind, self.taps = parts.kind, settings.taps
        self.num_places, self.num_drafts = settings.num_places, settings.num_drafts
        self.num_columns = parts.num_columns or shared_weights.vocab_size
        self._settings, self._shared_weights = settings, shared_weights
        self._fc = build_linear(need(read_part, "fc"), None)
        eps = parts.layers.rms_norm_eps
        self._features_norm, self._last_norm = (
            RmsNorm(need(read_part, name), eps) for name in ("features_norm", "last_norm")
        )
        self._layers = BlockLayers(parts.layers, settings, read_part, build_linear, precision)
        self._lm_head = (
            build_linear(need(read_part, "lm_head"), None) if parts.num_columns else None
        )
        drafted = read_part("drafted_tokens") if parts.num_columns else None
        self.vocabulary = DraftVocabulary(shared_weights.vocab_size, drafted)
        self._pair_scores = _selector(parts, read_part, build_linear) or _markov(
            parts, read_part, build_linear
        )
        self._cuts: dict[int, QuantLinear] = {}  # of the target's output projection
        # With causal attention, later positions need not be computed.
        self._may_be_short = all(settings.are_causal)

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Linear layers of its own."""
        own = [] if self._lm_head is None else [self._lm_head]
        if isinstance(self._pair_scores, Selector):
            own.append(self._pair_scores.projection)
        elif self._pair_scores is not None:
            own.append(self._pair_scores.second)
        return (self._fc, *self._layers.linears, *own)

    def share_workers(self, workers: Workers) -> None:
        """Let the target's worker threads compute the drafter, too."""
        super().share_workers(workers)
        share_threads(self._layers.kv_linears, workers)

    @property
    def nbytes(self) -> int:
        """Bytes of its weights, without shared weights and caches."""
        held = norm_bytes((self._features_norm, self._last_norm)) + self._layers.vector_bytes
        held += sum(linear.nbytes for linear in self.linears)
        return held + (0 if self._pair_scores is None else self._pair_scores.plain_bytes)

    def features(self, deep: Tensor) -> Tensor:
        """Move the inputs of `taps` to the drafter's device and dtype. [n, taps · hidden]"""
        return deep.to(self._precision.device, self._precision.compute)

    def inject(self, features: Tensor, position: int, kv: KvCache) -> None:
        """Store the target's features of consecutive tokens as keys and values.

        Args:
            features: From `features`. [n, taps · hidden]
            position: Position of the first token.
            kv: Cache from `new_cache`; gets a row per token.
        """
        assert isinstance(kv, TensorCache)
        self._layers.inject(self._features_norm(self._fc(features)), position, kv)

    def draft(
        self, root_id: int, position: int, kv: KvCache, num_levels: int, first_columns: int = 0
    ) -> DraftedBlock:
        """Draft a block: run the layers on the root and masked positions.

        Args:
            root_id: The last accepted token.
            position: Position of that token.
            kv: Rows of all tokens before it, with room for the block.
            num_levels: Tokens to draft, at most `num_drafts`.
            first_columns: Number of first logits to compute, a multiple of 32; 0 for all.
        """
        assert isinstance(kv, TensorCache)
        first = self._settings.first_place
        num_places = first + num_levels if self._may_be_short else self.num_places
        states = self._layers(self._embeddings(root_id, num_places), position, kv)
        states = self._last_norm(states[first : first + num_levels])
        return DraftedBlock(
            states, self._scores(states, first_columns), first_columns, self._pair_scores
        )

    def _embeddings(self, root_id: int, num_places: int) -> Tensor:
        """Return the token embeddings of a block. [positions, hidden]"""
        ids = torch.tensor([root_id, self._settings.mask_id])
        pair = self._shared_weights.embedding.rows(ids)
        pair = pair.to(self._precision.device, self._precision.compute)
        if self._settings.embedding_scale != 1:
            pair = pair * self._settings.embedding_scale
        return torch.cat([pair[:1], pair[1:].expand(num_places - 1, -1)])

    def _scores(self, states: Tensor, first_columns: int) -> Tensor:
        """Compute the logits of each position by itself.

        Args:
            states: [n, hidden]
            first_columns: As in `draft`.

        Returns:
            [n, columns], float32 or better
        """
        wide = torch.promote_types(self._precision.compute, torch.float32)
        scores = self._projection(first_columns)(states).to(wide)
        if self._settings.score_scale != 1:
            scores = scores * self._settings.score_scale
        cap = self._settings.score_cap
        return scores if cap is None else torch.tanh(scores / cap) * cap

    def _projection(self, first_columns: int) -> QuantLinear:
        """Return its own output projection, or the first rows of the target's."""
        if self._lm_head is not None:
            return self._lm_head
        return cached_first_outputs(self._shared_weights.lm_head, first_columns, self._cuts)


def _markov(
    parts: DrafterParts, read_part: ReadTensor, build_linear: BuildLinear
) -> MarkovHead | None:
    """Load DSpark's Markov head and confidence head; None if the drafter has none."""
    if "markov_w1" not in parts.names:
        return None
    weight = read_part("confidence")
    confidence = None if weight is None else Confidence(weight, read_part("confidence_bias"))
    return MarkovHead(
        need(read_part, "markov_w1"), build_linear(need(read_part, "markov_w2"), None), confidence
    )


def _selector(
    parts: DrafterParts, read_part: ReadTensor, build_linear: BuildLinear
) -> Selector | None:
    """Load DFlash2's selector; None if the drafter has none."""
    if not parts.has_selector:
        return None
    return Selector(
        need(read_part, "selector_predecessors"),
        need(read_part, "selector_successors"),
        build_linear(need(read_part, "selector_projection"), None),
        parts.settings.num_selected,
    )
