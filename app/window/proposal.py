"""Propose a better model for this computer while a very small one is loaded; download it."""

from __future__ import annotations

import asyncio
import logging
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.chat.chat_page import ChatPage
from app.chat.suggestions import is_small
from app.engine.loaded_model import LoadedModel
from app.i18n.engine_texts import error_text
from app.settings.store import SettingsStore
from app.state.library import LibraryState
from app.state.tasks import Tasks
from app.theme.appearance import Appearance
from medusa_core.errors import MedusaError
from medusa_core.loading.choice import ModelChoice

# A window without a proposal starts faster.
if TYPE_CHECKING:
    from app.models.proposal_card import ProposalCard
    from medusa_core.api import DownloadJob, Pair, PairOffer

_LARGE_BYTES = 6 * 10**8
log = logging.getLogger(__name__)


class Proposal(QObject):
    """Proposes a better model in an empty conversation and downloads it in the background.

    Attributes:
        card: The shown card; None if none is shown.
    """

    def __init__(
        self,
        page: ChatPage,
        models: LibraryState,
        loaded_model: LoadedModel,
        settings: SettingsStore,
        appearance: Appearance,
    ) -> None:
        """Propose nothing yet.

        Args:
            page: Shows the proposal.
            models: Opens the library.
            loaded_model: Loads the model.
            settings: Settings that store the download speed.
            appearance: Sizes.
        """
        super().__init__()
        self._page, self._models, self._loaded_model = page, models, loaded_model
        self._settings, self._appearance = settings, appearance
        self.card: ProposalCard | None = None
        self._offer: PairOffer | None = None
        self._job_id = -1
        self._choice: ModelChoice | None = None
        self._bytes_per_s = 0.0
        self._has_looked = False
        self._tasks = Tasks(self)
        models.download_changed.connect(self._show_download)

    def watch(self) -> None:
        """Propose a model once, as soon as a small one is loaded."""
        self._loaded_model.chosen.connect(self._search_once)
        self._search_once()

    def fetch(self, offer: PairOffer) -> None:
        """Download a model in the background, then offer to load it."""
        from medusa_core.api import JobState

        library = self._models.open()
        if library is None:
            return
        if self._offer != offer or self.card is None:
            self._make_card(offer)
        assert self.card is not None  # made above
        try:
            job = library.downloads.add(offer.pair)
            if job.state is JobState.FAILED:
                library.downloads.resume(job.id)
        except MedusaError as error:  # a full disk, which can't hold the list of downloads
            self._page.errors.show_error(error.message, error.hint)
            return
        self._job_id = job.id
        self._page.add_card(self.card)
        self.card.show_job(job)

    def _search_once(self) -> None:
        loaded_model = self._loaded_model
        loaded = loaded_model.status.loaded
        if (
            self._has_looked
            or loaded is None
            or not (is_small(loaded) or loaded_model.choice.is_demo)
        ):
            return
        self._has_looked = True
        self._tasks.start(self.look())

    async def look(self) -> None:
        """Find a model to propose, unless a larger one is installed; a failure is only logged."""
        from app.models.suggestion import expected_speed, proposed

        library = self._models.open()
        if library is None or self.card is not None:
            return
        try:
            await self._models.refresh()
            if any(item.nbytes >= _LARGE_BYTES for item in self._models.installed):
                return  # the user knows how to have larger models
            budget = await self._models.budget()
            offer = proposed(library.catalog(), budget)
            if offer is None or self.card is not None:
                return
            card = self._make_card(offer)
            self._page.empty.show_card(card)
            if library.settings.is_offline:
                card.show_offline()
                return
            card.propose(0.0, self._speed)
            card.propose(await asyncio.to_thread(expected_speed, offer, budget), self._speed)
        except MedusaError as error:
            log.info("no model is proposed: %s", error_text(error))

    @property
    def _speed(self) -> float:
        return 1e6 * self._settings.values.download_mb_per_s

    def _make_card(self, offer: PairOffer) -> ProposalCard:
        from app.models.proposal_card import ProposalCard

        self._close()
        self._offer = offer
        self.card = card = ProposalCard(offer, self._appearance)
        card.download_requested.connect(lambda: self.fetch(offer))
        card.cancelled.connect(self._cancel)
        card.load_requested.connect(self._load)
        card.closed.connect(self._close)
        return card

    def _cancel(self) -> None:
        library = self._models.library
        if library is not None:
            library.downloads.cancel(self._job_id)
        self._close()

    def _show_download(self, job: DownloadJob) -> None:
        from medusa_core.api import JobState

        if job.state is JobState.DOWNLOADING and job.bytes_per_s:
            self._bytes_per_s = job.bytes_per_s
        if job.state is JobState.READY and self._bytes_per_s:
            self._settings.set(download_mb_per_s=round(self._bytes_per_s / 1e6, 1))
        if job.id != self._job_id or self.card is None:
            return
        if job.state is JobState.READY:
            self._tasks.start(self._offer_to_load(job.pair))
        elif job.state is JobState.CANCELLED:
            self._close()
        else:
            self.card.show_job(job)

    async def _offer_to_load(self, pair: Pair) -> None:
        """Add the downloaded model to the list of installed models, and offer to load it."""
        models = self._models
        try:
            await models.refresh()
        except MedusaError as error:
            self._page.errors.show_error(error.message, error.hint)
            return
        names = {pair.model, f"{pair.model}/{PurePosixPath(pair.file).stem}"}
        found = next((item for item in models.installed if item.name in names), None)
        self._choice = None if found is None else models.choice_at(found.path)
        if self._choice is not None and self.card is not None:
            self.card.show_ready()
        else:
            self._close()  # whoever removed it meanwhile knows

    def _load(self) -> None:
        if self._choice is not None:
            self._loaded_model.load(self._choice)
            self._page.composer.setFocus()
        self._close()

    def _close(self) -> None:
        if self.card is not None:
            self.card.hide()
            self.card.deleteLater()
            self.card = None
        self._job_id = -1
