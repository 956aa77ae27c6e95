"""Embedding models that are decoders, such as Qwen3-Embedding, on our runners."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import lru_cache

import torch
from torch import Tensor

from medusa_core.engine.embeddings.conventions import Conventions, Pooling
from medusa_core.engine.embeddings.embedder import Embedder, Vector
from medusa_core.errors import OutOfMemoryError
from medusa_core.loading.target import Target
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.runner.runner import PlacedTree
from medusa_core.runtime.tree.shape import TokenTree, TreeShape
from medusa_core.speculation.tuning.chunks import Chunks
from medusa_core.system import cuda


class NativeEmbedder(Embedder):
    """A decoder whose hidden states are pooled; see `Embedder`.

    Short texts share a pass, and a long one is read in chunks. The compiled step computes each row
    alike whatever the other rows of a pass, so that batches don't change its vectors.
    """

    def __init__(self, target: Target, pooling: Pooling, conventions: Conventions) -> None:
        """Wrap a loaded model."""
        self.name, self.conventions = target.name, conventions
        self.width = target.config.hidden_size
        self.context_tokens = target.config.context_tokens
        self.vocab_size = target.config.vocab_size
        self.nbytes = target.weights_bytes + target.caches.nbytes
        self._target, self._pooling = target, pooling
        self._chunks = Chunks(target)
        self._kv: KvCache | None = None  # of a text that was read in part
        self._sum: Tensor | None = None  # of its states so far, or the first one

    @property
    def is_within_text(self) -> bool:
        return self._kv is not None

    def encode(self, text: str) -> list[int]:
        return self._target.tokenizer.encode_whole(text)

    def reset(self) -> None:
        if self._kv is not None:
            self._target.caches.release(self._kv)
        self._kv = self._sum = None

    @torch.inference_mode()
    def compute(self, sequences: Sequence[Sequence[int]], max_rows: int) -> list[Vector]:
        max_rows = min(max_rows, self._chunks.rows)
        first = sequences[0]
        if self._kv is not None or len(first) > max_rows:
            vector = self._read_chunk(first, max_rows)
            return [] if vector is None else [vector]
        caches = self._allocate(sequences, max_rows)
        return self._read_whole(sequences[: len(caches)], caches)

    def _allocate(self, sequences: Sequence[Sequence[int]], max_rows: int) -> list[KvCache]:
        """Allocate caches for the first texts: as many as have room, and at least one."""
        caches: list[KvCache] = []
        num_rows = 0
        for sequence in sequences:
            num_rows += len(sequence)
            if num_rows > max_rows:
                break
            try:
                caches.append(self._target.allocate_cache(len(sequence)))
            except OutOfMemoryError:  # each takes whole blocks of rows
                if not caches:
                    raise
                break
        return caches

    def _read_whole(
        self, group: Sequence[Sequence[int]], caches: Sequence[KvCache]
    ) -> list[Vector]:
        """Compute some texts in one pass, and release their caches."""
        target = self._target
        only_last = self._pooling is Pooling.LAST
        placed = [
            PlacedTree(TokenTree(_chain(len(ids)), tuple(ids)), kv, True, only_last)
            for ids, kv in zip(group, caches, strict=True)
        ]
        started = time.perf_counter()
        try:
            states = target.runner.verify(*placed)
            cuda.wait(target.precision.device)
        finally:
            for kv in caches:
                target.caches.release(kv)
        self._chunks.learn(sum(map(len, group)), time.perf_counter() - started, 0.0)
        counts = [1 if only_last else len(sequence) for sequence in group]
        return [_as_vector(self._pooled(part)) for part in torch.split(states, counts)]

    def _read_chunk(self, token_ids: Sequence[int], max_rows: int) -> Vector | None:
        """Compute the next chunk of a long text; returns the vector at its end."""
        target = self._target
        if self._kv is None:
            self._kv = target.allocate_cache(len(token_ids))
        kv = self._kv
        chunk = token_ids[kv.length : kv.length + max_rows]
        started = time.perf_counter()
        try:
            states = target.runner.extend(chunk, kv, only_last=self._pooling is Pooling.LAST)
            cuda.wait(target.precision.device)
        except BaseException:
            self.reset()
            raise
        self._chunks.learn(len(chunk), time.perf_counter() - started, 0.0)
        if self._pooling is Pooling.MEAN:
            total = states.double().sum(dim=0, keepdim=True)
            self._sum = total if self._sum is None else self._sum + total
        elif self._pooling is Pooling.CLS and self._sum is None:
            self._sum = states[:1].clone()
        if kv.length < len(token_ids):
            return None
        pooled = states[-1:] if self._sum is None else self._sum
        self.reset()
        return _as_vector(pooled[0])

    def _pooled(self, states: Tensor) -> Tensor:
        """Pool the states of a whole text, or its last one alone. [n, hidden] → [hidden]

        A sum serves as mean, since vectors are normalized.
        """
        if self._pooling is Pooling.MEAN:
            return states.double().sum(dim=0)
        return states[0 if self._pooling is Pooling.CLS else -1]


@lru_cache(maxsize=128)
def _chain(num_rows: int) -> TreeShape:
    """Return the shape of consecutive tokens."""
    return TreeShape.chain(num_rows)


def _as_vector(pooled: Tensor) -> Vector:
    """Return a pooled state as an array; a copy, since the pass's tensor is large."""
    vector: Vector = pooled.float().cpu().numpy().copy()
    return vector
