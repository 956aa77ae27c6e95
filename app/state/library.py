"""The models of this computer and of connected machines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.engine.loaded_model import LoadedModel
from app.i18n.engine_texts import engine_text
from app.state.tasks import Tasks
from medusa_core.api import ContentsKind, Endpoints, JobState
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import (
    ModelChoice,
    first_choice,
    ready_choices,
    remote_choice,
)
from medusa_core.messages import DrafterSpeed

if TYPE_CHECKING:
    from medusa_core.api import Budget, DownloadJob, Installed, Library

    OpenLibrary = Callable[[], Library]


class LibraryState(QObject):
    """State of installed models, downloads, and loadable models.

    Attributes:
        library: The library; None until it is opened, or if there is none.
        installed: Installed models, as last listed.
        endpoints: The connected machines.
        loaded_model: The model that is loaded.
        tasks: Files that are being imported.

    Signals:
        opened: The library (a `Library`) was opened.
        listed: `installed` was updated.
        changed: `choices` has changed.
        download_changed: A download (a `DownloadJob`) has made progress or has another state.
        download_ended: A download has completed or failed.
        failed: Message and hint (templates with their values) of an error.
    """

    opened = Signal(object)
    listed = Signal()
    changed = Signal()
    download_changed = Signal(object)
    download_ended = Signal(object)
    failed = Signal(object, object)

    def __init__(
        self,
        loaded_model: LoadedModel,
        open_library: OpenLibrary | None,
        endpoints: Endpoints | None = None,
        draft_models: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Start with the models that are always ready.

        Args:
            loaded_model: Loads models.
            open_library: Opens the library when it is needed first; None for no library.
            endpoints: The connected machines; None for none.
            draft_models: Folders of draft models by those of the models that they draft for.
        """
        super().__init__()
        self.loaded_model = loaded_model
        self._open_library = open_library
        self._draft_models = draft_models
        self._imports = asyncio.Lock()
        self._listing = asyncio.Lock()
        self.tasks = Tasks(self)
        self._download_states: dict[int, JobState] = {}
        self.library: Library | None = None
        self.installed: tuple[Installed, ...] = ()
        self.endpoints = endpoints or Endpoints(None)
        self._choices = {one.model_dir: self._drafted(one) for one in ready_choices()}
        loaded_model.chosen.connect(self._add_loaded)

    @property
    def choices(self) -> tuple[ModelChoice, ...]:
        """The models that can be loaded."""
        return (*self._choices.values(), *self._remote_choices())

    def choice_at(self, folder: Path) -> ModelChoice | None:
        """The choice of a folder or file; None if no model was found there."""
        return self._choices.get(folder)

    def is_loaded(self, item: Installed) -> bool:
        """Whether an item is the loaded model, or the one being loaded."""
        return item.path == self.loaded_model.choice.model_dir

    def speeds_of(self, item: Installed, heads_dir: Path | None) -> tuple[DrafterSpeed, ...]:
        """Measured speeds of a model with these heads; empty if it isn't loaded with them."""
        loaded = self.loaded_model.status.loaded
        is_same = self.is_loaded(item) and heads_dir == self.loaded_model.choice.heads_dir
        return loaded.speeds if loaded is not None and is_same else ()

    def open(self) -> Library | None:
        """The library, which the first call opens; None if there is none."""
        if self.library is None and self._open_library is not None:
            try:
                self.library = self._open_library()
            except MedusaError as error:
                self.failed.emit(error.message, error.hint)
                return None
            downloads = self.library.downloads
            self._download_states = {job.id: job.state for job in downloads.jobs}
            downloads.subscribe(self._take_download)
            self.opened.emit(self.library)
        return self.library

    async def budget(self) -> Budget:
        """Memory of the chosen device, for a model in place of the loaded one.

        Raises:
            MedusaError: The device can't be used.
        """
        library, loaded_model = self._require_library(), self.loaded_model
        return await library.budget(loaded_model.model_bytes, loaded_model.device)

    async def refresh(self) -> None:
        """Update the list of installed models.

        Raises:
            MedusaError: The library's folders can't be read.
        """
        library = self._require_library()
        async with self._listing:  # an older list must not come after a newer one
            self.installed = installed = await library.installed()
        ready = {one.model_dir for one in ready_choices()}
        here = {*ready, self.loaded_model.choice.model_dir, *(item.path for item in installed)}
        self._choices = {path: one for path, one in self._choices.items() if path in here}
        for item in installed:
            if item.config is not None:
                self._choices.setdefault(item.path, self._choice_of(library, item))
        self.listed.emit()
        self.changed.emit()

    async def add(self, path: Path) -> None:
        """Import a folder or a GGUF file.

        Raises:
            MedusaError: The path is no model, or the list of folders can't be written.
        """
        async with self._imports:  # the list of folders is read, and written whole
            await asyncio.to_thread(self._require_library().add_folder, str(path))
        await self.refresh()

    async def remove(self, item: Installed) -> int:
        """Delete a model or remove it from the list; return the freed bytes.

        Raises:
            MedusaError: The model can't be deleted.
        """
        freed = await self._require_library().remove(item)
        self._require_library().forget_downloads(item)
        await self.refresh()
        return freed

    def load_file(self, path: Path, otherwise: Callable[[], object] | None = None) -> None:
        """Import a model and load it.

        Args:
            path: File or folder of the model.
            otherwise: Called after the error is shown if it can't be loaded.
        """

        async def work() -> None:
            if not await self.import_and_load(path) and otherwise is not None:
                otherwise()

        self.tasks.start(work())

    async def import_and_load(self, path: Path) -> bool:
        """Import a model, or heads for the chosen one, and load it; failures are shown.

        Returns:
            Whether a model is being loaded.
        """
        if self.open() is None:
            return False
        try:
            await self.add(path)
        except MedusaError as error:
            self.failed.emit(error.message, error.hint)
            return False
        heads = (one for one in self.installed if one.config is None and one.heads.num_heads)
        if any(one.path == path for one in heads):
            return self._load_with(path)
        self.loaded_model.load(self._choices.get(path, ModelChoice(path.name, path)))
        return True

    def list_endpoints(self) -> None:
        """List the models of connected machines again; the model of a removed one is unloaded."""
        remote = self.loaded_model.choice.remote
        if remote is not None and self.endpoints.find(remote.endpoint) is None:
            self.loaded_model.load(first_choice())
        self.changed.emit()

    def _require_library(self) -> Library:
        """Return the library; `open` must have succeeded before."""
        assert self.library is not None, "open() comes first"
        return self.library

    def _remote_choices(self) -> Iterator[ModelChoice]:
        for endpoint in self.endpoints.all:
            yield from map(remote_choice, endpoint.remote_models)

    def _choice_of(self, library: Library, item: Installed) -> ModelChoice:
        """The choice of an installed model, with heads that fit it."""
        fitting = [h for h, reason in library.heads_for(item, self.installed) if not reason]
        own = item.path if item.kind is ContentsKind.MERGED else None
        heads_dir = next((h.path for h in fitting if h.may_pay), own)
        return self._drafted(ModelChoice(item.title.rpartition("/")[2], item.path, heads_dir))

    def _drafted(self, choice: ModelChoice) -> ModelChoice:
        return choice.drafted_by(self._draft_models())

    def _load_with(self, heads: Path) -> bool:
        """Load the selected model with heads, or show why they don't fit."""
        library, choice = self._require_library(), self.loaded_model.choice
        here = (*self.installed, *library.built_in())
        model = next((one for one in here if one.path == choice.model_dir), None)
        offered = () if model is None else library.heads_for(model, self.installed)
        reason = next((why for one, why in offered if one.path == heads), None)
        if reason is None or reason:
            self.failed.emit(
                self.tr("{0} is a drafter for another model than {1}{2}.").format(
                    heads.name, choice.name, f" ({engine_text(reason)})" if reason else ""
                ),
                self.tr("It is listed now: load its model with it under Models."),
            )
            return False
        self.loaded_model.load(replace(choice, heads_dir=heads))
        return True

    def _add_loaded(self) -> None:
        choice = self.loaded_model.choice
        if choice.remote is None:
            self._choices[choice.model_dir] = choice
        self.changed.emit()

    def _take_download(self, job: DownloadJob) -> None:
        before = self._download_states.get(job.id)
        self._download_states[job.id] = job.state
        self.download_changed.emit(job)
        if job.state is not before and job.state in (JobState.READY, JobState.FAILED):
            self.download_ended.emit(job)
