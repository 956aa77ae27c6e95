"""The runner for a target whose layers are on the stages of a cluster.

This machine embeds, computes logits and drafts. A pass sends one request to each stage, with the
rows and the accepted rows of the pass before.

Source: Borzunov et al. 2022, "Petals: Collaborative Inference and Fine-tuning of Large Models": a
client keeps what it sent, so that another server can replace a lost one. Here it keeps the token
ids of committed rows; rows of trees needn't be kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from typing import TypeVar

import torch
from torch import Tensor

from medusa_core.errors import StageLostError
from medusa_core.messages import Machine, Move
from medusa_core.models.config import ModelConfig
from medusa_core.models.precision import DTYPES, Precision
from medusa_core.runtime.backends.decoder import Decoder
from medusa_core.runtime.cluster.pipeline import Pipeline
from medusa_core.runtime.cluster.protocol import (
    PackedTensor,
    PassRequest,
    RowsRequest,
)
from medusa_core.runtime.cluster.remote_cache import (
    NO_EPOCH,
    PLACEHOLDER_DTYPE,
    Remote,
    RemoteCache,
    placeholder_config,
)
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.runner.native import NativeRunner
from medusa_core.runtime.runner.runner import (
    PlacedTree,
    Runner,
    Waited,
    only_wanted,
)

_REPLAYED_ROWS = 64

R = TypeVar("R")


class ClusterRunner(Runner):
    """Runs forward passes; see `Runner`.

    Attributes:
        ends: Runner of the part on this machine.
        pipeline: The machines that compute layers.
    """

    def __init__(
        self, config: ModelConfig, model: Decoder, ends: Runner, pipeline: Pipeline
    ) -> None:
        """Create a runner.

        Args:
            config: Config of the whole target.
            model: The part on this machine.
            ends: Runner of that part.
            pipeline: The machines that compute layers.
        """
        held = pipeline.active[0].held
        assert held is not None  # an active member has loaded its layers
        self.hidden_dtype = DTYPES[held.hidden]
        self.cache_dtype = DTYPES[held.cache]
        self.ends = ends
        self.workers = ends.workers
        self.pipeline = pipeline
        self._config = config
        self._model = model
        self._device = model.final_norm.weight.device
        self._waited = Waited()
        self._numbers = count()
        self._unused_ids: list[int] = []

    @property
    def waited(self) -> Waited:
        """Seconds that passes have waited for other machines so far."""
        return self._waited

    def use_threads(self, decoding: int, prefill: int) -> None:
        """Set the threads of this machine; each stage has measured its own number."""
        self.ends.use_threads(decoding, prefill)

    def embed_from(self, vectors: Tensor) -> None:
        """Replace the embedding table of this machine's part."""
        self.ends.embed_from(vectors)

    def new_cache(self, capacity: int, memory: Tensor | None = None) -> RemoteCache:
        """Return an empty cache whose rows are on the stages."""
        return RemoteCache(self._config, self._new_remote, self._committed, capacity, memory)

    def verify(self, *placed: PlacedTree) -> Tensor:
        """Run trees through all stages."""
        caches: list[RemoteCache] = []
        ids: list[int] = []
        for tree, kv, *_ in placed:
            assert isinstance(kv, RemoteCache)  # from new_cache
            kv.open(tree.token_ids)
            caches.append(kv)
            ids += tree.token_ids

        def sequences() -> tuple[RowsRequest, ...]:
            """Requests for the trees, with the caches' present changes."""
            shapes = [each.tree.shape for each in placed]
            return tuple(
                RowsRequest(kv.request(), shape.num_nodes, shape.paths, shape.parents)
                for kv, shape in zip(caches, shapes, strict=True)
            )

        return only_wanted(self._pass(caches, sequences, ids), placed)

    def extend(self, token_ids: Sequence[int], kv: KvCache, only_last: bool = False) -> Tensor:
        """Run consecutive tokens through all stages, and commit them."""
        assert isinstance(kv, RemoteCache)  # from new_cache
        rows, caches = len(token_ids), [kv]
        self._retry(self.pipeline.reconsider)  # here, as every answer begins with prefill
        kv.open(token_ids)
        states = self._pass(
            caches, lambda: (RowsRequest(kv.request(), rows),), token_ids, only_last
        )
        kv.commit(range(rows))
        return states

    def logits(self, states: Tensor) -> Tensor:
        """Compute logits on this machine."""
        return self.ends.logits(states)

    def reserve(self, config: ModelConfig, precision: Precision, num_rows: int) -> CachePool:
        """Allocate slots of one byte, as keys and values are on other machines."""
        return CachePool(
            placeholder_config(config), PLACEHOLDER_DTYPE, torch.device("cpu"), num_rows
        )

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The machines that have layers, in layer order."""
        members = self.pipeline.active
        return tuple(Machine(member.offer.place, member.share.num_layers) for member in members)

    def take_moves(self) -> tuple[Move, ...]:
        """Return and clear the list of moved layers."""
        return self.pipeline.take_moves()

    def leave(self) -> None:
        """Release all machines."""
        self.pipeline.leave()

    def _pass(
        self,
        caches: Sequence[RemoteCache],
        sequences: Callable[[], tuple[RowsRequest, ...]],
        token_ids: Sequence[int],
        only_last: bool = False,
    ) -> Tensor:
        """Run a pass; after the loss of a stage, restore the caches and retry with the others."""
        rows = self._embed(token_ids)

        def run_pass() -> Tensor:
            """Restore the caches if necessary, then run the pass."""
            for kv in caches:
                self._restore(kv)
            return self._through(sequences(), rows, only_last)

        try:
            states = self._retry(run_pass)
        except BaseException:
            for kv in caches:  # some stages have computed this pass, and others haven't
                kv.remote.epoch = NO_EPOCH
            raise
        for kv in caches:
            kv.mark_sent()
        return states

    def _retry(self, work: Callable[[], R]) -> R:
        """Call a function again after each loss of a stage."""
        while True:
            try:
                return work()
            except StageLostError as lost:
                self.pipeline.replace_lost(lost)

    def _through(self, sequences: tuple[RowsRequest, ...], rows: Tensor, only_last: bool) -> Tensor:
        """Run one pass through all stages. Returns [n, (1 + taps) · hidden]."""
        size, tapped = self._config.hidden_size, []
        order = PassRequest(
            self.pipeline.client,
            sequences,
            PackedTensor.of(rows),
            self.taps,
            only_last,
            tuple(self._unused_ids),
        )
        for member in self.pipeline.active:
            started = time.perf_counter()
            reply = member.connection.run(order)
            self._count(time.perf_counter() - started, reply.compute_s)
            member.seconds.append(reply.compute_s)
            states = reply.states.tensor()
            tapped.append(states[-1:, size:] if only_last else states[:, size:])
            order = replace(order, rows=PackedTensor.of(states[:, :size]))
        del self._unused_ids[: len(order.forget)]
        return torch.cat([states[:, :size], *tapped], dim=1).to(self._device)

    def _count(self, whole_s: float, compute_s: float) -> None:
        """Count a stage's time: what exceeds computing was spent on the network."""
        transfer_s, remote_s = self._waited
        compute_s = min(compute_s, whole_s)
        self._waited = Waited(transfer_s + whole_s - compute_s, remote_s + compute_s)

    def _restore(self, kv: RemoteCache) -> None:
        """Compute a cache's rows again if the layers were divided anew since."""
        if kv.remote.epoch == self.pipeline.epoch:
            return
        epoch, order, done = self.pipeline.epoch, kv.restart(), 0
        while done < kv.length and not kv.is_blank:
            ids = kv.token_ids[done : done + _REPLAYED_ROWS]
            self._through((RowsRequest(order, len(ids)),), self._embed(ids), only_last=True)
            done += len(ids)
            order = replace(order, keep=tuple(range(len(ids))), length=done)
        kv.mark_restored(epoch, order.keep)

    def _embed(self, token_ids: Sequence[int]) -> Tensor:
        """Compute the input of the first layer. [n, hidden]"""
        model, ids = self._model, torch.tensor(token_ids)
        if isinstance(self.ends, NativeRunner):  # keeps embeddings in float32, as on one machine
            return model.embedding.rows(ids).to(self.hidden_dtype)
        offloaded = model.offloaded_vectors(token_ids)
        return model.embed(ids) if offloaded is None else offloaded

    def _committed(self, kv: RemoteCache) -> Tensor:
        """Read a cache's committed rows from the stages, restoring lost ones."""

        def request() -> Tensor:
            """Ask every stage for its layers' rows."""
            self._restore(kv)
            held = [member.connection.committed(kv.request()) for member in self.pipeline.active]
            return torch.cat([packed.tensor() for packed in held])

        found = self._retry(request)
        kv.mark_sent()
        return found

    def _new_remote(self) -> Remote:
        """An unused id of a cache."""
        return Remote(self._numbers, self._unused_ids)
