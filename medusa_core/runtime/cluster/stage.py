"""A machine's part in a cluster: some layers of a target, and caches for many sessions."""

from __future__ import annotations

import os
import platform
import statistics
import time
from pathlib import Path

import psutil
import torch
from torch import Tensor

from medusa_core.errors import ClusterError, StageBusyError
from medusa_core.i18n import tr
from medusa_core.models.config import ModelConfig
from medusa_core.models.model_files import ModelFiles
from medusa_core.models.precision import Precision, hardware_of, precision_of, resolve_device
from medusa_core.models.quant.choice import (
    PartFormats,
    resolve_formats,
)
from medusa_core.runtime.cluster.fingerprint import (
    hash_of_model,
    usable_libraries,
    versions,
)
from medusa_core.runtime.cluster.layer_range import (
    NO_LAYERS,
    LayerRange,
)
from medusa_core.runtime.cluster.protocol import (
    CacheRequest,
    ComputeSettings,
    PackedTensor,
    PassReply,
    PassRequest,
    StageLayers,
    StageOffer,
    StageSpeed,
)
from medusa_core.runtime.cluster.stage_weights import read_share
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.size import (
    row_bytes,
    whole_rows,
)
from medusa_core.runtime.runner.choice import choose_runner
from medusa_core.runtime.runner.runner import (
    PlacedTree,
    Runner,
)
from medusa_core.runtime.tree.shape import (
    TokenTree,
    TreeShape,
)
from medusa_core.system import cuda
from medusa_core.system.native.binding import agree_on

_TIMED_ROWS, _REPEATS = 8, 9  # a small tree
_MEMORY_SHARE = 0.8  # of the free memory, by default
_IDLE_S = 20.0  # after which another client may take over a stage
_MAX_RELATIVE_TIME = 0.8  # more threads must save a fifth


class Stage:
    """Computes some layers of a target for a client."""

    def __init__(
        self,
        name: str,
        model_dir: Path,
        memory_bytes: int = 0,
        device: str = "",
        layer_s: float = 0.0,
        delay_s: float = 0.0,
    ) -> None:
        """Open a model; no layers are loaded yet.

        Args:
            name: Name of the stage, unique in its cluster.
            model_dir: This machine's copy of the model.
            memory_bytes: Memory for layers and caches; 0 for most of the free memory.
            device: A torch device name; empty for the best one.
            layer_s: Seconds of a layer in a step; 0 to measure them.
            delay_s: Seconds added to each pass, to simulate a slow network.

        Raises:
            ModelError: There is no such model, or it can't be run.
            RequestError: There is no such device.
        """
        self._name = name
        self._files = ModelFiles.open(model_dir)
        self._memory_bytes = memory_bytes or int(psutil.virtual_memory().available * _MEMORY_SHARE)
        self._device = resolve_device(device).device
        self._layer_s = layer_s
        self._delay_s = delay_s
        self._config = self._files.config
        self._hash = hash_of_model(self._files)
        self._resolved: tuple[Precision, PartFormats] | None = None
        self._runner: Runner | None = None
        self._share = NO_LAYERS
        self._caches: dict[int, KvCache] = {}
        self._num_threads = 1
        self._client, self._requested_at = "", 0.0
        self._offer = self._describe()

    def offer(self) -> StageOffer:
        """Return this machine's offer."""
        return self._offer

    @torch.inference_mode()
    def prepare(self, wanted: ComputeSettings) -> StageSpeed:
        """Resolve a client's settings, and measure one layer with them.

        Raises:
            MedusaError: This machine doesn't support them.
            StageBusyError: Another client uses this stage.
        """
        idle_s = time.monotonic() - self._requested_at
        if self._runner is not None and wanted.client != self._client and idle_s < _IDLE_S:
            raise StageBusyError(
                tr("{0} serves another client.", self._name), "Wait until that one has ended."
            )
        self._client, self._requested_at = wanted.client, time.monotonic()
        if not agree_on(wanted.library):
            raise ClusterError(
                tr(
                    "{0} computes with another kernel library than {1} already.",
                    self._name,
                    wanted.library,
                ),
                "Start serve-layers there anew.",
            )
        hardware, stored = hardware_of(self._device), self._config.stored
        formats = resolve_formats(wanted.formats, wanted.compute, hardware, stored)
        precision = precision_of(formats.compute, self._device)
        self._resolved = precision, formats
        self._forget_layers()
        first = read_share(self._files, self._config, LayerRange(0, 1), precision, formats)
        runner = choose_runner(first, precision)
        layer_s = self._layer_s or self._measure(runner, first.config)
        rows = wanted.sessions * whole_rows(wanted.context_tokens)
        in_cache = row_bytes(first.config, runner.cache_dtype.itemsize) * rows
        return StageSpeed(
            formats=formats.names,
            layer_s=layer_s,
            most_layers=self._memory_bytes // (first.nbytes + in_cache),
        )

    def take(self, share: LayerRange, client: str) -> StageLayers:
        """Load some layers in place of others, and free all caches.

        Args:
            share: The layers; an empty range releases this machine.
            client: Id of the client.

        Raises:
            MedusaError: They can't be read, or don't fit into memory.
            StageBusyError: Another client has taken over this stage.
        """
        self._check_client(client)
        assert self._resolved is not None  # by `prepare`
        precision, formats = self._resolved
        self._forget_layers()
        if not share.num_layers:
            return StageLayers(share, 0, 0, "", "")
        model = read_share(self._files, self._config, share, precision, formats)
        self._runner = choose_runner(model, precision)
        self._runner.use_threads(self._num_threads, self._num_threads)
        self._share = share
        cache, hidden = self._runner.cache_dtype, self._runner.hidden_dtype
        names = [str(dtype).removeprefix("torch.") for dtype in (cache, hidden)]
        num_parameters = model.num_parameters - self._config.hidden_size  # the last norm's
        return StageLayers(share, num_parameters, model.nbytes, *names)

    def _check_client(self, client: str) -> None:
        """Raise `StageBusyError` if another client has taken over this stage."""
        if client != self._client:
            raise StageBusyError(
                tr("{0} serves another client now.", self._name), "Load the model again."
            )

    @torch.inference_mode()
    def run(self, request: PassRequest) -> PassReply:
        """Apply changes of caches, and run a pass.

        Raises:
            ClusterError: A cache has another length than the client expects.
        """
        started = time.perf_counter()
        self._check_client(request.client)
        self._requested_at = time.monotonic()
        for cache_id in request.forget:
            self._caches.pop(cache_id, None)
        runner = self._need_runner()
        taps = [tap - self._share.first for tap in request.taps]
        taps = sorted({tap for tap in taps if 0 <= tap < self._share.num_layers or self._ends(tap)})
        output = [] if self._is_last else [self._share.num_layers]  # without the final norm
        if runner.taps != (*taps, *output):
            runner.tap((*taps, *output))
        runner.embed_from(request.rows.tensor())
        states = self._pass(runner, request)
        if not self._is_last:  # the input of the next stage comes first
            size = self._config.hidden_size
            states = torch.cat([states[:, -size:], states[:, size:-size]], dim=1)
        packed = PackedTensor.of(states)
        compute_s = time.perf_counter() - started
        time.sleep(self._delay_s)
        return PassReply(packed, compute_s)

    @torch.inference_mode()
    def committed(self, request: CacheRequest) -> PackedTensor:
        """Return the committed rows of a cache. [layers, 2, kv heads, length, head_dim]"""
        return PackedTensor.of(self._cache(request).committed())

    def _describe(self) -> StageOffer:
        """This machine's offer."""
        return StageOffer(
            name=self._name,
            place=f"{platform.node()}, process {os.getpid()}",
            model_hash=self._hash,
            libraries=usable_libraries(),
            versions=versions(self._device),
            memory_bytes=self._memory_bytes,
        )

    @property
    def _is_last(self) -> bool:
        """Whether this stage has the target's last layer."""
        return self._share.stop == self._config.num_layers

    def _ends(self, tap: int) -> bool:
        """Whether a tap is the output of the target's last layer."""
        return self._is_last and tap == self._share.num_layers

    def _pass(self, runner: Runner, request: PassRequest) -> Tensor:
        """Run a pass; the token id of row i is i, as its embedding is row i of the input."""
        placed, start = [], 0
        for rows in request.sequences:
            kv = self._cache(rows.cache)
            numbers = range(start, start + rows.num_rows)
            start += rows.num_rows
            if rows.paths is None:
                length = kv.length
                states = runner.extend(numbers, kv, request.only_last and self._is_last)
                kv.truncate(length)  # the client's next request commits them
                return states
            tree = TokenTree(TreeShape(rows.paths, rows.parents), tuple(numbers))
            placed.append(PlacedTree(tree, kv))
        return runner.verify(*placed)

    def _cache(self, request: CacheRequest) -> KvCache:
        """Return a session's cache after applying the client's changes."""
        runner = self._need_runner()
        kv = self._caches.get(request.cache_id)
        if kv is None:
            kv = self._caches[request.cache_id] = runner.new_cache(request.capacity)
        elif kv.capacity < request.capacity:
            kv.commit(request.keep)  # before `take_over`, which copies committed rows alone
            larger = runner.new_cache(request.capacity)
            larger.take_over(kv)
            kv = self._caches[request.cache_id] = larger
        else:
            kv.commit(request.keep)
        if request.is_blank:
            kv.fill(request.length)
        kv.truncate(request.length)
        if kv.length != request.length:
            raise ClusterError(
                tr(
                    "{0} holds {1} rows of a session instead of {2}.",
                    self._name,
                    kv.length,
                    request.length,
                )
            )
        return kv

    def _need_runner(self) -> Runner:
        """The runner of the loaded layers; raises `ClusterError` without any."""
        if self._runner is None:
            raise ClusterError(tr("{0} has no layers.", self._name))
        return self._runner

    def _forget_layers(self) -> None:
        """Free the layers and all caches."""
        self._runner, self._share = None, NO_LAYERS
        self._caches.clear()

    def _measure(self, runner: Runner, config: ModelConfig) -> float:
        """Measure the seconds of a layer in a step, and choose the best number of threads."""
        runner.embed_from(torch.zeros(_TIMED_ROWS, config.hidden_size, dtype=runner.hidden_dtype))
        self._num_threads, best_s = 1, self._timed(runner, 1)
        count = 2
        while count <= (os.cpu_count() or 1):
            taken_s = self._timed(runner, count)
            if taken_s < best_s * _MAX_RELATIVE_TIME:
                self._num_threads, best_s = count, taken_s
            count *= 2
        return best_s

    def _timed(self, runner: Runner, num_threads: int) -> float:
        """Median seconds of a small chunk with a number of threads."""
        runner.use_threads(num_threads, num_threads)
        kv = runner.new_cache(_TIMED_ROWS)

        def work() -> None:
            """Compute the chunk in an empty cache."""
            kv.truncate(0)
            runner.extend(range(_TIMED_ROWS), kv)

        work()
        return statistics.median(cuda.seconds_of(work, self._device) for _ in range(_REPEATS))
