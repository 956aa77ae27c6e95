"""Caches whose rows lie below the device, driven beside ones that lie on it."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from medusa_core.models.config import ModelConfig
from medusa_core.models.layer_shapes import KvShape
from medusa_core.models.precision import Precision, precision_of
from medusa_core.models.quant.choice import CACHE_FORMATS
from medusa_core.runtime.kv.cache import KvCache
from medusa_core.runtime.kv.offloaded.disk_prefetcher import DiskPrefetcher
from medusa_core.runtime.kv.offloaded.disk_store import DiskStore
from medusa_core.runtime.kv.offloaded.prefetcher import KvPrefetcher, LayerKv
from medusa_core.runtime.kv.offloaded.store import KvStore
from medusa_core.runtime.kv.panel_cache import PanelCache
from medusa_core.runtime.kv.pool import CachePool
from medusa_core.runtime.kv.quantized import QuantizedCache, pack_blocks
from medusa_core.runtime.kv.tensor import TensorCache
from medusa_core.system.native.binding import native_library
from medusa_core.system.native.constants import LANES
from tests.support.models import targets

CONTEXT, TREE_ROWS, SESSIONS = 320, 11, 3
KINDS = ["float64", "float32", "q8_0", "q4", "panels", "half panels", "q8_0 panels"]
LAYERS = (KvShape(2, 16), KvShape(1, 48), *(KvShape(2, 16),) * 2, KvShape(1, 48))
_CPU = torch.device("cpu")
_PROMPTS = (1, 4, 16, 17, 31, 40, 64, 100)

NewCache = Callable[[int, Tensor | None], KvCache]


class Kind(NamedTuple):
    """A kind of cache.

    Attributes:
        config: Sizes.
        dtype: Of rows as they are kept.
        cache_format: As precisions have it.
        is_panels: Does the compiled step read it?
        device: Where it lies.
    """

    config: ModelConfig
    dtype: torch.dtype
    cache_format: str
    is_panels: bool
    device: torch.device = _CPU

    def new_cache(self, store: KvStore | None) -> NewCache:
        if self.is_panels:
            library = native_library()
            assert library is not None
            return lambda rows, memory: PanelCache(
                library, self.config, self.dtype, rows, memory, store
            )
        precision = self.precision
        kind = QuantizedCache if self.cache_format else TensorCache
        return lambda rows, memory: kind(self.config, precision, rows, memory=memory, store=store)

    @property
    def precision(self) -> Precision:
        name = "float64" if self.dtype is torch.float64 else "float32"
        return precision_of(name, self.device, self.cache_format)

    def pool(self, store: KvStore | None) -> CachePool:
        rows, form = SESSIONS * CONTEXT, self.cache_format
        return CachePool(self.config, self.dtype, self.device, rows, form, offloaded=store)

    def store(self, layers: tuple[int, ...], folder: Path) -> DiskStore:
        form = self.cache_format
        return DiskStore(self.config, layers, SESSIONS, CONTEXT, folder, TREE_ROWS, form)


def kind_of_cache(name: str) -> Kind:
    """Return one of `KINDS` by name."""
    base = targets.load("pebble", "float32").config
    rows = replace(base, num_layers=len(LAYERS), blocks=(), cached_layers=LAYERS)
    config = replace(rows, context_tokens=CONTEXT)
    form = name.partition(" ")[0]
    form = form if form in CACHE_FORMATS else ""
    dtypes = {"float64": torch.float64, "half panels": torch.bfloat16}
    dtype = torch.uint8 if form else dtypes.get(name, torch.float32)
    return Kind(config, dtype, form, "panels" in name)


class Below(NamedTuple):
    """Rows below the device.

    Attributes:
        kind: Of the caches that have them.
        store: Their home.
        prefetcher: Prefetches them.
    """

    kind: Kind
    store: KvStore
    prefetcher: KvPrefetcher


class Driver:
    """Sessions of two targets that differ only in the place of KV rows.

    Attributes:
        store: Home of those below.
        prefetcher: Prefetches them.
        pools: Of both: below first.
        pairs: Of each session both caches.
    """

    def __init__(self, below: Below, seed: int = 0) -> None:
        self.kind, self.store, self.prefetcher = below
        here = self.kind._replace(device=_CPU)
        self.pools = [self.kind.pool(self.store), here.pool(None)]
        self._makers = [self.kind.new_cache(self.store), here.new_cache(None)]
        self.pairs = [self._pair() for _ in range(SESSIONS - 1)]
        self._chance = random.Random(seed)
        self._numbers = torch.Generator().manual_seed(seed)

    @classmethod
    def on_disk(cls, kind: Kind, layers: tuple[int, ...], folder: Path, seed: int = 0) -> Driver:
        """Return a target with KV rows of some layers on a disk, without a card."""
        store = kind.store(layers, folder)
        driver = cls(Below(kind, store, DiskPrefetcher(store, _CPU)), seed)
        for tail in store._tails:  # fresh memory may hold the same rows, from a case before
            tail.view(torch.uint8).fill_(7)
        return driver

    def _pair(self) -> list[KvCache]:
        sides = zip(self.pools, self._makers, strict=True)
        return [pool.allocate(new, 1) for pool, new in sides]

    def make_room(self, place: int, rows: int) -> None:
        """Reserve the given number of further rows in a session's caches."""
        for side, (pool, new) in enumerate(zip(self.pools, self._makers, strict=True)):
            kv = self.pairs[place][side]
            if kv.length + rows > kv.capacity:
                self.pairs[place][side] = pool.grown(new, kv, kv.length + rows)

    def renew(self, place: int) -> None:
        """Release a session's caches and allocate new ones."""
        for pool, kv in zip(self.pools, self.pairs[place], strict=True):
            kv.truncate(0)
            pool.release(kv)
        self.pairs[place] = self._pair()

    def run(self, rows: dict[int, int], decided: bool = False, num_acquired: int = 1 << 30) -> None:
        """Run a pass of some sessions with the given number of rows each, in one or several
        batches.

        Args:
            rows: Of each session.
            decided: They are a prompt's.
            num_acquired: Layers of a batch after which it fails.
        """
        for place, count in rows.items():
            self.make_room(place, count)
            for kv in self.pairs[place]:
                kv.reserve(count, decided)
        places = list(rows)
        cut = self._chance.randrange(1, len(places) + 1)
        batches = [batch for batch in (places[:cut], places[cut:]) if batch]
        order = [
            (layer, batch, self._layer_kv(layer, batch))
            for layer in range(len(LAYERS))
            for batch in batches
        ]
        self.prefetcher.begin(
            [rows_of for layer, _, rows_of in order if layer in self.store.layers]
        )
        for layer, batch, wanted in order[:num_acquired]:
            if layer in self.store.layers:
                self.prefetcher.acquire(wanted)
            for place in batch:
                self._write(layer, self.pairs[place], rows[place])
            if layer in self.store.layers:
                self.prefetcher.release()

    def _layer_kv(self, layer: int, places: Sequence[int]) -> LayerKv:
        return LayerKv(layer, tuple(self.pairs[place][0] for place in places))

    def _write(self, layer: int, pair: Sequence[KvCache], count: int) -> None:
        """Write the same rows into both, which then have the same to read."""
        shape = LAYERS[layer]
        sizes = (count, 2 * shape.num_kv_heads, shape.head_dim)
        fresh = torch.randn(sizes, generator=self._numbers).to(
            self.dtype if self.kind.cache_format else self.kind.dtype
        )
        found = [self._written(kv, layer, fresh) for kv in pair]
        assert all(map(same, *found)), f"layer {layer} reads something else"

    @property
    def dtype(self) -> torch.dtype:
        """Dtype of written rows."""
        return torch.float64 if self.kind.dtype is torch.float64 else torch.float32

    def _written(self, kv: KvCache, layer: int, fresh: Tensor) -> Sequence[Tensor]:
        if isinstance(kv, TensorCache):
            return kv.write(layer, fresh.to(kv.device_of(layer)))
        assert isinstance(kv, PanelCache)
        return write_panels(kv, layer, fresh)

    def check(self) -> None:
        """Check that both targets' caches hold equal rows."""
        for below, device in self.pairs:
            assert below.length == device.length
            assert same(below.committed(), device.committed())
            layer = self._chance.randrange(len(LAYERS))
            first = self._chance.randrange(device.length + 1)
            found = [kv.rows_of(layer, first) for kv in (below, device)]
            assert all(map(same, *found)), f"rows of layer {layer} from {first} on"

    def each(self, place: int, name: str, *given: Any) -> None:
        """Call something of both caches of a session."""
        for kv in self.pairs[place]:
            getattr(kv, name)(*given)

    def go_on(self, num_steps: int) -> set[str]:
        """Repeat an operation, compare the caches after each, and return the operations."""
        done = set()
        for _ in range(num_steps):
            done.add(self.step())
            self.check()
        return done

    def step(self) -> str:
        """Do something; returns what."""
        chance, place = self._chance, self._chance.randrange(len(self.pairs))
        what = chance.choice(["prompt", "prompt", "tree", "tree", "tree", "cut", "fail", "renew"])
        length = self.pairs[place][1].length
        most = CONTEXT - 16 - max(pair[1].length for pair in self.pairs)
        if most < max(_PROMPTS):
            what = chance.choice(["cut", "renew"])
        if what == "prompt":
            count = chance.choice(_PROMPTS)
            self.run({place: count}, decided=True)
            self.each(place, "commit", range(count))
        elif what == "fail":
            decided = chance.random() < 0.7
            count = chance.choice(_PROMPTS) if decided else TREE_ROWS
            self.run({place: count}, decided, num_acquired=chance.randrange(len(LAYERS)))
        elif what == "cut":
            self.each(place, "truncate", chance.randrange(length + 1))
        elif what == "renew":
            self.renew(place)
        else:
            self._tree()
        return what

    def _tree(self) -> None:
        """A step of all sessions, of whose rows some are committed."""
        chance = self._chance
        rows = {place: chance.randrange(1, TREE_ROWS + 1) for place in range(len(self.pairs))}
        self.run(rows)
        for place, count in rows.items():
            kept = sorted(chance.sample(range(count), chance.randrange(count + 1)))
            self.each(place, "commit", kept)


class Failing:
    """A file of which some operation fails from now on."""

    def __init__(self, file: Any, name: str, error: int) -> None:
        self._file, self._name, self._error = file, name, error

    def __getattr__(self, name: str) -> Any:
        if name == self._name:
            raise OSError(self._error, os.strerror(self._error))
        return getattr(self._file, name)


def ready(driver: Driver) -> None:
    """Prepare a session with offloaded rows and rows in its tail."""
    driver.run({0: 70}, decided=True)
    driver.each(0, "commit", range(70))
    driver.check()


def write_panels(kv: PanelCache, layer: int, fresh: Tensor) -> Sequence[Tensor]:
    """Write reserved rows where the compiled step would.

    Returns:
        All keys and values up to the last of them, each [kv heads, rows, head_dim].
    """
    if kv.offloaded is not None and kv.is_offloaded(layer):
        rows = kv.offloaded.view(layer)
        (struct,) = kv.from_layer(layer)
        assert (struct.capacity, kv._offloaded_layer.words) == (rows.shape[2], rows.data_ptr())
    else:
        part, place = kv._places[layer]
        rows = kv._parts[part][place]
    if rows.dtype is torch.uint8:
        _put_codes(rows, kv.length, fresh)
    else:
        _put_numbers(rows, kv.length, fresh)
    end = kv.length + len(fresh)
    return [part[:, :end] for part in kv._rows_in(rows, slice(None))]


def _put_codes(rows: Tensor, first: int, fresh: Tensor) -> None:
    _, heads, _, width = rows.shape
    head_dim = fresh.shape[-1]
    panels = rows.view(2, heads, -1, LANES * width)
    codes, scales = panels.split((LANES * head_dim, LANES * (width - head_dim)), dim=3)
    keys = codes[0].unflatten(2, (head_dim // 4, LANES, 4))
    values = codes[1].unflatten(2, (LANES, head_dim))
    of_slots = scales.unflatten(3, (-1, LANES, 2))
    for row, packed in enumerate(pack_blocks(fresh.view(len(fresh), 2, heads, head_dim))):
        panel, lane = divmod(first + row, LANES)
        keys[:, panel, :, lane] = packed[0, :, :head_dim].unflatten(1, (-1, 4))
        values[:, panel, lane] = packed[1, :, :head_dim]
        of_slots[:, :, panel, :, lane] = packed[:, :, head_dim:].unflatten(2, (-1, 2))


def _put_numbers(rows: Tensor, first: int, fresh: Tensor) -> None:
    _, heads, _, width = rows.shape
    size = 2 if rows.dtype is torch.bfloat16 else 1
    keys = rows[0].view(heads, -1, width // size, LANES, size)
    values = rows[1].view(heads, -1, width, size)
    for row, numbers in enumerate(fresh.view(len(fresh), 2, heads, width)):
        slot = first + row
        keys[:, slot // LANES, :, slot % LANES] = numbers[0].view(heads, -1, size)
        values[:, slot // size, :, slot % size] = numbers[1]


def same(one: Tensor, other: Tensor) -> bool:
    """Return whether two tensors are equal to the bit."""
    if one.shape != other.shape or one.dtype is not other.dtype:
        return False
    rows = (part.cpu().contiguous().flatten() for part in (one, other))
    return torch.equal(*(part.view(torch.uint8) for part in rows))
