"""Hydra heads at run time: each head reads the drafts before its own.

Head i, counted from 0, reads x = [h; e(root); e(t1); ...; e(ti)]: the target's final hidden state
and the embeddings of the root and the path so far. The first layer is R x + r + SiLU(W x + b), of
the target's width; further layers are y + SiLU(W y + b), and an output projection follows. Heads
that are trained by this program have no R: h itself is the residual, and they share one projection.

Source: Hydra (Ankner et al. 2024), section 3; the layers as in the authors' repository,
zankner/Hydra, architecture `mlp`.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from medusa_core.heads.compiled_heads import native_path_head
from medusa_core.heads.compiled_ranking import SHARPNESS, CompiledRanking, noises_of
from medusa_core.heads.medusa import SharedWeights
from medusa_core.heads.ranked import DraftVocabulary, RankedTokens, rank_tokens
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import NativeLinear
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.tree.step import Chance
from medusa_core.system.native.constants import MAX_TOP_K
from medusa_core.system.native.pool import Workers


class HydraHead(NamedTuple):
    """Layers of one head.

    Attributes:
        first: W stacked on R, which read the same input; or W alone.
        rest: Further residual layers.
        projection: Output projection; may be shared by all heads.
    """

    first: QuantLinear
    rest: tuple[QuantLinear, ...]
    projection: QuantLinear

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """All linear layers."""
        return (self.first, *self.rest, self.projection)


class HydraHeads:
    """All heads of a target, each run on any number of paths at once.

    Attributes:
        num_heads: Number of heads.
        num_columns: Size of their draft vocabulary.
        vocabulary: Its tokens.
        nbytes: Bytes of the weights.
        taps: Empty: they read the target's final state.
        caches: None: they have no cache.
    """

    taps: tuple[int, ...] = ()
    caches: CachePool | None = None

    def __init__(
        self,
        heads: Iterable[HydraHead],
        num_columns: int,
        shared_weights: SharedWeights,
        dtype: torch.dtype,
        token_map: Tensor | None = None,
    ) -> None:
        """Take the layers.

        Args:
            heads: Layers of each head, on their device; consumed one by one.
            num_columns: Outputs of the projections, padding included.
            shared_weights: Weights of the target that they share.
            dtype: Compute dtype.
            token_map: Token id of each column; None if columns are token ids. int64
        """
        self._heads = tuple(heads)
        self._embedding = shared_weights.embedding
        self.vocabulary = DraftVocabulary(shared_weights.vocab_size, token_map)
        # A shared projection counts once.
        found = {id(linear): linear for head in self._heads for linear in head.linears}
        linears = list(found.values())
        self._native = [linear for linear in linears if isinstance(linear, NativeLinear)]
        compiled = (
            native_path_head(head.first, head.rest, head.projection, self._embedding)
            for head in self._heads
        )
        self._compiled = [head for head in compiled if head is not None]
        self._workers: Workers | None = None
        # The compiled step computes in float32 whatever the weights are.
        is_native = len(self._native) == len(linears)
        self._dtype = torch.float32 if is_native else dtype
        self.num_heads = len(self._heads)
        self.num_columns = min(num_columns, shared_weights.vocab_size)
        self.nbytes = sum(linear.nbytes for linear in linears)

    def reserve(self, num_rows: int) -> None:
        """Do nothing: there are no caches."""

    def share_workers(self, workers: Workers) -> None:
        """Let the target's worker threads compute the heads, too."""
        self._workers = workers
        for linear in self._native:
            linear.share_workers(workers)

    def ranked(
        self,
        hidden: Tensor,
        root_id: int,
        token_ids: array[int],
        num_paths: int,
        level: int,
        num_ranks: int,
        chance: Chance | None = None,
    ) -> RankedTokens:
        """Return the best tokens after some paths, in one call of the compiled step if possible.

        Args:
            hidden: As in `logits`. [hidden]
            root_id: The token that was chosen from it.
            token_ids: Tokens of the paths without the root, path by path; may be longer. int32
            num_paths: Number of paths.
            level: Length of each path without the root.
            num_ranks: Number of tokens per path.
            chance: Adds the sampling noise of the target's coming choice; tokens are ranked with
                it.
        """
        vocabulary = self.vocabulary
        noises = noises_of(chance, (level + 1,), vocabulary.size)
        is_small = num_ranks <= MAX_TOP_K and hidden.dtype == torch.float32
        if len(self._compiled) == self.num_heads and is_small and noises is not None:
            token_map = vocabulary.token_ids
            ranking = CompiledRanking(
                num_paths, num_ranks, self.num_columns, token_map, noises, SHARPNESS
            )
            self._compiled[level].ranked(
                hidden, root_id, token_ids, num_paths, ranking, self._workers
            )
            return RankedTokens(ranking.ranked.token_ids, ranking.ranked.chances)
        drafts = torch.tensor(token_ids[: num_paths * level], dtype=torch.int64)
        roots = torch.full((num_paths, 1), root_id)
        paths = torch.cat([roots, drafts.view(num_paths, level)], dim=1)
        return rank_tokens(self.logits(hidden, paths), num_ranks, vocabulary, chance, level + 1)

    def logits(self, hidden: Tensor, paths: Tensor) -> Tensor:
        """Compute the logits after some paths by the head for their length.

        Args:
            hidden: The target's state after its final norm, at the last accepted row. [hidden]
            paths: Root and drafts of each path. int64, on the CPU. [paths, tokens]

        Returns:
            [paths, num_columns]
        """
        head = self._heads[paths.shape[1] - 1]
        vectors = self._embedding.rows(paths.flatten()).view(len(paths), -1)
        states = hidden.to(self._dtype).expand(len(paths), -1)
        read = torch.cat((states, vectors.to(states)), dim=1)
        activated, residual = head.first(read), states
        if activated.shape[1] > states.shape[1]:
            activated, residual = activated.chunk(2, dim=1)
        state = residual + F.silu(activated)
        for layer in head.rest:
            state = state + F.silu(layer(state))
        return head.projection(state)[:, : self.num_columns]
