"""The models that can be changed to: always ready ones, the library's, other machines'."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QObject, Signal
from PySide6.QtWidgets import QWidget

from app.chat.error_board import ErrorBoard
from app.engine.loaded_model import LoadedModel
from app.i18n.engine_texts import engine_text
from app.settings.store import SettingsStore
from app.state.tasks import Tasks
from app.widgets.dropping import IS_MODEL
from app.widgets.file_dialogs import choose_gguf
from app.widgets.matching import Entry, matching
from app.widgets.questions import confirms
from medusa_core.api import ContentsKind, Endpoints
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import (
    ModelChoice,
    first_choice,
    ready_choices,
    remote_choice,
)

if TYPE_CHECKING:
    from medusa_core.api import Installed, Library

    OpenLibrary = Callable[[], Library]


class KnownModels(QObject):
    """What the header's list and the palette offer.

    Attributes:
        tasks: What is imported and listed.
        library: What is installed; None until it is needed, or where there is none.
        endpoints: The other machines that the user has connected.

    Signals:
        opened: The library (a `Library`) is open from now on.
        changed: Other models can be changed to.
        imported: A file or a folder was added to the library, or couldn't be.
    """

    opened = Signal(object)
    changed = Signal()
    imported = Signal()

    def __init__(
        self,
        window: QWidget,
        loaded_model: LoadedModel,
        settings: SettingsStore,
        errors: ErrorBoard,
        open_library: OpenLibrary | None,
        endpoints: Endpoints | None = None,
    ) -> None:
        """Know the models that are always ready.

        Args:
            window: Questions are asked above it.
            loaded_model: Loads them.
            settings: Remembers the last one, and which model drafts for which.
            errors: Shows what fails.
            open_library: Opens the library when it is needed first; None offers none.
            endpoints: The connected machines; None remembers none.
        """
        super().__init__(window)
        self._window = window
        self.tasks = Tasks()
        self._loaded_model, self._settings, self._errors = loaded_model, settings, errors
        self._open_library = open_library
        self.library: Library | None = None
        self.endpoints = endpoints or Endpoints(None)
        draft_models = settings.values.draft_models
        self._choices = {one.model_dir: one.drafted_by(draft_models) for one in ready_choices()}
        loaded_model.chosen.connect(self._remember)

    @property
    def choices(self) -> tuple[ModelChoice, ...]:
        """The models that can be changed to."""
        return (*self._choices.values(), *self._remote_choices())

    def choice_at(self, folder: Path) -> ModelChoice | None:
        """The offered model in this folder or file; None where none is offered there."""
        return self._choices.get(folder)

    def list_endpoints(self) -> None:
        """Offer what connected machines have now; a model of one that is gone answers no more."""
        remote = self._loaded_model.choice.remote
        if remote is not None and self.endpoints.find(remote.endpoint) is None:
            self._loaded_model.load(first_choice())
        self.changed.emit()

    def _remote_choices(self) -> Iterator[ModelChoice]:
        for endpoint in self.endpoints.all:
            yield from map(remote_choice, endpoint.remote_models)

    def open_library(self) -> Library | None:
        """The library, opened at the first call; None if there is none."""
        if self.library is None and self._open_library is not None:
            try:
                self.library = self._open_library()
            except MedusaError as error:
                self._errors.show_error(error.message, error.hint)
                return None
            self.opened.emit(self.library)
        return self.library

    async def offer_installed(self) -> None:
        """Offer what is on this computer.

        Raises:
            MedusaError: The library's folders can't be read.
        """
        library = self.open_library()
        if library is not None:
            self.list_installed(library, await library.installed())

    def list_installed(self, library: Library, installed: Sequence[Installed]) -> None:
        """Offer these models, those that are always ready and the loaded one, and no others."""
        kept = (*(one.model_dir for one in ready_choices()), self._loaded_model.choice.model_dir)
        here = {*kept, *(item.path for item in installed)}
        self._choices = {path: one for path, one in self._choices.items() if path in here}
        for item in installed:
            if item.config is not None:
                offered_heads = library.heads_for(item, installed)
                fitting = [h for h, reason in offered_heads if not reason and h.may_pay]
                own = item.path if item.kind is ContentsKind.MERGED else None
                heads_dir = fitting[0].path if fitting else own
                name = item.title.rpartition("/")[2]
                offered = ModelChoice(name, item.path, heads_dir)
                self._choices.setdefault(
                    item.path, offered.drafted_by(self._settings.values.draft_models)
                )
        self.changed.emit()

    def ask_for_gguf(self) -> None:
        """Ask for a GGUF file, and load it."""
        if file := choose_gguf(self._window):
            self.load_file(file)

    def offer_to_load(self, path: Path) -> None:
        """Ask whether a model that was dropped or attached is to be loaded."""
        question = QCoreApplication.translate("Library", IS_MODEL)
        if confirms(self._window, question, str(path)):
            self.load_file(path)

    def load_file(self, path: Path, otherwise: Callable[[], object] | None = None) -> None:
        """Take a model among those that are here, and load it.

        Args:
            path: Its file or its folder.
            otherwise: Called where it can't be loaded, once the reason is shown.
        """
        self.tasks.start(self._load_file(path, otherwise))

    async def _load_file(self, path: Path, otherwise: Callable[[], object] | None) -> None:
        is_loading = await self.import_and_load(path)
        if not is_loading and otherwise is not None:
            otherwise()
        self.imported.emit()

    async def import_and_load(self, path: Path) -> bool:
        """Take a model among those that are here, and load it; a failure is shown.

        Returns:
            Whether a model is being loaded.
        """
        library = self.open_library()
        if library is None:
            return False
        try:
            await asyncio.to_thread(library.add_folder, str(path))
            installed = await library.installed()
            self.list_installed(library, installed)
        except MedusaError as error:
            self._errors.show_error(error.message, error.hint)
            return False
        heads = (one for one in installed if one.config is None and one.heads.num_heads)
        if any(one.path == path for one in heads):
            return self._load_with(library, installed, path)
        self._loaded_model.load(self._choices.get(path, ModelChoice(path.name, path)))
        return True

    def _load_with(self, library: Library, installed: Sequence[Installed], heads: Path) -> bool:
        """Load the chosen model with heads that were dropped, or say why it can't have them."""
        choice = self._loaded_model.choice
        here = (*installed, *library.built_in())
        model = next((one for one in here if one.path == choice.model_dir), None)
        offered = () if model is None else library.heads_for(model, installed)
        reason = next((why for one, why in offered if one.path == heads), None)
        if reason is None or reason:
            self._errors.show_error(
                self.tr("{0} is a drafter for another model than {1}{2}.").format(
                    heads.name, choice.name, f" ({engine_text(reason)})" if reason else ""
                ),
                self.tr("It is listed now: load its model with it under Models."),
            )
            return False
        self._loaded_model.load(replace(choice, heads_dir=heads))
        return True

    def entries(self, words: str) -> Sequence[Entry]:
        """Models for the palette."""
        kind = self.tr("Model")
        entries = [
            Entry(
                choice.name if choice.remote is None else f"{choice.name} · {choice.note}",
                partial(self._loaded_model.load, choice),
                kind=kind,
            )
            for choice in self.choices
        ]
        return matching(words, entries)

    def _remember(self) -> None:
        choice = self._loaded_model.choice
        if choice.remote is not None:
            self._settings.set(model=choice)
            self.changed.emit()
            return
        self._settings.set(model=choice, draft_models=self._draft_models_with(choice))
        self._choices[choice.model_dir] = choice
        self.changed.emit()

    def _draft_models_with(self, choice: ModelChoice) -> Mapping[str, str]:
        """Remember the drafter of the loaded model."""
        model, before = str(choice.model_dir), self._settings.values.draft_models
        others = {key: folder for key, folder in before.items() if key != model}
        draft = choice.options.assistant_dir
        return others if draft is None else others | {model: str(draft)}
