"""Action buttons on error cards."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Signal

from app.chat.error_board import ErrorBoard
from app.chat.error_card import ErrorCard
from app.engine.loaded_model import LoadedModel
from app.i18n.numbers import Number
from app.settings.store import SettingsStore
from app.state.tasks import Tasks
from app.widgets.offload_words import here_words
from app.widgets.sizes import speed
from medusa_core.errors import MedusaError
from medusa_core.messages import EngineLost, Failed, cluster_of

if TYPE_CHECKING:
    from medusa_core.api import LoadOffer, OffloadPlan
    from medusa_core.loading.choice import ModelChoice

log = logging.getLogger(__name__)

_LACKS_MEMORY = ("OutOfMemoryError", "PlanError")


class ErrorActions(QObject):
    """Adds buttons to the cards of failures that have a remedy.

    Signals:
        restart_requested: The user wants to restart the application.
    """

    restart_requested = Signal()

    def __init__(
        self,
        errors: ErrorBoard,
        loaded_model: LoadedModel,
        settings: SettingsStore,
        layers_dir: Callable[[], Path],
    ) -> None:
        """Begin.

        Args:
            errors: Board of the error cards.
            loaded_model: Loads a model that fits.
            settings: Settings with the compute device.
            layers_dir: Folder of offloaded layers.
        """
        super().__init__()
        self._errors, self._loaded_model, self._settings = errors, loaded_model, settings
        self._layers_dir = layers_dir
        self._tasks = Tasks(self)
        errors.failure_shown.connect(self.offer)

    def offer(self, card: ErrorCard, failed: Failed) -> None:
        """Add the remedies of a failure to its card."""
        if isinstance(failed, EngineLost):
            card.add_action(self.tr("Save and restart"), self.restart_requested.emit)
        elif failed.kind in _LACKS_MEMORY:
            self._tasks.start(self._offer_smaller(card))

    def report_crash(
        self, open_last: Callable[[], object] | None, diagnose: Callable[[], object]
    ) -> None:
        """Report that the last run crashed; offer to resume or to diagnose.

        Args:
            open_last: Opens the last conversation; None without a history.
            diagnose: Opens the diagnostics.
        """
        card = self._errors.show_error(
            self.tr("Medusa Chat didn't end properly last time."),
            self.tr(
                "Your conversations are kept. The last one isn't opened by itself, as it may be "
                "the cause. The diagnostics may say what happened."
            ),
        )
        if open_last is not None:
            card.add_action(self.tr("Open the last conversation"), open_last)
        card.add_action(self.tr("Show diagnostics"), diagnose)

    async def _offer_smaller(self, card: ErrorCard) -> None:
        from medusa_core.api import offloaded_load, smaller_loads

        loaded_model = self._loaded_model
        loaded = loaded_model.status.loaded
        own = self._loaded_model.model_bytes
        context = 0 if loaded is None else loaded.context_tokens
        device = self._settings.values.device
        if cluster_of(device):
            return
        choice, layers_dir = loaded_model.choice, self._layers_dir()
        try:
            for offer in await asyncio.to_thread(smaller_loads, choice, context, device, own):
                self._add(card, offer)
            offloaded = await asyncio.to_thread(offloaded_load, choice, layers_dir, device, own)
        except MedusaError as error:
            log.info("nothing else can be offered: %s", error.message)
            return
        if offloaded is not None:
            self._add_offloaded(card, choice.with_layers_in(layers_dir), offloaded)

    def _add_offloaded(self, card: ErrorCard, choice: ModelChoice, offloaded: OffloadPlan) -> None:
        words = self.tr("Offload it: {0}, about {1} tokens/s").format(
            here_words(offloaded.placement), speed(offloaded.tokens_per_s)
        )
        card.add_action(words, lambda: self._loaded_model.load(choice))

    def _add(self, card: ErrorCard, offer: LoadOffer) -> None:
        context = f"{Number(offer.context_tokens):,}"
        words = (
            self.tr("Load with {0}").format(offer.format_label)
            if offer.format_label
            else self.tr("Load with a context of {0} tokens").format(context)
        )
        card.add_action(words, lambda: self._loaded_model.load(offer.choice))
