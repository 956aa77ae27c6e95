"""Models of the catalog, of the Hub and on this computer, for the model manager. No Qt.

Coroutines; blocking work is done in threads.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from medusa_core.errors import AdapterError, HubError, ModelError, NotFoundError
from medusa_core.hub.downloads import Downloads
from medusa_core.hub.drafters import (
    DrafterOffer,
    base_models,
    drafter_kind,
    find_drafters,
    licence_in,
    sized_drafters,
)
from medusa_core.hub.job import Pair
from medusa_core.hub.library.catalog import published_drafters, read_catalog
from medusa_core.hub.library.draft_models import (
    DraftModels,
    ModelAt,
)
from medusa_core.hub.library.installed import (
    Installed,
    at_path,
    list_installed,
    repo_folder,
)
from medusa_core.hub.library.library_folder import ContentsKind
from medusa_core.hub.library.library_import import FolderList
from medusa_core.hub.library.library_remove import (
    Removal,
    plan_file_removal,
    plan_removal,
    remove,
)
from medusa_core.hub.library.library_verify import (
    repair,
    verify,
)
from medusa_core.hub.library.offers import PairOffer, Variant
from medusa_core.hub.library.other_programs import models_of_others
from medusa_core.hub.library.pairing import HeadsFit as HowHeadsFit
from medusa_core.hub.library.pairing import match, misfit
from medusa_core.hub.library.shipped_heads import shipped_heads
from medusa_core.hub.listing import Listing
from medusa_core.hub.remote import look_at_heads, look_at_model
from medusa_core.hub.search import Sort, search
from medusa_core.hub.settings import HubSettings
from medusa_core.loading.choice import ready_choices
from medusa_core.loading.memory.budget import Budget
from medusa_core.messages import local_device
from medusa_core.models.config import ModelConfig
from medusa_core.models.lora.adapter_shape import (
    ADAPTER,
    AdapterShape,
    is_adapter,
    read_adapter_shape,
)
from medusa_core.models.quantized_cache.folder import QuantizedModels
from medusa_core.runtime.offload.layer_file import (
    layer_files,
    remove_layer_file,
)
from medusa_core.system.resources import quantized_models_dir

_QUICK_STALL_S = 5.0  # for requests that somebody waits to see
_MAX_DRAFTERS = 24
# Kinds of drafters whose repositories have a model's config.json.
_LIKE_MODELS = ("eagle", "dflash", "dspark", "jetspec", "gemma4-assistant")


@dataclass(frozen=True, slots=True)
class AdapterOffer:
    """A LoRA on this computer, matched with a model.

    Attributes:
        name: Name of the adapter.
        shape: Sizes; empty if it doesn't fit.
        reason: Why it doesn't fit; empty if it does.
    """

    name: str
    folder: Path
    shape: AdapterShape
    reason: str = ""


class Library:
    """Models on the Hub and on this computer.

    Attributes:
        downloads: All downloads.
        layers_dir: Folder for layers of models that are larger than memory; None for none.
    """

    def __init__(self, store_path: Path, folders_path: Path, settings: HubSettings) -> None:
        """Open the library.

        Args:
            store_path: Database of downloads.
            folders_path: File with the list of folders outside of the cache.
            settings: Settings of the Hub.

        Raises:
            HubError: A newer version of the program created the database.
        """
        self.downloads = Downloads(store_path, settings)
        self.layers_dir: Path | None = None
        self._folders = FolderList(folders_path)
        self._draft_models = DraftModels()

    @property
    def notice(self) -> str:
        """Problem at opening the database of downloads, for people; mostly empty."""
        return self.downloads.notice

    @property
    def settings(self) -> HubSettings:
        """Settings of the Hub."""
        return self.downloads.settings

    def change_settings(self, settings: HubSettings) -> None:
        """Use other settings from the next request on."""
        self.downloads.settings = settings

    def catalog(self) -> tuple[PairOffer, ...]:
        """Return the shipped recommendations; no network."""
        return read_catalog()

    async def search(self, words: str, sort: Sort = "downloads") -> tuple[PairOffer, ...]:
        """Search models on the Hub; `look_at` reads their sizes.

        Raises:
            HubError: The Hub can't be reached.
        """
        found = await asyncio.to_thread(search, _with_quick_timeout(self.settings), words, sort)
        return tuple(
            PairOffer(
                title=one.repo,
                pair=Pair(one.repo),
                licence=licence_in(one.tags),
                is_gated=one.is_gated,
                note=f"{one.downloads:,} downloads · {one.likes:,} likes · {one.changed}",
                is_heads=(kind := drafter_kind(one.repo, one.tags)) in _LIKE_MODELS,
                kind=kind,
                bases=(bases := base_models(one.tags)),
                drafters=published_drafters((one.repo, *bases)),
            )
            for one in found
        )

    async def find_drafters(self, offer: PairOffer) -> PairOffer:
        """Return an offer with all drafters that the Hub has for its model.

        Raises:
            HubError: The Hub can't be reached.
        """
        settings = _with_quick_timeout(self.settings)
        found = await asyncio.to_thread(find_drafters, settings, offer.names)
        every = _without_duplicates((*offer.drafters, *found))[:_MAX_DRAFTERS]
        return replace(offer, drafters=await asyncio.to_thread(sized_drafters, settings, every))

    async def look_at(self, offer: PairOffer) -> PairOffer:
        """Return an offer with sizes read from the Hub.

        Raises:
            HubError: The Hub can't be reached, or there is nothing to load.
            ModelError: The architecture isn't supported.
        """
        settings, pair = _with_quick_timeout(self.settings), offer.pair
        if offer.is_heads and (alone := await self._heads_alone(offer)) is not None:
            return alone
        try:
            model = await asyncio.to_thread(
                look_at_model, settings, pair.model, pair.revision, pair.file
            )
        except (ModelError, NotFoundError):
            alone = await self._heads_alone(offer)
            if alone is None:
                raise
            return alone
        heads, listing, nbytes = model.heads, model.listing, 0
        if pair.heads and not offer.is_pickled:
            found = await asyncio.to_thread(look_at_heads, settings, pair.heads, pair.heads_file)
            heads, nbytes = found.shape, found.listing.needed_bytes
        elif pair.heads:
            heads, nbytes = offer.heads, offer.heads_bytes
        needed = listing.needed_bytes + nbytes
        return replace(
            offer,
            pair=replace(pair, file=listing.file),
            config=model.config,
            heads=heads,
            download_bytes=needed if listing.file else max(needed, offer.download_bytes),
            variants=_variants(listing) if listing.file else (),
            drafters=_without_duplicates((*offer.drafters, *_drafters_in(listing))),
            misfit=misfit(model.config, heads) if heads.num_heads else "",
            heads_bytes=nbytes,
            is_heads=False,
        )

    async def _heads_alone(self, offer: PairOffer) -> PairOffer | None:
        """Return the offer with heads alone, if it has heads; else None."""
        try:
            found = await asyncio.to_thread(look_at_heads, self.settings, offer.pair.model)
        except (ModelError, HubError):
            return None
        pair = replace(offer.pair, file=found.listing.file)
        nbytes = found.listing.needed_bytes
        return replace(offer, pair=pair, heads=found.shape, is_heads=True, download_bytes=nbytes)

    async def installed(self) -> tuple[Installed, ...]:
        """List models and heads in the shared cache, added folders and other programs."""
        return await asyncio.to_thread(self._installed)

    def _installed(self) -> tuple[Installed, ...]:
        """List everything installed, with the parts read that need files."""
        others = models_of_others(os.environ, Path.home())
        found = list_installed(self.settings.cache_dir, self._folders.read(), others)
        for one in found:  # read in this thread: the window must not wait for files
            _ = one.config, one.gain
        return found

    def add_folder(self, folder: str) -> None:
        """Add a folder with a model or heads, or a GGUF file.

        Raises:
            ModelError: It has none or is incomplete, or the list can't be written.
        """
        self._folders.add(Path(folder))

    def heads_for(
        self, model: Installed, installed: Sequence[Installed]
    ) -> tuple[tuple[Installed, str], ...]:
        """Return all installed heads, the best first, each with the reason why it doesn't fit.

        Of those that fit, heads that were measured to be slower come last. Shipped heads are
        included if they were made for the model.
        """
        target = model.contents.target
        if target is None:
            return ()
        found = []
        shipped = [replace(one, is_built_in=True) for one in shipped_heads()]
        for one in (*installed, *shipped):
            facts = one.contents.heads
            if one.kind is ContentsKind.HEADS and facts is not None and one.is_complete:
                how = match(target, facts)
                if one.is_built_in and how.fit is not HowHeadsFit.MADE_FOR:
                    continue
                rank = list(HowHeadsFit).index(how.fit)
                reason = how.reason if how.fit is HowHeadsFit.MISFIT else ""
                found.append(((bool(reason), not one.may_pay, rank), one, reason))
        return tuple((one, reason) for _, one, reason in sorted(found, key=lambda each: each[0]))

    async def draft_models_for(
        self, model: Installed, installed: Sequence[Installed]
    ) -> tuple[tuple[Installed, str], ...]:
        """Return all other installed models, each with the reason why it can't draft for this one.

        Those that can come first, by size.
        """
        target = _model_at(model)
        if target is None:
            return ()
        others = [(one, _model_at(one)) for one in installed if one.path != model.path]

        def compare() -> list[tuple[bool, int, Installed, str]]:
            """Compare vocabularies; fitting models come first, then smaller ones."""
            found = []
            for one, at in others:
                if at is not None:
                    reason = self._draft_models.misfit(target, at)
                    found.append((bool(reason), one.nbytes, one, reason))
            return sorted(found, key=lambda each: each[:2])

        return tuple((one, reason) for _, _, one, reason in await asyncio.to_thread(compare))

    def adapters_for(
        self, model: Installed, installed: Sequence[Installed]
    ) -> tuple[AdapterOffer, ...]:
        """Return all LoRAs, those trained together with heads included; fitting ones come first."""
        if model.config is None:
            return ()
        found = [(one.name, one.path) for one in installed if one.kind is ContentsKind.ADAPTER]
        heads = [one for one in installed if one.kind is ContentsKind.HEADS]
        found += [
            (f"{one.name}/{ADAPTER}", one.path / ADAPTER)
            for one in heads
            if is_adapter(one.path / ADAPTER)
        ]
        offers = [_offered(name, folder, model.config) for name, folder in found]
        return tuple(sorted(offers, key=lambda offer: bool(offer.reason)))

    def built_in(self) -> tuple[Installed, ...]:
        """Return the models that come with the program, which can't be deleted."""
        return tuple(
            replace(at_path(one.model_dir, one.name), title=one.name, is_built_in=True)
            for one in ready_choices()
        )

    def forget_downloads(self, item: Installed) -> None:
        """Remove finished downloads of a deleted item from the list."""
        for job in self.downloads.jobs:
            if job.state.is_over and item.name in (job.pair.model, job.pair.heads):
                self.downloads.forget(job.id)

    async def verify(self, item: Installed) -> tuple[str, ...]:
        """Check all hashes, and remove damaged files from the cache; returns what is wrong.

        The next download fetches only removed files.

        Raises:
            ModelError: A file can't be read.
        """

        def look() -> tuple[str, ...]:
            """Check all files and remove damaged ones from the cache."""
            report = verify(item.path)
            if not report.to_fetch:
                return ()
            if item.is_cached:
                repair(report)
            bad = [file for file in report.files if file.name in report.to_fetch]
            return tuple(f"{file.name}: {file.reason}" for file in bad)

        return await asyncio.to_thread(look)

    def warning_for(self, item: Installed) -> str:
        """Return a warning before an item is deleted."""
        if not item.is_cached:
            return "Files stay on disk."
        plan = self._plan_removal(item)
        words = "Other programs that use the Hugging Face cache lose it, too."
        return words + (f" Shared with {len(plan.sharers)} revisions." if plan.sharers else "")

    async def remove(self, item: Installed) -> int:
        """Delete an item from the cache, or its folder from the list; returns the freed bytes.

        Raises:
            RequestError: It isn't in the cache.
            ModelError: A file can't be removed.
        """
        if not item.is_cached:
            self._folders.drop(item.path)
            return 0
        cache = self.settings.cache_dir

        def work() -> int:
            """Delete the files."""
            return remove(cache, self._plan_removal(item))

        return await asyncio.to_thread(work)

    def _plan_removal(self, item: Installed) -> Removal:
        """Plan the removal of a revision in the cache, or of one GGUF model."""
        cache = self.settings.cache_dir
        if item.path.is_dir():
            return plan_removal(cache, repo_folder(cache, item.name), item.revision)
        return plan_file_removal(cache, item.path.parents[2], item.path)

    def kept_bytes(self) -> int:
        """Return the bytes of quantized copies and layer files, which speed up the next load."""
        quantized = sum(kept.nbytes for kept in QuantizedModels(quantized_models_dir()).entries())
        return quantized + sum(nbytes for _, nbytes in self._layer_files())

    async def remove_quantized(self) -> int:
        """Delete quantized copies and layer files; returns the freed bytes.

        Raises:
            TierError: A layer file can't be deleted.
        """

        def work() -> int:
            """Delete quantized copies and layer files."""
            freed = QuantizedModels(quantized_models_dir()).remove_all()
            return freed + sum(remove_layer_file(path) for path, _ in self._layer_files())

        return await asyncio.to_thread(work)

    def _layer_files(self) -> tuple[tuple[Path, int], ...]:
        """List the layer files with their sizes."""
        return () if self.layers_dir is None else layer_files(self.layers_dir)

    async def budget(self, own_bytes: int = 0, device: str = "") -> Budget:
        """Measure the memory of a device.

        Args:
            own_bytes: Bytes of it that unloading the present model would free.
            device: Torch device name; empty for the best there is. Of a cluster, this computer's
                device is measured.

        Raises:
            RequestError: There is no such device, or it can't compute.
        """

        def measure() -> Budget:
            """Measure the free memory now."""
            from medusa_core.loading.memory.probe import live_budget

            return live_budget(local_device(device), own_bytes)

        return await asyncio.to_thread(measure)


def _drafters_in(listing: Listing) -> tuple[DrafterOffer, ...]:
    """Return the drafters in a model's own repository."""
    found = ((file, drafter_kind(file.path)) for file in listing.drafters)
    return tuple(
        DrafterOffer(
            listing.repo,
            kind,
            listing.repo,
            file.path,
            sum(part.size for part in listing.parts_of(file.path)),
        )
        for file, kind in found
        if kind
    )


def _without_duplicates(drafters: Iterable[DrafterOffer]) -> tuple[DrafterOffer, ...]:
    """Return drafters without duplicates of the same files; the first one stays."""
    known: dict[tuple[str, str, str], DrafterOffer] = {}
    for one in drafters:
        known.setdefault((one.repo, one.file, "" if one.repo else one.kind), one)
    return tuple(known.values())


def _model_at(item: Installed) -> ModelAt | None:
    """Return path and configuration of an item; None if it isn't a model."""
    return None if item.config is None else ModelAt(item.path, item.config)


def _offered(name: str, folder: Path, config: ModelConfig) -> AdapterOffer:
    """Return a LoRA with its sizes, or the reason why it doesn't fit."""
    try:
        return AdapterOffer(name, folder, read_adapter_shape(folder, config))
    except AdapterError as error:
        return AdapterOffer(name, folder, AdapterShape(), error.message)


def _variants(listing: Listing) -> tuple[Variant, ...]:
    """Return the GGUF files of a repository, the smallest first."""
    found = [
        Variant(file.path, sum(part.size for part in listing.parts_of(file.path)))
        for file in listing.ggufs
    ]
    return tuple(sorted(found, key=lambda one: one.nbytes))


def _with_quick_timeout(settings: HubSettings) -> HubSettings:
    """Return settings with a short timeout, for requests that block the user interface."""
    stall_s = min(_QUICK_STALL_S, settings.timeouts.stall_s)
    return replace(settings, timeouts=replace(settings.timeouts, stall_s=stall_s))
