"""A Gemma 4 assistant in memory: a few layers that attend to the target's own keys and values.

It reads [e; h]: the target's vector of a token, as that enters the target, and the target's state
before it, or behind a guess the state that the assistant left there. All guesses of a step stand at
the root's position and see the rows that the target has committed, none of each other: a path is
known by its state alone. So it has no cache, and paths of one length go through it in one pass.

Tokens are scored all, or those of the clusters whose centroids are nearest.

Sources: Gemma 4 (Google 2026); transformers' `Gemma4AssistantForCausalLM` and
`SinglePositionMultiTokenCandidateGenerator`; llama.cpp's `gemma4-assistant.cpp` (read, not copied).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.heads.draft_blocks import norm_bytes, vector_bytes
from medusa_core.heads.gemma4_assistant_parts import LAYER_NORMS, AssistantParts, RowsRead
from medusa_core.heads.medusa import MakeLinear, SharedWeights
from medusa_core.heads.part_tensors import TakeTensor, need
from medusa_core.models.blocks.block import Attention, Block, Branch
from medusa_core.models.blocks.caches import PassCache, SequenceRows
from medusa_core.models.blocks.torch_blocks import PassContext, run_block
from medusa_core.models.decoder import rope_configs
from medusa_core.models.experts import Mlp
from medusa_core.models.norm import RmsNorm, SplitQkNorm
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear
from medusa_core.models.quant.native_linear import share_threads
from medusa_core.models.rope import Rope, interleave_rows
from medusa_core.runtime.kv.cache import ReadableCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.system.native.pool import Workers


class SeenRows(NamedTuple):
    """What the guesses of one step attend to.

    Attributes:
        of_layers: Of each layer the keys and values that it sees, [kv heads, s, head_dim] each.
        turns: Rotation of queries by each rope. [1, head_dim / 2], complex
    """

    of_layers: Sequence[tuple[Tensor, Tensor]]
    turns: Sequence[Tensor]


class Scored(NamedTuple):
    """Scores of what may follow some paths.

    Attributes:
        scores: [n, columns], float32 or better
        token_ids: The token of each column, where paths have their own. [n, columns]
    """

    scores: Tensor
    token_ids: Tensor | None

    def tokens(self, columns: Tensor) -> Tensor:
        """The tokens of some columns of every row. [n, any]"""
        if self.token_ids is None:
            return columns
        return self.token_ids.to(columns.device).gather(1, columns)


class ClusteredTokens(NamedTuple):
    """Tokens by clusters, of which only the nearest are scored.

    Attributes:
        centroids: [clusters, hidden]
        vectors: Of every cluster's tokens. [clusters, tokens, hidden]
        token_ids: The same tokens. int64, [clusters, tokens]
        num_read: Clusters whose tokens are scored.
    """

    centroids: Tensor
    vectors: Tensor
    token_ids: Tensor
    num_read: int

    def scored(self, states: Tensor) -> Scored:
        """[n, hidden] → scores of the tokens of so many clusters."""
        nearest = (states @ self.centroids.T).topk(self.num_read, dim=-1).indices
        vectors = self.vectors[nearest].flatten(1, 2)  # [n, columns, hidden]
        scores = torch.bmm(vectors, states.unsqueeze(-1)).squeeze(-1)
        return Scored(scores, self.token_ids[nearest].flatten(1))

    @property
    def nbytes(self) -> int:
        """Bytes of all."""
        return self.centroids.nbytes + self.vectors.nbytes + self.token_ids.nbytes


class AssistantHead:
    """See the module.

    Attributes:
        num_heads: One.
        taps: None: it reads the target's last state.
        caches: None of its own.
    """

    num_heads = 1
    taps: tuple[int, ...] = ()
    caches: CachePool | None = None

    def __init__(
        self,
        parts: AssistantParts,
        read: Sequence[RowsRead],
        take: TakeTensor,
        shared_weights: SharedWeights,
        embedding_scale: float,
        make: MakeLinear,
        precision: Precision,
    ) -> None:
        """Take the weights.

        Args:
            parts: What it is made of.
            read: Of each layer the target's rows that it attends to.
            take: A part's tensor on the device, numbers in the compute dtype; None where there is
                none.
            shared_weights: What the target lends it.
            embedding_scale: What the target multiplies its token vectors with.
            make: Makes a layer of a weight and a bias, in the heads' format.
            precision: Where and in which dtype it runs.
        """
        self._precision = precision
        self._embedding, self._scale = shared_weights.embedding, embedding_scale
        self._vocab_size = shared_weights.vocab_size
        self._layers = parts.layers
        ropes = rope_configs(parts.layers)
        self._ropes = [Rope(config, precision.scores, precision.device) for config in ropes]
        windows = parts.layers.windows
        self._reads = [(rows.layer, window) for rows, window in zip(read, windows, strict=True)]

        self._before, self._behind = (make(need(take, part), None) for part in ("before", "behind"))
        self._last_norm = RmsNorm(need(take, "last_norm"), parts.layers.rms_norm_eps)
        self._blocks = [_block(parts, index, rows, take, make) for index, rows in enumerate(read)]
        self._clusters = _clusters(parts, take) if parts.num_clusters else None
        self._lm_head = None if parts.num_clusters else make(need(take, parts.projection), None)

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Its matrices, but for tokens by clusters."""
        own = () if self._lm_head is None else (self._lm_head,)
        of_blocks = (linear for block in self._blocks for linear in block.linears)
        return (self._before, self._behind, *own, *of_blocks)

    @property
    def nbytes(self) -> int:
        held = sum(linear.nbytes for linear in self.linears)
        held += norm_bytes((self._last_norm,)) + vector_bytes(self._blocks)
        return held + (0 if self._clusters is None else self._clusters.nbytes)

    def reserve(self, num_rows: int) -> None:
        """It has no cache."""

    def share_workers(self, workers: Workers) -> None:
        share_threads(self.linears, workers)

    def rows_of(self, kv: ReadableCache) -> SeenRows:
        """What guesses behind all committed rows of a cache see, from now until the next pass."""
        precision, position = self._precision, kv.length
        turns = [rope.turn_at(position) for rope in self._ropes]  # no table: one serves a step
        every: list[tuple[Tensor, Tensor]] = []
        found: dict[tuple[int, int | None], tuple[Tensor, Tensor]] = {}
        for key in self._reads:
            layer, window = key
            if key not in found:
                # The row before the root, and as many before it as the window has.
                first = 0 if window is None else max(0, position - 1 - window)
                keys, values = kv.rows_of(layer, first)
                found[key] = (
                    keys.to(precision.device, precision.scores),
                    values.to(precision.device, precision.scores),
                )
            every.append(found[key])
        return SeenRows(every, turns)

    def step(
        self, token_ids: Sequence[int], states: Tensor, seen: SeenRows
    ) -> tuple[Tensor, Tensor]:
        """Go on by one token from each of some states.

        Args:
            token_ids: The token behind each.
            states: The target's, or what this left behind another guess. [n, backbone]
            seen: From `rows_of`.

        Returns:
            What scores are made of, [n, hidden], and the states behind the tokens. [n, backbone]
        """
        precision = self._precision
        rows = self._embedding[torch.tensor(token_ids, device=self._embedding.device)]
        vectors = rows.to(precision.device, precision.compute)
        vectors = vectors * torch.tensor(self._scale, dtype=vectors.dtype)
        read = states.to(precision.device, precision.compute)
        x = self._before(torch.cat([vectors, read], dim=-1))
        context = PassContext.of_layers(
            self._layers,
            positions=torch.zeros(len(x), dtype=torch.int64, device=x.device),
            num_positions=1,
            ropes=[_OnePosition(turn) for turn in seen.turns],
            scores_dtype=precision.scores,
        )
        sequences = [SequenceRows(slice(0, len(x)), None, _TargetRows(seen.of_layers))]
        for index, block in enumerate(self._blocks):
            x = run_block(index, block, x, context, sequences)
        left = self._last_norm(x)
        return left, self._behind(left)

    def scored(self, states: Tensor) -> Scored:
        """What may follow. [n, hidden]"""
        wide = torch.promote_types(self._precision.compute, torch.float32)
        if self._clusters is None:
            assert self._lm_head is not None
            return Scored(self._lm_head(states)[:, : self._vocab_size].to(wide), None)
        scores, token_ids = self._clusters.scored(states)
        return Scored(scores.to(wide), token_ids)


@dataclass(frozen=True, slots=True)
class _OnePosition:
    """A rope of the one position that all rows have.

    Attributes:
        turn: Rotation at that position. [1, head_dim / 2], complex
    """

    turn: Tensor

    def turns(self, num_positions: int) -> Tensor:
        """Return the table of that position alone."""
        return self.turn

    def identity(self, num_rows: int, size: int) -> Tensor:
        """Return rotations by nothing. [num_rows, size], complex"""
        return self.turn.new_ones(num_rows, size)


class _TargetRows(PassCache):
    """The target's keys and values as a cache that is only read."""

    def __init__(self, of_layers: Sequence[tuple[Tensor, Tensor]]) -> None:
        super().__init__(of_layers[0][0].device)
        self._written = dict(enumerate(of_layers))


def _block(
    parts: AssistantParts,
    index: int,
    rows: RowsRead,
    take: TakeTensor,
    make: MakeLinear,
) -> Block:
    def own(name: str) -> Tensor:
        return need(take, f"{index}.{name}")

    layers, size = parts.layers, rows.shape.head_dim
    eps = layers.rms_norm_eps
    q_bias = take(f"{index}.q_bias")
    pre, post, pre_mlp, post_mlp = (RmsNorm(own(name), eps) for name in LAYER_NORMS)
    q_norm = RmsNorm(interleave_rows(own("q_norm"), size), eps)
    attention = Attention(
        qkv=make(
            interleave_rows(own("q"), size),
            None if q_bias is None else interleave_rows(q_bias, size),
        ),
        output=make(own("o"), take(f"{index}.o_bias")),
        num_heads=layers.num_heads,
        num_kv_heads=rows.shape.num_kv_heads,
        head_dim=size,
        scale=1.0,
        rope=0 if layers.windows[index] is None else 1,
        kv_layer=index,
        qk_norm=SplitQkNorm(q_norm, None, layers.num_heads * size, 0),
        owns_kv=False,
    )
    return Block(
        branches=(Branch(attention),),
        mlp=Mlp(
            make(torch.cat([own("gate"), own("up")]), None),
            make(own("down"), None),
            own("down").shape[1],
        ),
        pre_norm=pre,
        post_norm=post,
        pre_mlp_norm=pre_mlp,
        post_mlp_norm=post_mlp,
        scale=own("scale"),
    )


def _clusters(parts: AssistantParts, take: TakeTensor) -> ClusteredTokens:
    """Tokens in the order of their clusters."""
    ordering = need(take, "ordering")
    vectors = need(take, parts.projection).index_select(0, ordering)
    count = parts.num_clusters
    return ClusteredTokens(
        need(take, "centroids"),
        vectors.view(count, -1, vectors.shape[1]),
        ordering.view(count, -1),
        parts.clusters_read,
    )
