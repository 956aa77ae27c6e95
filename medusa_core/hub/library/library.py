"""All that a model manager asks: what there is, what fits, what is here. No Qt.

Coroutines of whichever loop runs them; what blocks is done in threads.
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
from medusa_core.hub.library.other_programs import models_of_others
from medusa_core.hub.library.pairing import HeadsFit as HowHeadsFit
from medusa_core.hub.library.pairing import match, misfit
from medusa_core.hub.library.shipped_heads import shipped_heads
from medusa_core.hub.listing import Listing
from medusa_core.hub.remote import look_at_heads, look_at_model
from medusa_core.hub.search import Sort, search
from medusa_core.hub.settings import HubSettings
from medusa_core.loading.choice import ready_choices
from medusa_core.memory.budget import Budget
from medusa_core.messages import HeadsShape, local_device
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

_SOON_S = 5.0
_MOST_DRAFTERS = 24
# Kinds whose repositories describe their heads as models are described.
_LIKE_MODELS = ("eagle", "dflash", "dspark", "jetspec", "gemma4-assistant")


@dataclass(frozen=True, slots=True)
class Variant:
    """A GGUF file of a repository.

    Attributes:
        file: Its path there, of several that are one model the first.
        nbytes: Bytes of all of them.
    """

    file: str
    nbytes: int


@dataclass(frozen=True, slots=True)
class PairOffer:
    """A pair that could be downloaded.

    Attributes:
        title: Its name for people.
        pair: Its repositories.
        licence: The model's licence; empty if unknown.
        is_gated: Its owner asks who you are.
        is_pickled: Its heads are a pickle, which is converted once.
        note: A word about it.
        download_bytes: What is fetched; 0 while unknown.
        config: Sizes of the model; None while unknown.
        heads: Sizes of the heads.
        is_curated: From the shipped catalog.
        is_earlier: There are better ones of its size today.
        is_heads: Nothing but heads, for a model that is fetched for itself.
        kind: The kind of drafter that it is called; empty for a model.
        variants: GGUF files of which one is enough; `pair.file` is the one that is looked at.
        bases: The models that its own was made of, or for, as its card says.
        drafters: What is published to draft for it, as far as that is known.
        misfit: Why its heads can't be used with it; empty if they can.
        heads_bytes: What of `download_bytes` are heads of another repository or file.
    """

    title: str
    pair: Pair
    licence: str = ""
    is_gated: bool = False
    is_pickled: bool = False
    note: str = ""
    download_bytes: int = 0
    config: ModelConfig | None = None
    heads: HeadsShape = HeadsShape()  # noqa: RUF009 - frozen
    is_curated: bool = False
    is_earlier: bool = False
    is_heads: bool = False
    kind: str = ""
    variants: tuple[Variant, ...] = ()
    bases: tuple[str, ...] = ()
    drafters: tuple[DrafterOffer, ...] = ()
    misfit: str = ""
    heads_bytes: int = 0

    @property
    def names(self) -> tuple[str, ...]:
        """What drafters may call the model."""
        return (self.pair.model, *self.bases)

    @property
    def drafter(self) -> DrafterOffer | None:
        """The drafter that is fetched with it; None for none."""
        pair = self.pair
        its = [one for one in self.drafters if one.repo and one.repo == pair.heads]
        return next((one for one in its if pair.heads_file in ("", one.file)), None)

    def with_drafter(self, drafter: DrafterOffer | None) -> PairOffer:
        """The same model with another drafter, whose sizes are unknown; or without one."""
        pair = replace(self.pair, heads="", heads_file="")
        if drafter is not None:
            pair = replace(pair, heads=drafter.repo, heads_file=drafter.file)
        return replace(
            self,
            pair=pair,
            is_pickled=drafter is not None and drafter.is_pickled,
            heads=HeadsShape(),
            misfit="",
            download_bytes=max(0, self.download_bytes - self.heads_bytes),
            heads_bytes=0,
        )


@dataclass(frozen=True, slots=True)
class AdapterOffer:
    """A LoRA on this computer, beside a model.

    Attributes:
        name: Its name.
        folder: Where it lies.
        shape: What it changes; of nothing where it doesn't fit.
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
            store_path: File with the list of downloads.
            folders_path: File with the list of folders outside of the cache.
            settings: How to deal with the Hub.

        Raises:
            HubError: A newer version made the list of downloads.
        """
        self.downloads = Downloads(store_path, settings)
        self.layers_dir: Path | None = None
        self._folders = FolderList(folders_path)
        self._draft_models = DraftModels()

    @property
    def notice(self) -> str:
        """What happened when it was opened, in a sentence for people; mostly empty."""
        return self.downloads.notice

    @property
    def settings(self) -> HubSettings:
        """How the Hub is dealt with."""
        return self.downloads.settings

    def change_settings(self, settings: HubSettings) -> None:
        """Deal with the Hub in another way from the next request on."""
        self.downloads.settings = settings

    def catalog(self) -> tuple[PairOffer, ...]:
        """Pairs that are known to be good; no network."""
        return tuple(
            PairOffer(
                title=entry.title,
                pair=entry.pair,
                licence=entry.licence,
                is_gated=entry.is_gated,
                is_pickled=entry.is_pickled,
                note=entry.note,
                download_bytes=entry.download_bytes,
                config=entry.config,
                heads=entry.heads,
                is_curated=True,
                is_earlier=entry.is_earlier,
                bases=(entry.base,),
                heads_bytes=entry.heads_bytes,
                drafters=published_drafters((entry.pair.model, entry.base)),
            )
            for entry in read_catalog()
        )

    async def search(self, words: str, sort: Sort = "downloads") -> tuple[PairOffer, ...]:
        """Models on the Hub; their sizes are unknown until they are looked at.

        Raises:
            HubError: The Hub can't be reached.
        """
        found = await asyncio.to_thread(search, _impatient(self.settings), words, sort)
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
        """The offer with all drafters that the Hub has for its model.

        Raises:
            HubError: The Hub can't be reached.
        """
        settings = _impatient(self.settings)
        found = await asyncio.to_thread(find_drafters, settings, offer.names)
        every = _each_once((*offer.drafters, *found))[:_MOST_DRAFTERS]
        return replace(offer, drafters=await asyncio.to_thread(sized_drafters, settings, every))

    async def look_at(self, offer: PairOffer) -> PairOffer:
        """The offer with the sizes that the Hub tells.

        Raises:
            HubError: The Hub can't be reached, or there is nothing to load.
            ModelError: It is a model of another kind.
        """
        settings, pair = _impatient(self.settings), offer.pair
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
            drafters=_each_once((*offer.drafters, *_beside(listing))),
            misfit=misfit(model.config, heads) if heads.num_heads else "",
            heads_bytes=nbytes,
            is_heads=False,
        )

    async def _heads_alone(self, offer: PairOffer) -> PairOffer | None:
        """The offer as one of heads, if it is that."""
        try:
            found = await asyncio.to_thread(look_at_heads, self.settings, offer.pair.model)
        except (ModelError, HubError):
            return None
        pair = replace(offer.pair, file=found.listing.file)
        nbytes = found.listing.needed_bytes
        return replace(offer, pair=pair, heads=found.shape, is_heads=True, download_bytes=nbytes)

    async def installed(self) -> tuple[Installed, ...]:
        """What is on this computer, in the shared cache and in folders that were added."""
        return await asyncio.to_thread(self._installed)

    def _installed(self) -> tuple[Installed, ...]:
        others = models_of_others(os.environ, Path.home())
        found = list_installed(self.settings.cache_dir, self._folders.read(), others)
        for one in found:  # read in this thread: the window must not wait for files
            _ = one.config, one.gain
        return found

    def add_folder(self, folder: str) -> None:
        """Take a folder with a model or with heads, or a GGUF file, among what is here.

        Raises:
            ModelError: It holds none, or one that isn't whole; or the list can't be written.
        """
        self._folders.add(Path(folder))

    def heads_for(
        self, model: Installed, installed: Sequence[Installed]
    ) -> tuple[tuple[Installed, str], ...]:
        """All heads that are here, each with the reason why it doesn't fit; the best come first.

        Of those that fit, the ones that were found to make it slower come last. Shipped ones
        are among them where they were made for it.
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
        """All other models that are here, each with the reason why it can't draft for this one.

        Those that can come first, the smallest of them first.
        """
        target = _model_at(model)
        if target is None:
            return ()
        others = [(one, _model_at(one)) for one in installed if one.path != model.path]

        def compare() -> list[tuple[bool, int, Installed, str]]:
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
        """All LoRAs that are here, those that heads learned with too; those that fit come first."""
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
        """Models that are here without a download; they can't be deleted."""
        return tuple(
            replace(at_path(one.model_dir, one.name), title=one.name, is_built_in=True)
            for one in ready_choices()
        )

    def forget_downloads(self, item: Installed) -> None:
        """Take finished downloads of something that was deleted off the list."""
        for job in self.downloads.jobs:
            if job.state.is_over and item.name in (job.pair.model, job.pair.heads):
                self.downloads.forget(job.id)

    async def verify(self, item: Installed) -> tuple[str, ...]:
        """Look at every byte; returns what is wrong, after removing damaged files from the cache.

        What is removed is fetched again by the next download, and nothing else.

        Raises:
            ModelError: A file can't be read.
        """

        def look() -> tuple[str, ...]:
            report = verify(item.path)
            if not report.to_fetch:
                return ()
            if item.is_cached:
                repair(report)
            bad = [file for file in report.files if file.name in report.to_fetch]
            return tuple(f"{file.name}: {file.reason}" for file in bad)

        return await asyncio.to_thread(look)

    def warning_for(self, item: Installed) -> str:
        """What to know before it is deleted."""
        if not item.is_cached:
            return "Files stay on disk."
        plan = self._plan_removal(item)
        words = "Other programs that use the Hugging Face cache lose it, too."
        return words + (f" Shared with {len(plan.sharers)} revisions." if plan.sharers else "")

    async def remove(self, item: Installed) -> int:
        """Delete it from the cache, or take its folder off the list; returns the bytes freed.

        Raises:
            RequestError: It isn't in the cache.
            ModelError: A file can't be removed.
        """
        if not item.is_cached:
            self._folders.drop(item.path)
            return 0
        cache = self.settings.cache_dir

        def work() -> int:
            return remove(cache, self._plan_removal(item))

        return await asyncio.to_thread(work)

    def _plan_removal(self, item: Installed) -> Removal:
        """What goes with something in the cache: a revision, or one GGUF model of it."""
        cache = self.settings.cache_dir
        if item.path.is_dir():
            return plan_removal(cache, repo_folder(cache, item.name), item.revision)
        return plan_file_removal(cache, item.path.parents[2], item.path)

    def kept_bytes(self) -> int:
        """Bytes of the copies of models that make their next load quicker."""
        quantized = sum(kept.nbytes for kept in QuantizedModels(quantized_models_dir()).entries())
        return quantized + sum(nbytes for _, nbytes in self._layer_files())

    async def remove_quantized(self) -> int:
        """Delete these copies; returns the bytes freed.

        Raises:
            TierError: A file of layers can't be deleted.
        """

        def work() -> int:
            freed = QuantizedModels(quantized_models_dir()).remove_all()
            return freed + sum(remove_layer_file(path) for path, _ in self._layer_files())

        return await asyncio.to_thread(work)

    def _layer_files(self) -> tuple[tuple[Path, int], ...]:
        return () if self.layers_dir is None else layer_files(self.layers_dir)

    async def budget(self, own_bytes: int = 0, device: str = "") -> Budget:
        """The memory of a device, now.

        Args:
            own_bytes: What the loaded model holds of it, which another one would free.
            device: Torch device name; empty for the best there is. With a cluster, this computer's
                part is meant.

        Raises:
            RequestError: There is no such device, or it can't compute.
        """

        def measure() -> Budget:
            from medusa_core.memory.probe import live_budget

            return live_budget(local_device(device), own_bytes)

        return await asyncio.to_thread(measure)


def _beside(listing: Listing) -> tuple[DrafterOffer, ...]:
    """The drafters that lie in a model's own repository."""
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


def _each_once(drafters: Iterable[DrafterOffer]) -> tuple[DrafterOffer, ...]:
    """Those of the same files once; what came first stays."""
    known: dict[tuple[str, str, str], DrafterOffer] = {}
    for one in drafters:
        known.setdefault((one.repo, one.file, "" if one.repo else one.kind), one)
    return tuple(known.values())


def _model_at(item: Installed) -> ModelAt | None:
    return None if item.config is None else ModelAt(item.path, item.config)


def _offered(name: str, folder: Path, config: ModelConfig) -> AdapterOffer:
    try:
        return AdapterOffer(name, folder, read_adapter_shape(folder, config))
    except AdapterError as error:
        return AdapterOffer(name, folder, AdapterShape(), error.message)


def _variants(listing: Listing) -> tuple[Variant, ...]:
    found = [
        Variant(file.path, sum(part.size for part in listing.parts_of(file.path)))
        for file in listing.ggufs
    ]
    return tuple(sorted(found, key=lambda one: one.nbytes))


def _impatient(settings: HubSettings) -> HubSettings:
    """For what somebody waits to see: a silent Hub is given up soon."""
    stall_s = min(_SOON_S, settings.patience.stall_s)
    return replace(settings, patience=replace(settings.patience, stall_s=stall_s))
