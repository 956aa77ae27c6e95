"""Gemma 4 assistants at run time: a few layers that attend to the target's keys and values.

The input is [e; h]: the target's embedding of a token, and the target's hidden state before it; for
drafts, the state that the assistant returned for the token before. All drafts of a step have the
root's position, and attend to the target's committed rows, not to each other: a path is known by
its state alone. So there is no KV cache, and all paths of one length go through one pass.

Either all tokens are scored, or those of the clusters with the nearest centroids.

Sources: Gemma 4 (Google 2026); transformers' `Gemma4AssistantForCausalLM` and
`SinglePositionMultiTokenCandidateGenerator`; llama.cpp's `gemma4-assistant.cpp` (read, not copied).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from medusa_core.heads.draft_blocks import BlockReader, norm_bytes, vector_bytes
from medusa_core.heads.gemma4_assistant_parts import AssistantParts, RowsRead
from medusa_core.heads.medusa import BuildLinear, SharedWeights
from medusa_core.heads.ranked import DraftVocabulary
from medusa_core.heads.tensor_reader import ReadTensor, need
from medusa_core.models.precision import Precision
from medusa_core.models.quant.layout import QuantLinear, linears_of
from medusa_core.models.quant.native_linear import share_threads
from medusa_core.runtime.backends.caches import PassCache, SequenceRows
from medusa_core.runtime.backends.decoder import rope_configs
from medusa_core.runtime.backends.norm import RmsNorm
from medusa_core.runtime.backends.rope import Rope
from medusa_core.runtime.backends.torch_blocks import PassContext, run_block
from medusa_core.runtime.kv.cache import ReadableCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.system.native.pool import Workers


class TargetKv(NamedTuple):
    """Keys and values of the target that the drafts of one step attend to.

    Attributes:
        by_layer: Keys and values of each layer, [kv heads, s, head_dim] each.
        rotations: Rotation of queries by each RoPE. [1, head_dim / 2], complex
    """

    by_layer: Sequence[tuple[Tensor, Tensor]]
    rotations: Sequence[Tensor]


class AssistantScores(NamedTuple):
    """Logits of the next token after some paths.

    Attributes:
        scores: [n, columns], float32 or better
        vocabulary: Tokens of the columns, in which rows may differ.
    """

    scores: Tensor
    vocabulary: DraftVocabulary


class ClusteredTokens(NamedTuple):
    """Token embeddings in clusters, of which the nearest are scored.

    Attributes:
        centroids: [clusters, hidden]
        vectors: Output embeddings by cluster. [clusters, tokens, hidden]
        token_ids: Token ids by cluster. int64, [clusters, tokens]
        num_scored: Number of clusters that are scored.
    """

    centroids: Tensor
    vectors: Tensor
    token_ids: Tensor
    num_scored: int

    def scores(self, states: Tensor, vocab_size: int) -> AssistantScores:
        """Score the tokens of the nearest clusters. [n, hidden]"""
        nearest = (states @ self.centroids.T).topk(self.num_scored, dim=-1).indices
        vectors = self.vectors[nearest].flatten(1, 2)  # [n, columns, hidden]
        scores = torch.bmm(vectors, states.unsqueeze(-1)).squeeze(-1)
        token_ids = self.token_ids[nearest].flatten(1)
        return AssistantScores(scores, DraftVocabulary(vocab_size, token_ids))

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return self.centroids.nbytes + self.vectors.nbytes + self.token_ids.nbytes


class AssistantHead:
    """A loaded Gemma 4 assistant: a drafter that attends to the target's KV cache.

    Attributes:
        num_heads: 1.
        taps: Empty: it reads the target's final state.
        caches: None: it has no cache.
    """

    num_heads = 1
    taps: tuple[int, ...] = ()
    caches: CachePool | None = None

    def __init__(
        self,
        parts: AssistantParts,
        read: Sequence[RowsRead],
        read_part: ReadTensor,
        shared_weights: SharedWeights,
        embedding_scale: float,
        build_linear: BuildLinear,
        precision: Precision,
    ) -> None:
        """Read the weights.

        Args:
            parts: Tensor names and settings.
            read: For each layer the target's rows that it attends to.
            read_part: Reads a part on the device, floats in the compute dtype; None if missing.
            shared_weights: Weights of the target that it shares.
            embedding_scale: The target's factor of token embeddings.
            build_linear: Builds a linear layer from a weight and a bias, in the heads' format.
            precision: Dtypes and device.
        """
        self._precision = precision
        self._embedding, self._scale = shared_weights.embedding, embedding_scale
        self._vocab_size = shared_weights.vocab_size
        self._layers = parts.layers
        ropes = rope_configs(parts.layers)
        self._ropes = [Rope(config, precision.scores, precision.device) for config in ropes]
        windows = parts.layers.windows
        self._reads = [(rows.layer, window) for rows, window in zip(read, windows, strict=True)]

        self._pre_projection, self._post_projection = (
            build_linear(need(read_part, part), None)
            for part in ("pre_projection", "post_projection")
        )
        self._last_norm = RmsNorm(need(read_part, "last_norm"), parts.layers.rms_norm_eps)
        reader = BlockReader(parts.layers, read_part, build_linear)
        self._blocks = [
            reader.read_queries(f"{index}.", index, rows.shape) for index, rows in enumerate(read)
        ]
        self._clusters = _clusters(parts, read_part) if parts.num_clusters else None
        self._lm_head = (
            None if parts.num_clusters else build_linear(need(read_part, parts.projection), None)
        )

    @property
    def linears(self) -> tuple[QuantLinear, ...]:
        """Linear layers, without clustered tokens."""
        own = () if self._lm_head is None else (self._lm_head,)
        return (self._pre_projection, self._post_projection, *own, *linears_of(self._blocks))

    @property
    def nbytes(self) -> int:
        """Bytes of its weights, without shared weights."""
        held = sum(linear.nbytes for linear in self.linears)
        held += norm_bytes((self._last_norm,)) + vector_bytes(self._blocks)
        return held + (0 if self._clusters is None else self._clusters.nbytes)

    def reserve(self, num_rows: int) -> None:
        """Do nothing: there is no cache."""

    def share_workers(self, workers: Workers) -> None:
        """Let the target's worker threads compute the assistant, too."""
        share_threads(self.linears, workers)

    def target_kv(self, kv: ReadableCache) -> TargetKv:
        """Return the committed rows of a cache for drafting, valid until the target's next pass."""
        precision, position = self._precision, kv.length
        rotations = [rope.turn_at(position) for rope in self._ropes]  # one position needs no table
        every: list[tuple[Tensor, Tensor]] = []
        found: dict[tuple[int, int | None], tuple[Tensor, Tensor]] = {}
        for key in self._reads:
            layer, window = key
            if key not in found:
                # The row before the root, and as many before it as fit into the window.
                first = 0 if window is None else max(0, position - 1 - window)
                keys, values = kv.rows_of(layer, first)
                found[key] = (
                    keys.to(precision.device, precision.scores),
                    values.to(precision.device, precision.scores),
                )
            every.append(found[key])
        return TargetKv(every, rotations)

    def step(
        self, token_ids: Sequence[int], states: Tensor, target_kv: TargetKv
    ) -> tuple[Tensor, Tensor]:
        """Run the layers on some rows.

        Args:
            token_ids: Token after each state.
            states: The target's state, or what `step` returned for the path. [n, backbone]
            target_kv: From `target_kv`.

        Returns:
            Input of `scores` [n, hidden], and the states after the tokens [n, backbone].
        """
        precision = self._precision
        rows = self._embedding.rows(torch.tensor(token_ids))
        vectors = rows.to(precision.device, precision.compute)
        vectors = vectors * torch.tensor(self._scale, dtype=vectors.dtype)
        read = states.to(precision.device, precision.compute)
        x = self._pre_projection(torch.cat([vectors, read], dim=-1))
        context = PassContext.of_layers(
            self._layers,
            positions=torch.zeros(len(x), dtype=torch.int64, device=x.device),
            num_positions=1,
            ropes=[_OnePosition(turn) for turn in target_kv.rotations],
            scores_dtype=precision.scores,
        )
        sequences = [SequenceRows(slice(0, len(x)), None, _TargetRows(target_kv.by_layer))]
        for index, block in enumerate(self._blocks):
            x = run_block(index, block, x, context, sequences)
        left = self._last_norm(x)
        return left, self._post_projection(left)

    def scores(self, states: Tensor) -> AssistantScores:
        """Compute the logits of the next token. [n, hidden]"""
        wide = torch.promote_types(self._precision.compute, torch.float32)
        if self._clusters is None:
            assert self._lm_head is not None
            scores = self._lm_head(states)[:, : self._vocab_size]
            return AssistantScores(scores.to(wide), DraftVocabulary(self._vocab_size))
        scores, vocabulary = self._clusters.scores(states, self._vocab_size)
        return AssistantScores(scores.to(wide), vocabulary)


@dataclass(frozen=True, slots=True)
class _OnePosition:
    """RoPE table of the one position that all rows have.

    Attributes:
        turn: Rotation at that position. [1, head_dim / 2], complex
    """

    turn: Tensor

    def rotations(self, num_positions: int) -> Tensor:
        """Return the table of that position alone."""
        return self.turn

    def identity(self, num_rows: int, size: int) -> Tensor:
        """Return rotations by zero. [num_rows, size], complex"""
        return self.turn.new_ones(num_rows, size)


class _TargetRows(PassCache):
    """The target's keys and values as a read-only cache."""

    def __init__(self, by_layer: Sequence[tuple[Tensor, Tensor]]) -> None:
        super().__init__(by_layer[0][0].device)
        self._written = dict(enumerate(by_layer))


def _clusters(parts: AssistantParts, read_part: ReadTensor) -> ClusteredTokens:
    """Read the tokens in the order of their clusters."""
    ordering = need(read_part, "ordering")
    vectors = need(read_part, parts.projection).index_select(0, ordering)
    count = parts.num_clusters
    return ClusteredTokens(
        need(read_part, "centroids"),
        vectors.view(count, -1, vectors.shape[1]),
        ordering.view(count, -1),
        parts.clusters_scored,
    )
