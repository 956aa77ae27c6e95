"""A block drafter in memory: DFlash, DSpark or JetSpec.

States of some of the target's layers, side by side, pass through one projection and a norm, and
become keys and values of every layer of the drafter. One pass over a block, the last decided token
and MASKs behind it, then says what follows: each place by its own scores, which with a Markov head
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
from medusa_core.heads.markov import Confidence, MarkovHead
from medusa_core.heads.medusa import MakeLinear, SharedWeights
from medusa_core.heads.part_tensors import TakeTensor, need
from medusa_core.heads.selector import Selector
from medusa_core.models.norm import RmsNorm
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import cached_first_outputs
from medusa_core.models.quant.native_linear import share_threads
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.system.native.pool import Workers


class PlaceScores(NamedTuple):
    """What a place of a block says may follow some paths.

    Attributes:
        scores: Behind each path, or one for all of them. [paths, columns], float32 or better
        columns: Whose they are; None for every column's. [columns]
        confidences: How far each path's scores are trusted, in [0, 1]; empty for fully.
    """

    scores: Tensor
    columns: Tensor | None = None
    confidences: Sequence[float] = ()


class DraftedBlock:
    """What one pass made: scores of the places that draft.

    Attributes:
        num_levels: How many they are.
        depends_on_path: Scores of a place differ by the token before it.
    """

    def __init__(
        self, states: Tensor, scores: Tensor, most: int, by_pairs: MarkovHead | Selector | None
    ) -> None:
        """Take what was computed.

        Args:
            states: Behind the last norm. [places, hidden]
            scores: Of each place by itself. [places, columns]
            most: Of how many of the first columns they were asked for; 0 for all.
            by_pairs: What the token before a place adds; None for nothing.
        """
        self.num_levels = len(states)
        self.depends_on_path = by_pairs is not None
        self._states, self._scores, self._by_pairs = states, scores, by_pairs
        self._most = most

    def behind(self, level: int, token_ids: Sequence[int]) -> PlaceScores:
        """What may follow paths of one length.

        Args:
            level: How long they are.
            token_ids: The last token of each; the root where they are empty.
        """
        own, by_pairs = self._scores[level : level + 1], self._by_pairs
        if by_pairs is None:
            return PlaceScores(own)
        if isinstance(by_pairs, Selector):
            return PlaceScores(*by_pairs(own[0], self._states[level : level + 1], token_ids))
        vectors = by_pairs.vectors(token_ids)
        cut = self._most if own.shape[1] == self._most else 0
        bias = by_pairs.bias(vectors, cut)[:, : own.shape[1]]
        scores = own + bias.to(own.dtype)
        confidence = by_pairs.confidence
        said = () if confidence is None else confidence(self._states[level], vectors)
        return PlaceScores(scores, confidences=said)


class BlockHead(CachedHeads):
    """See the module.

    Attributes:
        kind: dflash, dspark or jetspec.
        num_heads: One.
        taps: Layers of the target whose entering states it reads.
        num_places: Places of a block.
        num_drafts: Tokens that a block drafts.
        num_columns: From how many tokens it drafts.
    """

    num_heads = 1

    def __init__(
        self,
        parts: DrafterParts,
        take: TakeTensor,
        shared_weights: SharedWeights,
        make: MakeLinear,
        precision: Precision,
    ) -> None:
        """Take the weights.

        Args:
            parts: What it is made of.
            take: A part's tensor in the compute dtype on the device; None where there is none.
            shared_weights: What the target lends it.
            make: Makes a layer of a weight and a bias, in the heads' format.
            precision: Where and in which dtype it runs.
        """
        super().__init__(parts.layers, precision)
        settings = parts.settings
        self.kind, self.taps = parts.kind, settings.taps
        self.num_places, self.num_drafts = settings.num_places, settings.num_drafts
        self.num_columns = parts.num_columns or shared_weights.vocab_size
        self._settings, self._shared_weights = settings, shared_weights
        self._fc = make(need(take, "fc"), None)
        eps = parts.layers.rms_norm_eps
        self._features_norm, self._last_norm = (
            RmsNorm(need(take, name), eps) for name in ("features_norm", "last_norm")
        )
        self._layers = BlockLayers(parts.layers, settings, take, make, precision)
        self._lm_head = make(need(take, "lm_head"), None) if parts.num_columns else None
        self._token_ids = take("drafted_tokens") if parts.num_columns else None
        self._by_pairs = _selector(parts, take, make) or _markov(parts, take, make)
        self._cuts: dict[int, QuantLinear] = {}  # of the target's projection
        # Behind a place that sees none behind it, none needs to be computed.
        self._may_be_short = all(settings.are_causal)

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Its own matrices."""
        own = [] if self._lm_head is None else [self._lm_head]
        if isinstance(self._by_pairs, Selector):
            own.append(self._by_pairs.projection)
        elif self._by_pairs is not None:
            own.append(self._by_pairs.second)
        return (self._fc, *self._layers.linears, *own)

    def share_workers(self, workers: Workers) -> None:
        super().share_workers(workers)
        share_threads(self._layers.kv_linears, workers)

    @property
    def nbytes(self) -> int:
        held = norm_bytes((self._features_norm, self._last_norm)) + self._layers.vector_bytes
        held += sum(linear.nbytes for linear in self.linears)
        return held + (0 if self._by_pairs is None else self._by_pairs.plain_bytes)

    def features(self, deep: Tensor) -> Tensor:
        """What enters `taps`, side by side, where it is read. [n, taps · hidden]"""
        return deep.to(self._precision.device, self._precision.compute)

    def inject(self, features: Tensor, place: int, kv: KvCache) -> None:
        """Keep what the target says of consecutive tokens.

        Args:
            features: Of each. [n, taps · hidden]
            place: Of the first in the text.
            kv: From `new_cache`; takes a row of each.
        """
        assert isinstance(kv, TensorCache)
        self._layers.inject(self._features_norm(self._fc(features)), place, kv)

    def draft(
        self, root_id: int, place: int, kv: KvCache, num_levels: int, most: int = 0
    ) -> DraftedBlock:
        """Fill a block.

        Args:
            root_id: The last decided token.
            place: Its place in the text.
            kv: Rows of all tokens before it; it has room for the block.
            num_levels: How many drafts are wanted, at most `num_drafts`.
            most: Of how many of the first columns scores are wanted, where fewer cost less; a
                multiple of 32. 0 for all.
        """
        assert isinstance(kv, TensorCache)
        first = self._settings.first_place
        num_places = first + num_levels if self._may_be_short else self.num_places
        states = self._layers(self._vectors(root_id, num_places), place, kv)
        states = self._last_norm(states[first : first + num_levels])
        return DraftedBlock(states, self._scores(states, most), most, self._by_pairs)

    def tokens(self, columns: Tensor) -> Tensor:
        """The tokens of some columns."""
        return columns if self._token_ids is None else self._token_ids[columns]

    def _vectors(self, root_id: int, num_places: int) -> Tensor:
        """Token vectors of a block, without what the target makes of its own. [places, hidden]"""
        table, device = self._shared_weights.embedding, self._precision.device
        pair = table[torch.tensor([root_id, self._settings.mask_id], device=table.device)]
        pair = pair.to(device, self._precision.compute)
        if self._settings.embedding_scale != 1:
            pair = pair * self._settings.embedding_scale
        return torch.cat([pair[:1], pair[1:].expand(num_places - 1, -1)])

    def _scores(self, states: Tensor, most: int) -> Tensor:
        """Of every place by itself. [n, hidden] → [n, columns], float32 or better"""
        wide = torch.promote_types(self._precision.compute, torch.float32)
        scores = self._projection(most)(states).to(wide)
        if self._settings.score_scale != 1:
            scores = scores * self._settings.score_scale
        cap = self._settings.score_cap
        return scores if cap is None else torch.tanh(scores / cap) * cap

    def _projection(self, most: int) -> QuantLinear:
        """Its own projection, or the beginning of the target's."""
        if self._lm_head is not None:
            return self._lm_head
        return cached_first_outputs(self._shared_weights.lm_head, most, self._cuts)


def _markov(parts: DrafterParts, take: TakeTensor, make: MakeLinear) -> MarkovHead | None:
    if "markov_w1" not in parts.names:
        return None
    weight = take("confidence")
    confidence = None if weight is None else Confidence(weight, take("confidence_bias"))
    return MarkovHead(need(take, "markov_w1"), make(need(take, "markov_w2"), None), confidence)


def _selector(parts: DrafterParts, take: TakeTensor, make: MakeLinear) -> Selector | None:
    if not parts.has_selector:
        return None
    before, behind = (need(take, f"selector_{name}") for name in ("before", "behind"))
    projection = make(need(take, "selector_projection"), None)
    return Selector(before, behind, projection, parts.settings.num_selected)
