"""Medusa heads at run time.

Head k reads the target's final hidden state h and drafts the token k + 1 positions after the next:
residual layers h' = h + SiLU(W h + b), then an output projection: the head's own, one shared by all
heads, or the target's.

The state alone doesn't tell which token was sampled from it. Heads may therefore read the embedding
e of that token (the root), too: their first layer is h + SiLU(W [h; e] + b).

Source: Medusa (Cai et al. 2024), section 2.1.1; the root as in Hydra (Ankner et al. 2024),
section 3, whose heads read all tokens before theirs.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.heads.compiled_heads import native_heads
from medusa_core.heads.compiled_ranking import noises_of
from medusa_core.heads.ranked import Ranked, best_of, noised
from medusa_core.heads.weights import HeadWeights, reads_root
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import Precision
from medusa_core.models.quant.choice import PartFormats
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.linear import make_linear
from medusa_core.models.token_table import TokenTable
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.tree.step import Chance
from medusa_core.system.native.constants import MAX_TOP_K
from medusa_core.system.native.pool import Workers


class SharedWeights(NamedTuple):
    """Weights of the target that its heads share.

    Attributes:
        lm_head: Output projection.
        vocab_size: Rows of the projection.
        embedding: Token embeddings, maybe on another device.
        decoder: The whole decoder, for heads that run its layers; None if it has no blocks of ours.
    """

    lm_head: QuantLinear
    vocab_size: int
    embedding: TokenTable
    decoder: Decoder | None = None


class HeadsTarget(NamedTuple):
    """The target for which heads are loaded.

    Attributes:
        config: Sizes of the target.
        precision: Dtypes and device.
        shared_weights: Weights that the heads share.
        formats: Weight formats, with that of heads.
    """

    config: ModelConfig
    precision: Precision
    shared_weights: SharedWeights
    formats: PartFormats


BuildLinear = Callable[[Tensor, Tensor | None], QuantLinear]
# Sampling noise hardly ever makes a token beyond these the best.
_MOST_CANDIDATES = 4096
_Layers = list[tuple[Tensor, Tensor]]


class MedusaHeads:
    """All heads of a target, run on one row.

    Attributes:
        num_heads: Number of heads.
        num_columns: Size of their draft vocabulary.
        nbytes: Bytes of the weights.
        taps: Empty: they read the target's final state.
        caches: None: they have no cache.
    """

    taps: tuple[int, ...] = ()
    caches: CachePool | None = None

    def __init__(
        self,
        heads: Iterable[HeadWeights],
        shared_weights: SharedWeights,
        token_map: Tensor | None = None,
        projection: Tensor | None = None,
        build_linear: BuildLinear = make_linear,
    ) -> None:
        """Take the weights.

        Args:
            heads: Weights of each head, on their device; consumed one by one.
            shared_weights: Weights of the target that they share.
            token_map: Token id of each column of a reduced vocabulary, or None.
            projection: Output projection shared by all heads; None if they have their own or share
                the target's.
            build_linear: Builds a linear layer from a weight and a bias, in the heads' format.
        """
        layers_of: list[_Layers] = []
        own: list[QuantLinear] = []
        self.num_columns = shared_weights.vocab_size if projection is None else len(projection)
        for head in heads:
            layers_of.append(_with_biases(head))
            if head.projection is not None:
                self.num_columns = len(head.projection)
                own.append(build_linear(head.projection, None))
        self._one_projection = None if projection is None else build_linear(projection, None)
        self.num_heads = len(layers_of)
        self._dtype = layers_of[0][0][0].dtype if layers_of and layers_of[0] else None
        self._vocab_size = shared_weights.vocab_size
        self._token_ids = token_map
        self._token_map = None if token_map is None else token_map.tolist()
        self._residuals = _Residuals(layers_of, build_linear)
        self._own_projections = own
        self._shared = self._one_projection or shared_weights.lm_head
        self._embedding = shared_weights.embedding if self._residuals.reads_root else None
        self._native = native_heads(
            self._residuals.first,
            self._residuals.rest,
            own or [self._shared],
            self.num_heads,
            self._embedding,
        )
        one_bytes = 0 if self._one_projection is None else self._one_projection.nbytes
        self.nbytes = self._residuals.nbytes + one_bytes + sum(linear.nbytes for linear in own)

    def reserve(self, num_rows: int) -> None:
        """Do nothing: there are no caches."""

    def share_workers(self, workers: Workers) -> None:
        """Let the target's worker threads compute the heads, too."""
        if self._native is not None:
            self._native.workers = workers

    def logits(self, hidden: Tensor, root_id: int, num_heads: int) -> Tensor:
        """Compute the logits of the first heads.

        Args:
            hidden: The target's state after its final norm, at the last accepted row. [hidden]
            root_id: The token that was chosen from it.
            num_heads: Number of heads to run.

        Returns:
            [num_heads, num_columns]
        """
        dtype = self._dtype or hidden.dtype
        root = None
        if self._embedding is not None:
            root = self._embedding.rows(torch.tensor([root_id]))[0].to(hidden.device, dtype)
        states = self._residuals(hidden.to(dtype), root, num_heads)
        if not self._own_projections:
            return self._shared(states)
        pairs = zip(self._own_projections[:num_heads], states.unsqueeze(1), strict=True)
        return torch.cat([project(state) for project, state in pairs])

    def ranked(
        self,
        hidden: Tensor,
        root_id: int,
        num_ranks: Sequence[int],
        at_least: int = 1,
        chance: Chance | None = None,
    ) -> Ranked:
        """Return the best tokens of each head.

        Args:
            hidden: As in `logits`. [hidden]
            root_id: As in `logits`.
            num_ranks: Number of tokens of head 1, 2, ...; further heads aren't run.
            at_least: Minimum number of tokens of each.
            chance: Adds the sampling noise of the target's coming choice; tokens are ranked with
                it.

        Returns:
            Best tokens per head, best first, all lists as long as the longest.
        """
        most = min(self.num_columns, max(at_least, *num_ranks))
        depths = range(1, 1 + len(num_ranks))
        noises = noises_of(chance, depths, self._vocab_size)
        is_compiled = self._native is not None and hidden.dtype == torch.float32
        if self._native is not None and is_compiled and noises is not None and most <= MAX_TOP_K:
            scores, found = self._native.ranked(
                hidden, root_id, len(depths), most, self._token_ids, noises
            )
            return Ranked.of_compiled(found, scores, is_noisy=bool(noises))
        scores = self.logits(hidden, root_id, len(depths))
        if chance is None:
            columns, chances = best_of(scores, most)
            return Ranked(self._tokens(columns), columns, scores, chances)
        scores, candidates = self._brought(scores)
        columns, probabilities = self._drawn(scores, candidates, most, chance)
        return Ranked(self._tokens(columns), columns, scores, noised=probabilities)

    def _tokens(self, columns: list[list[int]]) -> list[list[int]]:
        """Return the token ids of the columns of a reduced vocabulary."""
        mapped = self._token_map
        return columns if mapped is None else [[*map(mapped.__getitem__, row)] for row in columns]

    def _brought(self, scores: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return logits on the CPU, and the columns that sampling noise may rank first."""
        if self.num_columns <= _MOST_CANDIDATES:
            return scores.cpu(), None
        likely = scores.topk(_MOST_CANDIDATES, dim=-1).indices
        if scores.is_cpu:
            return scores, likely
        # One copy from the GPU; float32 represents every column index exactly.
        both = torch.cat([scores.float(), likely.float()], dim=-1).cpu()
        return both[:, : self.num_columns], both[:, self.num_columns :].long()

    def _drawn(
        self, scores: Tensor, candidates: Tensor | None, num_ranks: int, chance: Chance
    ) -> tuple[list[list[int]], array[float]]:
        """Return the columns that are best with the sampling noise, and their probabilities."""
        if candidates is None:
            shifted = chance(scores, self._token_ids)
            best: list[list[int]] = shifted.topk(num_ranks, dim=-1).indices.tolist()
            return best, noised(shifted, best)
        token_ids = candidates if self._token_ids is None else self._token_ids[candidates]
        shifted = chance(scores.gather(1, candidates), token_ids)
        places = shifted.topk(num_ranks, dim=-1).indices
        return candidates.gather(1, places).tolist(), noised(shifted, places.tolist())


class _Residuals:
    """Residual layers of all heads.

    Attributes:
        reads_root: Whether the first layers read the root's embedding, too.
        first: First layers of all heads as one, since they share the input; None without layers.
        rest: For each further depth one layer per head.
        nbytes: Bytes of the weights.
    """

    def __init__(self, layers_of: Sequence[_Layers], build_linear: BuildLinear) -> None:
        firsts = [layers[0] for layers in layers_of if layers]
        self.first = (
            build_linear(torch.cat([w for w, _ in firsts]), torch.cat([b for _, b in firsts]))
            if firsts
            else None
        )
        depth = max((len(layers) for layers in layers_of), default=0)
        self.reads_root = bool(firsts) and reads_root(firsts[0][0].shape)
        self.rest = [[build_linear(*layers[i]) for layers in layers_of] for i in range(1, depth)]
        deeper = sum(layer.nbytes for layers in self.rest for layer in layers)
        self.nbytes = deeper + (0 if self.first is None else self.first.nbytes)

    def __call__(self, hidden: Tensor, root: Tensor | None, num_heads: int) -> Tensor:
        """Run the layers. [hidden], and [hidden] of the root if it is read → [num_heads, hidden]"""
        rows = hidden.unsqueeze(0)
        if self.first is None:
            return rows.expand(num_heads, -1)
        read = rows if root is None else torch.cat((hidden, root)).unsqueeze(0)
        width = hidden.shape[-1]
        state = rows + F.silu(self.first(read).view(-1, width)[:num_heads])
        for layers in self.rest:
            pairs = zip(layers[:num_heads], state.unsqueeze(1), strict=True)
            state = state + F.silu(torch.cat([layer(row) for layer, row in pairs]))
        return state


def _with_biases(head: HeadWeights) -> _Layers:
    """Give layers without a bias one of zeros, so that all heads run alike."""
    return [(w, w.new_zeros(len(w)) if b is None else b) for w, b in head.layers]
